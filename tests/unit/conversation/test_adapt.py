"""Tests of converting conversations to a template's form, beyond the rows of `tests/corpus/rendering/shapes.jsonl`."""

from __future__ import annotations

from unrender.analysis import Capabilities, shape_context, shape_messages

CALL = {"id": "a", "function": {"name": "f", "arguments": "{}"}}
SHAPED = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def test_calls_may_be_in_a_tuple():
    """Items that aren't calls are dropped."""
    messages = [{"role": "assistant", "tool_calls": (CALL, "x")}]

    assert shape_messages(messages, Capabilities()) == [{"role": "assistant", "content": "", "tool_calls": [SHAPED]}]


def test_short_ids_are_kept():
    """A shortened id isn't shortened again."""
    short = Capabilities(requires_short_id=True, supports_tool_role=True, supports_string_arguments=True)
    shaped = shape_messages(
        [{"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "a", "content": "x"}], short
    )

    assert shaped[0]["tool_calls"][0]["id"] == shaped[1]["tool_call_id"] != "a"
    assert shape_messages(shaped, short) == shaped


def test_context_leaves_out_what_nobody_needs():
    """Without tools, the tools variable isn't set. The thinking switch is set only if requested."""
    switched = Capabilities(thinking_on=(("a", True),), thinking_off=(("a", False),))

    assert shape_context(None, Capabilities()) == shape_context([], switched) == {}
    assert shape_context([{}], Capabilities(), thinking=True) == {"tools": [{}]}
    assert shape_context(None, switched, thinking=True) == {"a": True}
    assert shape_context([{"a": "ä"}], Capabilities(tools_as_text=True)) == {"tools": '[{"a": "ä"}]'}


def test_context_uses_the_template_s_names():
    """Tools, the thinking switch and required variables have the names that the template reads."""
    capabilities = Capabilities(
        tools_variable="functions",
        tools_as_text=True,
        requires_tools=True,
        required_context=(("datetime", "today"),),
        thinking_on=(("mode", "think"),),
        thinking_off=(("mode", "no"),),
    )

    assert shape_context([{"a": 1}], capabilities) == {"datetime": "today", "functions": '[{"a": 1}]'}
    assert shape_context(None, capabilities, thinking=False) == {"datetime": "today", "functions": "[]", "mode": "no"}
    assert capabilities.thinking_switch == "mode"


def test_a_result_has_the_name_of_the_last_call_of_its_id():
    """A result gets the name of the latest call with its id, because some applications reuse ids in every answer."""

    def called(name):
        call = {"id": "call0", "type": "function", "function": {"name": name, "arguments": "{}"}}
        return [{"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "call0"}]

    shaped = shape_messages([*called("first"), *called("second")], Capabilities(supports_tool_role=True))

    assert [message["name"] for message in shaped if message["role"] == "tool"] == ["first", "second"]
