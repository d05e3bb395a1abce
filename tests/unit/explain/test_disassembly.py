"""A parser's program as lines that people read."""

from __future__ import annotations

from pathlib import Path

from unrender import ChatTemplate, Format, Parser
from unrender.explain.picture import Line, listing
from unrender.types import Request

TEMPLATE = Path(__file__).parents[2] / "templates" / "tagged-raw.jinja"


def test_addresses_are_the_programs() -> None:
    """There is a line for each instruction, at its address, with the instruction's name."""
    parser = Parser(ChatTemplate.from_file(TEMPLATE).format, Request(tools=None))

    lines = listing(parser)

    assert [line.address for line in lines] == list(range(len(parser._program_listing)))
    assert [line.name for line in lines] == [type(instruction).__name__ for instruction in parser._program_listing]


def test_a_line_says_what_an_instruction_holds() -> None:
    """Markers are in quotes, addresses are numbers, and what is left at its default is not shown."""
    parser = Parser(ChatTemplate.from_file(TEMPLATE).format, Request(tools=None))
    lines = [str(line).split(maxsplit=1)[1] for line in listing(parser)]

    assert "Lit  text='<val>'" in lines
    assert any(line.startswith("FreeText  role=content finder=<'") for line in lines)
    assert any(line.startswith("ReadValue  codec=Codec(strings=raw") for line in lines)
    assert not any("flow=" in line for line in lines)


def test_long_lists_are_cut() -> None:
    """Of many literals twelve are shown, and how many more there are."""
    parser = Parser(Format(), Request(tools=None))

    assert max(len(str(line)) for line in listing(parser)) < 1_000


def test_a_line_in_text() -> None:
    """Address, name and fields are in columns; an instruction without fields has no space at its end."""
    assert str(Line(address=7, name="Halt", fields="")) == "   7  Halt"
