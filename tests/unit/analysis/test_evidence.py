"""Evidence for a format: the comparisons, their two texts, and the rule that decided."""

from __future__ import annotations

from operator import attrgetter

import pytest
from cases import beside

from unrender import ChatTemplate
from unrender.analysis import Analysis, Evidence, Shown

SOURCE = beside(__file__, "source.jinja")
SIDES = {
    ("", "turn.headers"): ("the generation prompt", "an answer of content, with its header"),
    ("R1", "reasoning"): ("content", "reasoning and content"),
    ("R2", "turn.prefill"): ("the generation prompt", "the generation prompt with thinking off"),
    ("R3", "reasoning.mode"): ("reasoning and content", "reasoning and a call"),
    ("C1", "content"): ("content", "reasoning and content"),
    ("C1", "content_with_calls"): ("content", "content and a call"),
    ("T1", "tools.mode"): ("content", "a call"),
    ("T2", "tools.call_start"): ("a call", "two calls"),
    ("T3", "tools.function"): ("a call", "a call of another function"),
    ("T4", "tools.arguments.codec"): ("a call", "a call with values of several types"),
    ("T5", "tools.arguments.separator"): ("a call", "a call with two arguments"),
    ("T6", "tools.arguments.when_empty"): ("a call", "a call without arguments"),
    ("T7", "tools.call_id"): ("a call", "a call with another id"),
    ("A1", "tools.arguments.entry"): ("a call", "a call with another argument"),
    ("A2", "tools.arguments.entry"): ("a call", "a call with another value"),
    ("A3", "tools.arguments.codec"): ("a call", "a call with the same digits as a string"),
}


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return ChatTemplate.from_string(SOURCE).analysis


def test_each_comparison_has_its_two_texts(analysis):
    """Every comparison has two different texts, a finding, and a part that can be looked up in the format."""
    shown = analysis.evidence

    assert {(item.comparison, item.part): (item.left.what, item.right.what) for item in shown} == SIDES
    assert all(item.left.text != item.right.text and item.finding for item in shown)
    assert attrgetter(shown[0].part)(analysis.format) == analysis.format.turn.headers
    assert {item.comparison for item in shown if item.rule} == {"R1", "C1", "T1", "T2", "T5", "T6", "A1", "A3"}


def test_split_gives_both_texts_again():
    """The common and different parts add up to both texts."""
    left, right = Shown(what="", text="a b c"), Shown(what="", text="a x c")
    split = Evidence(part="", comparison="", finding="", left=left, right=right).split

    assert (split.prefix, split.left, split.right, split.suffix) == ("a ", "b", "x", " c")
