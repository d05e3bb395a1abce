"""Programs of formats whose markers begin alike: the right one is run."""

from __future__ import annotations

import pytest
from splitting import fed, splits

from unrender.format import CallSyntax, Format, Slot, ToolMode, TurnTexts
from unrender.messages.wire import Request, Tool
from unrender.parser.streaming import Parser


@pytest.mark.parametrize("ends", [("@n",), ("@no",), ("@now",), ("@n", "@no", "@now")])
def test_a_longer_marker_hides_no_call(ends: tuple[str, ...]) -> None:
    """Where the opener of a call begins another marker, the call is tried first."""
    tools = CallSyntax(mode=ToolMode.TAG_WITH_JSON, function=("@", Slot.NAME, " ", Slot.ARGUMENTS, ";"))
    format = Format(turn=TurnTexts(ends=ends), tools=tools)

    for chunks in splits("Hi @now {}; and so"):
        parser = Parser(format, Request(tools=(Tool(name="now"),)))
        fed(parser, chunks)
        assert [call.name for call in parser.message.tool_calls] == ["now"]
        assert parser.message.content == "Hi  and so"
