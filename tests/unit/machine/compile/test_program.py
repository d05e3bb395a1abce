"""The programs of hand-made formats, instruction by instruction: a line that changes is a text that is read otherwise.

When one is meant: `python3 scripts/golden_programs.py`, and say why in the commit.
"""

from __future__ import annotations

import golden_programs
import pytest
from golden_programs import Compiled
from splitting import fed, splits

from unrender.format import CallSyntax, Format, Slot, ToolMode, TurnTexts
from unrender.messages.wire import Request, Tool
from unrender.parser.streaming import Parser


@pytest.mark.parametrize("compiled", [*golden_programs.compiled()], ids=lambda compiled: compiled.name)
def test_a_format_is_compiled_as_recorded(compiled: Compiled) -> None:
    """Every instruction, what it holds, and where it leads."""
    assert compiled.lines() == compiled.path.read_text("utf-8").splitlines()


def test_no_program_is_left_over() -> None:
    """Each file is the program of a format."""
    assert {compiled.path for compiled in golden_programs.compiled()} == set(golden_programs.PROGRAMS.glob("*.txt"))


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
