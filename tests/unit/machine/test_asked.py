"""What a request asks of calls binds the reading: delivered and reported when lenient, refused when strict."""

from __future__ import annotations

from typing import Any

import pytest
from splitting import fed

from unrender.errors import MalformedOutput
from unrender.formats import declared_format
from unrender.machine.events import Malformed
from unrender.messages.wire import Request, Tool, ToolChoice
from unrender.parser.streaming import Parser

TOOLS = (Tool(name="now"), Tool(name="then"))
FORMAT = declared_format("tool-call-json")
NOW, THEN = (f'<tool_call>\n{{"name": "{name}", "arguments": {{}}}}\n</tool_call>\n' for name in ("now", "then"))
NAMED = Request(tools=TOOLS, tool_choice=ToolChoice.NAMED, named_tool="now")
REQUIRED = Request(tools=TOOLS, tool_choice=ToolChoice.REQUIRED)
ONE = Request(tools=TOOLS, parallel_tool_calls=False)
SAID_NOTHING = "Let me not."


def reported(
    request: Request, text: str, size: int, reason: str | None = None
) -> tuple[list[tuple[Any, ...]], list[str]]:
    parser = Parser(FORMAT, request)
    events = [event for at in range(0, len(text), size) for event in parser.feed(text[at : at + size])]
    events += parser.finish(reason)
    found = [(event.text, event.position, event.expected) for event in events if isinstance(event, Malformed)]
    return found, [call.name for call in parser.message.tool_calls]


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    ("request_", "text", "expected", "names"),
    [
        (REQUIRED, SAID_NOTHING, [("", len(SAID_NOTHING), "a call of one of the tools")], []),
        (NAMED, SAID_NOTHING, [("", len(SAID_NOTHING), "a call of 'now'")], []),
        (NAMED, THEN, [("then", 0, "a call of 'now'")], ["then"]),
        (NAMED, NOW + NOW, [("now", len(NOW), "no more than one call")], ["now", "now"]),
        (ONE, NOW + THEN, [("then", len(NOW), "no more than one call")], ["now", "then"]),
        (ONE, NOW, [], ["now"]),
        (NAMED, NOW, [], ["now"]),
        (REQUIRED, NOW + THEN, [], ["now", "then"]),
        (Request(tools=TOOLS), NOW + THEN, [], ["now", "then"]),
        (Request(tools=TOOLS), SAID_NOTHING, [], []),
        (Request(tools=TOOLS, tool_choice=ToolChoice.NONE), SAID_NOTHING, [], []),
    ],
)
def test_the_request_binds_the_reading(
    request_: Request, text: str, expected: list[tuple[Any, ...]], names: list[str], size: int
) -> None:
    """What was not asked for is delivered and reported at its place in any chunks, and refused by a strict parser."""
    assert reported(request_, text, size) == (expected, names)
    parser = Parser(FORMAT, request_, strict=True)
    if not expected:
        fed(parser, [text])
        return
    with pytest.raises(MalformedOutput) as caught:
        fed(parser, [text])
    assert (caught.value.position, caught.value.expected) == expected[0][1:]


def test_an_answer_that_was_cut_off_misses_no_call() -> None:
    """The call may have been still to come."""
    assert reported(REQUIRED, SAID_NOTHING, 5, "length") == ([], [])


@pytest.mark.parametrize("value", [None, b"", 3])
def test_only_text_is_fed(value: Any) -> None:
    """Bytes and None are errors of the caller, named at once."""
    with pytest.raises(TypeError, match=r"feed\(\): expected text, found"):
        Parser(FORMAT, ONE).feed(value)
