"""Messages, tools and requests: immutable values and their OpenAI forms."""

from __future__ import annotations

from typing import get_args

import pytest
from message_rows import MESSAGES, read
from recipes import rows_of

from unrender import ChatTemplate, Message, RequestError, ToolCall
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
