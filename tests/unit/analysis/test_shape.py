"""Bringing conversations into a template's shape."""

from __future__ import annotations

from copy import deepcopy

import pytest

from unrender.analysis import Capabilities, ReasoningPlace, shape_context, shape_messages

CALL = {"id": "call_0123456789", "type": "function", "function": {"name": "f", "arguments": '{"k": 1}'}}
CONVERSATION = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Go on."},
    {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_0123456789", "content": "done"},
]
ALL = {
    "supports_system_role": True,
    "supports_tool_role": True,
    "supports_object_arguments": True,
    "supports_content_with_reasoning_and_calls": True,
}


def shape(**changes):
    return shape_messages(CONVERSATION, Capabilities(**(ALL | changes)))


def test_nothing_is_changed_in_place():
    """Shaping copies; the caller's messages stay as they are."""
    before = deepcopy(CONVERSATION)

    shape(requires_short_id=True, reasoning_place=ReasoningPlace.FIELD, reasoning_field="thinking")

    assert before == CONVERSATION


def test_arguments_become_mappings_or_text():
    """Arguments take the form that the template reads, whichever they came in."""
    mapping = deepcopy(CONVERSATION)
    mapping[2]["tool_calls"][0]["function"]["arguments"] = {"k": 1}
    as_text = Capabilities(**(ALL | {"supports_object_arguments": False}))

    assert shape()[2]["tool_calls"][0]["function"]["arguments"] == {"k": 1}
    assert shape_messages(mapping, as_text)[2]["tool_calls"][0]["function"]["arguments"] == '{"k": 1}'


def test_arguments_that_are_no_json_are_passed_on():
    """Half-written arguments are not ours to repair."""
    broken = deepcopy(CONVERSATION)
    broken[2]["tool_calls"][0]["function"]["arguments"] = '{"k": '

    shaped = shape_messages(broken, Capabilities(**ALL))

    assert shaped[2]["tool_calls"][0]["function"]["arguments"] == '{"k": '


def test_content_beside_calls_is_a_string_or_null():
    """Missing content is written the way that the template can bear."""
    assert shape()[2]["content"] == ""
    assert shape(requires_nonnull_content=False)[2]["content"] is None


def test_empty_calls_are_left_out():
    """`tool_calls: []` is no call, and some templates would write an empty section for it."""
    shaped = shape_messages([{"role": "assistant", "content": "x", "tool_calls": []}], Capabilities(**ALL))

    assert shaped == [{"role": "assistant", "content": "x"}]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
def test_reasoning_goes_to_the_template_s_field(field):
    """Reasoning is read from each usual field and put where the template looks."""
    message = {"role": "assistant", "content": "x", field: "hm"}
    capabilities = Capabilities(**ALL, reasoning_place=ReasoningPlace.FIELD, reasoning_field="thought")

    assert shape_messages([message], capabilities) == [{"role": "assistant", "content": "x", "thought": "hm"}]


def test_reasoning_becomes_a_part():
    """A template that reads typed parts gets reasoning as one, before the text."""
    shaped = shape(reasoning_place=ReasoningPlace.PART, reasoning_field="thinking", requires_typed_content=True)

    assert shaped[2]["content"][0] == {"type": "thinking", "thinking": "hm", "text": "hm"}


def test_ids_are_made_short_consistently():
    """A template that wants nine characters gets them, the same for call and result; fitting ids stay."""
    shaped = shape(requires_short_id=True)
    short = shaped[2]["tool_calls"][0]["id"]

    assert len(short) == 9
    assert short.isalnum()
    assert shaped[3]["tool_call_id"] == short
    assert shape_messages(shaped, Capabilities(**ALL, requires_short_id=True)) == shaped


def test_ids_hold_the_name_where_it_is_wanted():
    """A template that writes ids alone gets them with name and counter, and so do the results."""
    shaped = shape(requires_name_in_id=True)

    assert shaped[2]["tool_calls"][0]["id"] == "functions.f:0"
    assert shaped[3]["tool_call_id"] == "functions.f:0"


def test_ids_are_counted_through_the_conversation():
    """Counters go on from answer to answer, and ids that hold their name already are kept."""
    written = {"id": "functions.g:7", "type": "function", "function": {"name": "g", "arguments": "{}"}}
    answers = [{"role": "assistant", "tool_calls": [CALL, CALL]}, {"role": "assistant", "tool_calls": [CALL, written]}]

    shaped = shape_messages(answers, Capabilities(**ALL, requires_name_in_id=True))

    ids = [call["id"] for message in shaped for call in message["tool_calls"]]
    assert ids == ["functions.f:0", "functions.f:1", "functions.f:2", "functions.g:7"]


def test_results_know_their_function():
    """A tool's result carries the name of the function that was called."""
    assert shape()[3]["name"] == "f"


def test_system_message_moves_into_the_question():
    """Where system messages are refused, their text opens the next user message."""
    shaped = shape(supports_system_role=False)

    assert [message["role"] for message in shaped] == ["user", "assistant", "tool"]
    assert shaped[0]["content"] == "Be brief.\n\nGo on."


def test_results_become_user_messages_where_tools_have_no_voice():
    """A tool's result is not lost on a template without the role."""
    assert shape(supports_tool_role=False)[3] == {"role": "user", "content": "done"}


def test_text_and_parts_are_turned_into_each_other():
    """Content is a list of parts where it must be, and text where parts are not understood."""
    parts = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]
    image = [{"role": "user", "content": [{"type": "image"}]}]

    assert shape_messages(parts, Capabilities(**ALL))[0]["content"] == "ab"
    assert shape(requires_typed_content=True)[1]["content"] == [{"type": "text", "text": "Go on."}]
    assert shape_messages(image, Capabilities(**ALL)) == image


def test_calls_may_be_flat():
    """Name and arguments stand in the call itself where the template reads them there."""
    call = shape(requires_flat_calls=True)[2]["tool_calls"][0]

    assert (call["name"], call["arguments"]) == ("f", {"k": 1})


def test_context_uses_the_template_s_names():
    """Tools, thinking switch and required variables come under the names that the template reads."""
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
