"""Tests of calls that a server left in a message's text."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from cases import cases, thinned
from vendor import vendor_cases

from unrender import Format, Message, RequestError
from unrender.batch import detect_format, rescue

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
PARIS = [("get_weather", {"city": "Paris"})]
JSON_CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
TAG_CALL = "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>"


def calls(message: Message) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments_json)) for call in message.tool_calls]


@cases
def test_calls_in_content_are_found(why: str, text: str) -> None:
    """A complete call of an offered tool is found in any syntax."""
    assert calls(rescue({"role": "assistant", "content": text}, [WEATHER])) == PARIS


@cases
def test_what_is_in_doubt_stays_text(text: str) -> None:
    """Text that may not be a call stays content, character for character."""
    found = rescue({"role": "assistant", "content": text}, [WEATHER])

    assert (found.content, found.tool_calls) == (text, ())
    assert detect_format(text, [WEATHER]) is None


@cases
def test_a_message_is_rescued_as_the_row_says(why: str, message: Any, tool: Any, found: list[Any]) -> None:
    """Content, reasoning and calls are as in the row."""
    rescued = rescue(message, [tool])

    assert [rescued.content, rescued.reasoning, [[*call] for call in calls(rescued)]] == found


def test_an_object_of_an_sdk_is_read() -> None:
    """A message object of a client library is treated like a dict."""
    message = SimpleNamespace(model_dump=lambda **_: {"role": "assistant", "content": JSON_CALL, "tool_calls": None})

    assert calls(rescue(message, [WEATHER])) == PARIS


def test_another_role_is_refused() -> None:
    """Only assistant messages are accepted."""
    with pytest.raises(RequestError, match="message.role: expected 'assistant', found 'user'"):
        rescue({"role": "user", "content": JSON_CALL}, [WEATHER])


def test_the_format_of_a_text_is_known() -> None:
    """The result is the format of the call in the text."""
    found = detect_format(TAG_CALL, [WEATHER])

    assert isinstance(found, Format)
    assert "<function=" in found.tools.function


@thinned(9)
@pytest.mark.parametrize("name", ["drift", "drift-controls"])
def test_nothing_is_called_that_nobody_wrote(name: str, step: int) -> None:
    """Every call found in real answers, and in prose about calls, is one that a person annotated."""
    rows = vendor_cases(name)
    if not rows:
        pytest.skip("no drifted answers found")
    missed = 0
    for row in rows[::step]:
        found = calls(rescue({"role": "assistant", "content": row["text"]}, row["tools"]))
        wanted = [
            [(call["name"], call["arguments"]) for call in said["calls"]]
            for said in (row["wanted"], *row.get("also", ()))
        ]
        assert not found or found in wanted, row["id"]
        missed += not found and [] not in wanted
    assert missed <= 20 / step
