"""A result that may still come isn't missing. Other refusals are rows of `tests/corpus/analysis.jsonl`."""

from __future__ import annotations

from unrender import ChatTemplate

SOURCE = (
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}"
    "{% if m.role == 'user' and loop.previtem and loop.previtem.tool_calls %}{{ raise_exception('no result') }}{% endif %}"
    "<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}</>"
    "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)


def test_a_result_that_may_still_come_is_not_missing():
    """The first of two results is rendered unchanged, even if the template refuses a user message after an unanswered call."""
    calls = [{"id": f"call0000{i}", "function": {"name": "now", "arguments": "{}"}} for i in range(2)]
    asked, called = {"role": "user", "content": "Now?"}, {"role": "assistant", "tool_calls": calls}

    turn = ChatTemplate.from_string(SOURCE).prepare(
        [asked, called, {"role": "tool", "tool_call_id": "call00000", "content": "noon"}]
    )

    assert turn.prompt.endswith("<tool>noon</><assistant>")
    assert turn.warnings == ()
