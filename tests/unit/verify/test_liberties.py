"""Markers in generated answers that the template never writes there, and variations that are allowed."""

from __future__ import annotations

from dataclasses import replace

from cases import cases
from unit.verify.conftest import sound, template_named

from unrender import Turn
from unrender.verify.grammars import unwritten
from unrender.verify.renditions import Candidate

CALL = '<call name="find_place">{"text": "Rome"}</call>'


def found(candidate: Candidate, text: str) -> str:
    return unwritten(candidate, Turn(prompt="", request=candidate.request, format=candidate.format), text)


@cases
def test_a_liberty_counts_as_written(text):
    """A grammar may write layout, headers and empty parts that the template doesn't write."""
    assert found(sound(), text) == ""


@cases
def test_what_ends_reasoning_is_never_before_calls(text, marker):
    """If calls are inside reasoning, the end of reasoning starts content."""
    assert found(Candidate.of(template_named("words-as-markers")), text).split(" ")[0].strip() == marker


def test_a_marker_that_no_answer_has_is_found():
    """If the format's calls end in an unknown marker, the marker is reported."""
    tools = replace(sound().format.tools, call_end="<done>")
    candidate = replace(sound(), format=replace(sound().format, tools=tools, tolerated=()))

    assert found(candidate, f"{CALL}<done>") == "<done>"
