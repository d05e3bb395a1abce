"""Messages from clients, read as in the rows of `tests/corpus/messages.jsonl`, and JSON values."""

from __future__ import annotations

from datetime import UTC, datetime
from types import MappingProxyType
from typing import get_args

import pytest
from message_rows import MESSAGES, read
from recipes import rows_of

from unrender import ChatTemplate, Message, RequestError, ToolCall
from unrender.json_values import check_values
from unrender.limits import MAX_DEPTH
from unrender.types import CallStatus, Request

TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
TEMPLATE = ChatTemplate.from_string("{{ messages[-1].content }}")
TOOLS = TEMPLATE.prepare_rendered(tools=[TOOL]).request.tools


def test_calls_are_sent_back_as_they_were_given() -> None:
    """A call that is still being written is left out. A streamed call that failed has its status."""
    calls = tuple(ToolCall(name=status, arguments_json="{}", id="i", status=status) for status in get_args(CallStatus))

    wire = Message(content="c", reasoning="r", tool_calls=calls).to_openai()

    assert [(call["function"]["name"], call.get("status")) for call in wire["tool_calls"]] == [
        ("complete", None),
        ("truncated", "truncated"),
        ("invalid", "invalid"),
    ]
    assert wire["reasoning_content"] == "r"


def test_empty_fields_are_left_out() -> None:
    """Content is always a string. Reasoning and calls are included only if they aren't empty."""
    assert Message().to_openai() == {"role": "assistant", "content": ""}


def test_what_people_send_is_read_as_the_row_says() -> None:
    """Each form of messages, tools, choices and arguments is read or rewritten. Errors name the place of a mistake."""
    for row in rows_of(MESSAGES):
        before = str(row)
        assert {key: row[key] for key in ("gives", "error") if key in row} == read(row), row
        assert str(row) == before


def test_a_required_call_needs_a_tool() -> None:
    """Requiring a call without tools is an error."""
    with pytest.raises(RequestError, match="needs at least one tool"):
        TEMPLATE.prepare_rendered(tool_choice="required")


def test_a_request_knows_its_tools() -> None:
    """Calls are allowed if there are tools or the tools are unknown, unless they are forbidden."""
    assert Request(tools=TOOLS).tool("f") == TOOLS[0]
    assert Request(tools=TOOLS).tool("g") is None
    assert [
        Request()._calls_allowed,
        Request(tools=None)._calls_allowed,
        Request(tools=TOOLS, tool_choice="none")._calls_allowed,
    ] == [False, True, False]


def nested(levels: int) -> list[object]:
    value: list[object] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        None,
        "text",
        datetime.now(UTC),
        {"a": [1, 2.5, True, None, ("x",)]},
        MappingProxyType({"a": {}}),
        nested(MAX_DEPTH),
    ],
)
def test_json_is_let_through(value: object) -> None:
    """Scalars, lists, tuples and objects with text keys are accepted. The outermost value may be any of them."""
    check_values(value, where="here")


WRONG = {
    "not JSON": ({"a": [{1}]}, "here.a[0]: expected JSON, found set"),
    "a key that is not text": ({"a": [{"b": {5: 1}}]}, "here.a[0].b: expected text as keys, found 5"),
    "too deep": (
        nested(MAX_DEPTH + 1),
        f"here{'[0]' * 6}…: expected at most 500 levels of lists and objects, found more",
    ),
    "a long way": (
        {"a": {"b": {"c": {"d": {"e": {"f": {"g": {1}}}}}}}},
        "here.a.b.c.d.e.f…: expected JSON, found set",
    ),
}


@pytest.mark.parametrize(("value", "message"), WRONG.values(), ids=WRONG)
def test_the_place_is_named(value: object, message: str) -> None:
    """The error has the first six keys from the outside in, and what was expected there."""
    with pytest.raises(RequestError) as caught:
        check_values(value, where="here")

    assert str(caught.value) == message


def test_a_value_that_holds_itself_is_too_deep() -> None:
    """A value that contains itself is too deep, like any other value of that depth."""
    value: list[object] = []
    value.append(value)

    with pytest.raises(RequestError, match="at most 500 levels"):
        check_values(value, where="here")


def test_other_values_pass_where_json_is_not_asked_for() -> None:
    """Values that are only rendered may contain dates and keys other than text. Depth and size are still limited."""
    check_values([datetime.now(UTC), {5: "five"}], where="here", only_json=False)

    with pytest.raises(RequestError, match="at most 500 levels"):
        check_values(nested(MAX_DEPTH + 1), where="here", only_json=False)


def test_lists_and_objects_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The maximum number of lists and objects is accepted, but not one more."""
    monkeypatch.setattr("unrender.json_values.MAX_VALUES", 3)

    check_values([[], [], []], where="here")
    with pytest.raises(RequestError, match="here: expected at most 3 lists and objects, found more"):
        check_values([[], [[]], []], where="here")
