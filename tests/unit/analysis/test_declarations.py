"""Tests of merging a derived format with a declared one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unrender import ChatTemplate
from unrender.format import CallSyntax, Content, ContentMode, Format, Reasoning, ReasoningMode, Slot, Spelling
from unrender.format.declared import Declared, declared_formats, with_declared

THINK = Reasoning(mode=ReasoningMode.TAG_BASED, start="<r>", end="</r>")
OTHER = replace(THINK, start="<t>", end="</t>")
SAY = Content(mode=ContentMode.ALWAYS_WRAPPED, start="<say>", end="</say>")
CALL = CallSyntax(call_start="<c>", call_end="</c>", function=(Slot.NAME, ":", Slot.ARGUMENTS))
SAME = replace(CALL, call_start="<c>\n")
KIND = replace(CALL, call_start="<k>", call_end="</k>")
SPELLING = Spelling(marker="<c>", others=("<C>",))


def declared(**parts):
    return Declared(name="ours", why="for a test", format=Format(**parts))


def test_what_was_derived_stays():
    """Derived reasoning, content and calls are kept. A different declared call syntax is tolerated."""
    derived = Format(reasoning=THINK, content=SAY, tools=CALL)
    added = declared(reasoning=OTHER, content=replace(SAY, start="<x>", end="</x>"), tolerated=(KIND, SAME, KIND))

    merged = with_declared(derived, added)

    assert (merged.reasoning, merged.content, merged.tools) == (THINK, SAY, CALL)
    assert merged.tolerated == (KIND,)
    assert merged.declared == ("ours",)


def test_what_is_missing_is_filled():
    """Each part that wasn't derived is taken from the declared format."""
    merged = with_declared(
        Format(), declared(reasoning=OTHER, content=SAY, tools=CALL, spellings=(SPELLING,), ignored=("<i>",))
    )

    assert (merged.reasoning, merged.content, merged.tools) == (OTHER, SAY, CALL)
    assert (merged.spellings, merged.ignored) == ((SPELLING,), ("<i>",))
    assert with_declared(Format(content=SAY), declared(ignored=("<i>",))).content == SAY


def test_what_adds_nothing_is_not_named():
    """A declared format that adds nothing leaves the format unchanged, without duplicate spellings."""
    derived = Format(tools=CALL, spellings=(SPELLING,), ignored=("<i>",))

    assert with_declared(derived, declared(tolerated=(SAME,), spellings=(SPELLING,), ignored=("<i>",))) == derived


@pytest.mark.parametrize("item", [item for item in declared_formats() if item.evidence], ids=lambda item: item.name)
def test_evidence_in_the_source_decides(item):
    """A declared format is added if its evidence is in the source, and only then."""
    evidence = item.evidence
    source = " ".join((*evidence.all, *evidence.any))

    assert (
        evidence.found_in(source) == (item.name in ChatTemplate.from_string(f"{{{{ {source!r} }}}}").format.declared)
        or item.format == Format()
    )
