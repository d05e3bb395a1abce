"""A derived text that no Format can contain is replaced by a weaker claim, and reported."""

from __future__ import annotations

from properties.families import TAG_AND_JSON, THINK

from unrender.format import CallSyntax, Content, ContentMode, Format, Reasoning, ReasoningMode, TurnTexts
from unrender.proof.claims import possible_format

TOOLS = TAG_AND_JSON.format.tools


def test_a_field_goes_before_its_part() -> None:
    """If one field of a turn is invalid, only that field is dropped."""
    found, given_up = possible_format(Format(), turn=TurnTexts(headers=("<h>",), end="x" * 40_000), reasoning=THINK)

    assert found == Format(turn=TurnTexts(headers=("<h>",)), reasoning=THINK)
    assert len(given_up) == 1
    assert given_up[0].startswith("turn.end: was given up")


def test_a_part_goes_that_its_field_is_needed_for() -> None:
    """Reasoning without a closing marker is dropped as a whole."""
    blank = Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end="\n")
    wrapped = Content(mode=ContentMode.ALWAYS_WRAPPED, start="<c>", end="</c>")

    found, given_up = possible_format(Format(tools=TOOLS), reasoning=blank, content=wrapped)

    assert found == Format(tools=TOOLS, content=wrapped)
    assert [said.partition(":")[0] for said in given_up] == ["reasoning.end", "reasoning.end"]


def test_what_depends_on_a_part_goes_with_it() -> None:
    """If calls are dropped, reasoning no longer contains calls."""
    holding = Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end="</think>", holds_calls=True)

    found, given_up = possible_format(Format(tools=TOOLS, reasoning=holding), tools=CallSyntax())

    assert (found.tools, found.reasoning.holds_calls, found.reasoning.end) == (CallSyntax(), False, "</think>")
    assert len(given_up) == 1


def test_what_no_field_is_to_blame_for_goes_together() -> None:
    """Markers that are too long together are all dropped, since nothing shows which of them is wrong."""
    turn = TurnTexts(headers=tuple(f"<{letter * 900}>" for letter in "abcdefghijklmnopqrs"))

    found, given_up = possible_format(Format(reasoning=THINK), turn=turn)

    assert found == Format(reasoning=THINK)
    assert len(given_up) == 1
    assert given_up[0].endswith("and everything found with it was given up")
