"""Inputs that once failed in fuzzing and hunting stay fixed: `fuzz/regressions/`, one input per file."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import cases
from importing import module_at
from properties.families import REQUEST
from properties.invariants import check, check_strict

from unrender import Parser
from unrender.format import CallSyntax, Format, Slot, Spelling
from unrender.testing import numbered_id

FUZZ = Path(__file__).resolve().parents[2] / "fuzz"


TARGET = module_at(FUZZ / "parse.py")


@pytest.mark.parametrize("path", sorted((FUZZ / "regressions").iterdir()), ids=lambda path: path.name)
def test_a_regression_stays_fixed(path: Path) -> None:
    """An input that once broke a guarantee keeps all of them."""
    TARGET.check_promises(path.read_bytes())


def test_the_seeds_hold() -> None:
    """The inputs that fuzzing starts from keep every promise."""
    for data in TARGET.seeds().values():
        TARGET.check_promises(data)


@cases
def test_a_marker_inside_half_a_marker_waits_for_it(text: str) -> None:
    """A marker isn't matched while an earlier, overlapping text may still become a longer marker."""
    tools = CallSyntax(
        section_start="<|tool_calls_begin|>",
        section_end="<|tool_calls_end|>",
        call_start="<|tool_call_begin|>",
        call_end="<|tool_call_end|>",
        function=("function<|tool_sep|>", Slot.NAME, "\n", Slot.ARGUMENTS),
    )
    spelling = Spelling(marker="<|tool_calls_begin|>", others=("<|tool calls begin|>",))
    format = Format(tools=tools, spellings=(spelling,))

    check(lambda: Parser(format, REQUEST, ids=numbered_id), text)
    check_strict(lambda: Parser(format, REQUEST, strict=True, ids=numbered_id), text)
