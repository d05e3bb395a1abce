"""Bringing conversations into a template's shape."""

from __future__ import annotations

from copy import deepcopy

import pytest

from unrender.analysis import Capabilities, ReasoningPlace, shape_context, shape_messages
from unrender.rendering.shape import call_ids

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
    """`tool_calls: []` is not a call, and some templates would write an empty section for it."""
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
    """Name and arguments are in the call itself where the template reads them there."""
    call = shape(requires_flat_calls=True)[2]["tool_calls"][0]

    assert (call["name"], call["arguments"]) == ("f", {"k": 1})


def test_values_may_have_to_be_texts():
    """Where a template takes strings alone, other values are given as JSON text."""
    call = shape(requires_text_values=True)[2]["tool_calls"][0]

    assert call["function"]["arguments"] == {"k": "1"}


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


READS = {"reasoning_place": ReasoningPlace.FIELD, "reasoning_field": "t"}
BEING = {"reasoning_place": ReasoningPlace.BLOCK, "reasoning_field": "t"}
PART = {"reasoning_place": ReasoningPlace.PART, "reasoning_field": "t"}
WRITTEN = {"id": "a", "function": {"name": "f", "arguments": "{}"}}
SHAPED = {"id": "a", "type": "function", "function": {"name": "f", "arguments": {}}}
MESSAGES = {
    "content goes where reasoning and a call leave no room": (
        {"content": "x", "reasoning": "r", "tool_calls": [WRITTEN]},
        READS | {"supports_content_with_reasoning_and_calls": False},
        {"content": "", "tool_calls": [SHAPED], "t": "r"},
    ),
    "content stays beside a call alone": (
        {"content": "x", "tool_calls": [WRITTEN]},
        READS | {"supports_content_with_reasoning_and_calls": False},
        {"content": "x", "tool_calls": [SHAPED]},
    ),
    "content stays beside reasoning alone": (
        {"content": "x", "reasoning": "r"},
        READS | {"supports_content_with_reasoning_and_calls": False},
        {"content": "x", "t": "r"},
    ),
    "no content at all is empty, not null": ({"content": None}, {"requires_nonnull_content": False}, {"content": ""}),
    "reasoning is the only part": (
        {"content": "", "reasoning": "r"},
        PART,
        {"content": [{"type": "t", "t": "r", "text": "r"}]},
    ),
    "reasoning before other parts": (
        {"content": [{"type": "text", "text": "x"}], "reasoning": "r"},
        PART,
        {"content": [{"type": "t", "t": "r", "text": "r"}, {"type": "text", "text": "x"}]},
    ),
    "blocks of reasoning and content": (
        {"content": "x", "reasoning": "r"},
        BEING,
        {"content": {"blocks": [{"type": "t", "text": "r"}, {"type": "response", "text": "x"}]}},
    ),
    "a block of reasoning alone": (
        {"content": "", "reasoning": "r"},
        BEING,
        {"content": {"blocks": [{"type": "t", "text": "r"}]}},
    ),
    "no place for reasoning": ({"content": "x", "reasoning": "r"}, {}, {"content": "x"}),
    "reasoning that is not text": ({"content": "x", "reasoning": ["r"]}, READS, {"content": "x"}),
    "the first field with text counts": (
        {"content": "x", "reasoning_content": "", "thinking": "r"},
        READS,
        {"content": "x", "t": "r"},
    ),
    "no arguments as text": (
        {"tool_calls": [{"function": {"name": "f"}}]},
        {"supports_object_arguments": False},
        {"content": "", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": "{}"}}]},
    ),
    "arguments as text keep their letters": (
        {"tool_calls": [{"function": {"name": "f", "arguments": {"k": "ä"}}}]},
        {"supports_object_arguments": False},
        {"content": "", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": '{"k": "ä"}'}}]},
    ),
    "a list is not arguments, and nothing is an empty object": (
        {"tool_calls": [{"function": {"name": "f", "arguments": "[1]"}}, {"function": {"name": "f", "arguments": ""}}]},
        {},
        {
            "content": "",
            "tool_calls": [
                {"type": "function", "function": {"name": "f", "arguments": "[1]"}},
                {"type": "function", "function": {"name": "f", "arguments": {}}},
            ],
        },
    ),
    "what is not a call is left out": (
        {"tool_calls": ({"function": "f", "type": "other"}, "x")},
        {},
        {"content": "", "tool_calls": [{"type": "other", "function": {}}]},
    ),
    "calls that are not a list": ({"content": "x", "tool_calls": "x"}, {}, {"content": "x"}),
}


@pytest.mark.parametrize(("message", "changes", "expected"), MESSAGES.values(), ids=MESSAGES)
def test_an_answer_takes_the_template_s_shape(message, changes, expected):
    """Each clause of an answer's shape, with a message that needs it."""
    shaped = shape_messages([{"role": "assistant", **message}], Capabilities(**(ALL | changes)))

    assert shaped == [{"role": "assistant", **expected}]


def test_only_results_without_a_name_get_one():
    """A name that is given stays; an id that nobody called gives none; other messages get none."""
    called = {"role": "assistant", "tool_calls": [WRITTEN]}
    results = [
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "1"},
        {"role": "tool", "tool_call_id": "a", "name": "own", "content": "1"},
        {"role": "user", "tool_call_id": "a", "content": "1"},
    ]

    shaped = shape_messages([called, *results], Capabilities(**ALL))[1:]

    assert [message.get("name") for message in shaped] == ["f", None, "own", None]


def test_system_messages_wait_for_the_next_question():
    """Several are put before the next question in order; the last ones become a question of their own."""
    system = {"role": "system", "content": "s"}
    developer = {"role": "developer", "content": [{"type": "text", "text": "d"}]}
    answer, first, second = {"role": "assistant", "content": "a"}, *({"role": "user", "content": text} for text in "uv")
    capabilities = Capabilities(**(ALL | {"supports_system_role": False}))

    assert shape_messages([system, developer, answer, first, second], capabilities) == [
        answer,
        {"role": "user", "content": "s\n\nd\n\nu"},
        second,
    ]
    mixed = {
        "role": "system",
        "content": ["no part", {"type": "image", "text": "no text"}, {"type": "text", "text": "s"}],
    }
    assert shape_messages([mixed, first], capabilities) == [{"role": "user", "content": "s\n\nu"}]
    assert shape_messages([first, system, developer], capabilities) == [first, {"role": "user", "content": "s\n\nd"}]


def test_short_ids_are_made_of_what_is_there():
    """Nine letters or digits stay; anything else is hashed; a call without an id gets one by its number."""
    calls = [{"id": text, "function": {"name": "f"}} for text in ("abcdefghi", "abcdefgh-", "abcdefgh")]
    messages = [
        {"role": "assistant", "tool_calls": [*calls, {"function": {"name": "f"}}]},
        {"role": "tool", "tool_call_id": "abcdefgh-", "content": ""},
        {"role": "tool", "tool_call_id": "unheard", "content": ""},
    ]

    shaped = shape_messages(messages, Capabilities(**ALL, requires_short_id=True))
    ids = [call["id"] for call in shaped[0]["tool_calls"]]

    assert ids[0] == "abcdefghi"
    assert ids[1] == shaped[1]["tool_call_id"] == "49845d8c7"
    assert ids[3] == "call00003"
    assert {len(text) for text in (*ids, shaped[2]["tool_call_id"])} == {9}
    assert len({*ids, shaped[2]["tool_call_id"]}) == 5


def test_ids_with_names_are_kept_once():
    """An id that holds the name is kept where it was not used before; all others are counted on."""
    given = ("f:3", "ns.f:4", "f:3", "xf:3", "functions.f:5")
    answers = [
        {"role": "assistant", "tool_calls": [{"id": text, "function": {"name": "f"}} for text in given]},
        {"role": "assistant", "tool_calls": [{"id": "q", "function": {"name": "f"}}]},
    ]

    shaped = shape_messages(answers, Capabilities(**ALL, requires_name_in_id=True))

    assert [call["id"] for message in shaped for call in message["tool_calls"]] == [
        "f:3",
        "ns.f:4",
        "functions.f:2",
        "functions.f:3",
        "functions.f:5",
        "functions.f:6",
    ]


def test_parts_become_text_only_where_all_are_text():
    """An image keeps its parts; so does a template that reads parts; a part without text is empty; null stays."""
    image = [{"type": "text", "text": "a"}, {"type": "image"}]
    text = [{"type": "text", "text": "a"}]

    def content(value, **changes):
        return shape_messages([{"role": "user", "content": value}], Capabilities(**(ALL | changes)))[0]["content"]

    assert content(image) == image
    assert content(text, supports_typed_content=True) == text
    assert content([{"type": "text"}]) == ""
    assert content(None, requires_typed_content=True) is None
    assert content(text, requires_typed_content=True, supports_typed_content=True) == text


def test_parts_of_an_answer_become_text_unless_the_template_wants_parts():
    """What a template does with the parts of a question says nothing about those of an answer."""
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]

    def content(**changes):
        messages = [{"role": "assistant", "content": parts}]
        return shape_messages(messages, Capabilities(**(ALL | changes)))[0]["content"]

    assert content(supports_typed_content=True) == "ab"
    assert content(supports_typed_content=True, requires_typed_content=True) == parts


def test_ids_of_a_conversation_are_listed():
    """One for each call, nothing for a call without."""
    assert call_ids([{"tool_calls": [WRITTEN, {"function": {}}]}, {"role": "user"}]) == ("a", "")


def test_context_leaves_out_what_nobody_needs():
    """Without tools there is no variable for them; the switch is set when it is asked for."""
    switched = Capabilities(thinking_on=(("a", True),), thinking_off=(("a", False),))

    assert shape_context(None, Capabilities()) == shape_context([], switched) == {}
    assert shape_context([{}], Capabilities(), thinking=True) == {"tools": [{}]}
    assert shape_context(None, switched, thinking=True) == {"a": True}
    assert shape_context([{"a": "ä"}], Capabilities(tools_as_text=True)) == {"tools": '[{"a": "ä"}]'}


def test_answers_of_one_conversation_have_one_shape():
    """Where one answer has blocks, all have, with calls beside them as before; other messages stay text."""
    said = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "x", "reasoning_content": "r"},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "assistant", "content": "y"},
    ]

    shaped = shape_messages(said, Capabilities(**(ALL | BEING)))

    assert [message["content"] for message in shaped] == [
        "q",
        {"blocks": [{"type": "t", "text": "r"}, {"type": "response", "text": "x"}]},
        {"blocks": []},
        {"blocks": [{"type": "response", "text": "y"}]},
    ]
    assert [call["id"] for call in shaped[2]["tool_calls"]] == [CALL["id"]]
