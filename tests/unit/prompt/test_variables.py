"""A template's own variables: typos are errors, defaults are known, thinking is told."""

from __future__ import annotations

import json

import pytest

from unrender import ChatTemplate, MessageError, TemplateWarning
from unrender.prompt.transcript import Variable

USER = {"role": "user", "content": "Hello"}
PLAIN = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
SWITCHED = (
    PLAIN + "{% if effort is not defined %}{% set effort = 'low' %}{% endif %}{{ '!' if effort == 'high' }}"
    "{{ date | default('today') }}{% if add_generation_prompt %}<assistant>"
    "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}{% endif %}"
)
# Answers with reasoning, so that analysis finds the switch.
THINKING = (
    "{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}"
    "{{ m.content }}</>{% endfor %}{% if add_generation_prompt %}<assistant>{% if SWITCH %}<think></think>{% endif %}"
    "{% endif %}"
)
ON_BY_DEFAULT = THINKING.replace("SWITCH", "enable_thinking is defined and not enable_thinking")
OFF_BY_DEFAULT = THINKING.replace("SWITCH", "not thinking")


@pytest.mark.parametrize(
    ("typo", "nearest"),
    [
        ("tool_choise", "'tool_choice'"),
        ("enable_thinkin", "'enable_thinking'"),
        ("efort", "'effort'"),
        ("zzz", r": \['date', 'effort', 'enable_thinking'\]"),
    ],
)
def test_a_typo_is_an_error_that_names_the_nearest(typo, nearest):
    """What the template does not read is refused, with the name that was meant, or all there are."""
    with pytest.raises(MessageError, match=f"^{typo}: expected a variable that the template reads.*{nearest}"):
        ChatTemplate.from_string(SWITCHED).prepare([USER], **{typo: "required"})


def test_what_only_the_other_named_template_reads_is_accepted(tmp_path):
    """A server sets one set of variables, whether a request has tools or not; what neither reads is still a typo."""
    named = [{"name": "default", "template": PLAIN}, {"name": "tool_use", "template": PLAIN + "{{ effort }}"}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": named}))
    template = ChatTemplate.from_pretrained(tmp_path)
    tools = [{"name": "now", "parameters": {"type": "object"}}]

    assert template.prepare([USER], effort="high").prompt == template.prepare([USER]).prompt
    assert template.prepare([USER], tools=tools, effort="high", tool_format="none").prompt.endswith("high")
    with pytest.raises(MessageError, match="efort"):
        template.prepare([USER], efort="high")


@pytest.mark.parametrize("name", ["messages", "add_generation_prompt"])
def test_what_prepare_sets_itself_is_refused(name):
    """A prompt's own variables are not the caller's."""
    with pytest.raises((MessageError, TypeError), match=name):
        ChatTemplate.from_string(PLAIN).prepare([USER], **{name: True})


def test_a_switch_that_is_not_there_is_a_warning():
    """`enable_thinking` under a template without one changes nothing, and says so at the caller's line; None says nothing."""
    template = ChatTemplate.from_string(PLAIN)

    assert template.prepare([USER], enable_thinking=None).thinking is None
    with pytest.warns(TemplateWarning, match="no switch for thinking") as caught:
        turn = template.prepare([USER], enable_thinking=False)

    assert caught[0].filename == __file__
    assert turn.prompt == template.prepare([USER]).prompt


def test_a_value_that_is_refused_changes_nothing():
    """What a variable may not be is not among the values that change the prompt."""
    source = "{{ raise_exception('no') if effort is defined and effort is not string }}{{ effort }}" + PLAIN

    assert ChatTemplate.from_string(source).variables["effort"].changes == ("low", "high")


def test_variables_are_listed_with_what_they_do():
    """Each has the default that the source says, and the values that change a prompt."""
    variables = ChatTemplate.from_string(SWITCHED).variables

    assert variables["effort"] == Variable(name="effort", default="low", changes=("high",))
    assert variables["date"].default == "today"
    assert variables["enable_thinking"].changes == (False,)
    assert set(variables) == {"effort", "date", "enable_thinking"}


@pytest.mark.parametrize(
    ("source", "given", "thinking"),
    [
        (ON_BY_DEFAULT, {}, True),
        (ON_BY_DEFAULT, {"enable_thinking": False}, False),
        (ON_BY_DEFAULT, {"enable_thinking": None}, True),
        (OFF_BY_DEFAULT, {}, False),
        (OFF_BY_DEFAULT, {"enable_thinking": True}, True),
        (OFF_BY_DEFAULT, {"thinking": True}, True),
        (PLAIN, {}, None),
    ],
)
def test_a_turn_says_whether_it_thinks(source, given, thinking):
    """Also where nobody said anything, and where the switch has another name."""
    assert ChatTemplate.from_string(source).prepare([USER], **given).thinking is thinking


@pytest.mark.parametrize(
    ("source", "default"),
    [
        ("{{ budget | default(-1) }}", -1),
        ("{{ budget if budget is defined else -0.5 }}", -0.5),
        ("{% if not budget is defined %}{% set budget = -1 %}{% endif %}{{ budget }}", -1),
        ("{{ budget | default({}) }}", {}),
        ("{{ budget | default(1 - 2) }}", None),
        ("{{ budget | default('9' * 1000000000000) }}", None),
    ],
)
def test_a_default_is_what_the_source_writes_out(source, default):
    """A negative number is a constant; an expression is not computed, whatever it would come to."""
    assert ChatTemplate.from_string(PLAIN + source).template.defaults.get("budget") == default
