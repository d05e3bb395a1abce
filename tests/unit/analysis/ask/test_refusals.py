"""Tests of the features that a template refuses, and of the concessions that help."""

from __future__ import annotations

import pytest

from unrender import ChatTemplate

SAID = "<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}</>"
ASKED = "{% if add_generation_prompt %}<assistant>{% if think == false %}<think></think>{% endif %}{% endif %}"
TOOLS = "{% if tools %}{{ tools | tojson }}{% endif %}"
JOINED, LATER = "consecutive messages of one role are merged", "later system messages become user messages"
ORPHANS = "results without a call become user messages"


def template(condition, refused):
    """Return a template that renders `refused` in place of messages that meet a condition."""
    one = f"{{% if {condition} %}}{refused}{{% else %}}{SAID}{{% endif %}}"
    return f"{TOOLS}{{% for m in messages %}}{one}{{% endfor %}}{ASKED}"


@pytest.mark.parametrize(
    ("source", "refuses"),
    [
        (template("false", ""), {}),
        (
            template("tools and m.role == 'system' and not loop.first", ""),
            {
                ("two system messages", None, True): (JOINED,),
                ("a system message after a question", None, True): (LATER,),
                ("a system message after an answer", None, True): (LATER,),
            },
        ),
        (
            template("m.role == 'user' and loop.previtem and loop.previtem.role == 'user'", "{{ 1 / 0 }}"),
            {("two questions", None, None): (JOINED,)},
        ),
        (
            template("m.role == 'tool' and not m.name", "{{ raise_exception('who?') }}"),
            {("a result of no call and no tool", None, None): (ORPHANS,)},
        ),
    ],
    ids=["nothing", "with tools", "everywhere", "without a name"],
)
def test_what_is_refused_where(source, refuses):
    """Analysis finds each refused feature with its concessions, in few renderings. Some features are refused only with tools."""
    analysis = ChatTemplate.from_string(source).analysis
    found = analysis.capabilities.refuses

    assert {(one.feature, one.thinking, one.tools): one.concessions for one in found} == refuses
    assert analysis.renderings <= (64 if refuses else 52)


def test_a_result_that_may_still_come_is_not_missing():
    """The first of two results is rendered unchanged, even if the template refuses a user message after an unanswered call."""
    refused = "m.role == 'user' and loop.previtem and loop.previtem.tool_calls"
    chat = ChatTemplate.from_string(template(refused, "{{ raise_exception('no result') }}"))
    calls = [{"id": f"call0000{i}", "function": {"name": "now", "arguments": "{}"}} for i in range(2)]
    asked, called = {"role": "user", "content": "Now?"}, {"role": "assistant", "tool_calls": calls}

    turn = chat.prepare([asked, called, {"role": "tool", "tool_call_id": "call00000", "content": "noon"}])

    assert turn.prompt.endswith("<tool>noon</><assistant>")
    assert turn.warnings == ()
