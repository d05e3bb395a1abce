"""Evidence for a format: the comparisons, their two texts, and the rule that decided."""

from __future__ import annotations

from operator import attrgetter

import pytest
from cases import beside, case_rows, cases

from unrender import ChatTemplate
from unrender.analysis import Analysis, Evidence, Shown

SOURCE = beside(__file__, "source.jinja")


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return ChatTemplate.from_string(SOURCE).analysis


@cases
def test_a_comparison_has_its_two_texts(analysis, comparison, part, left, right):
    """A comparison has two different texts, and a finding."""
    item = {(item.comparison, item.part): item for item in analysis.evidence}[comparison, part]

    assert (item.left.what, item.right.what) == (left, right)
    assert item.left.text != item.right.text
    assert item.finding


def test_all_comparisons_are_shown(analysis, request):
    """Every comparison has a part that can be looked up in the format. Some have a rule."""
    shown = analysis.evidence
    rows = [row for row in case_rows(request.path.with_name("cases.jsonl")) if "comparison" in row]

    assert {(item.comparison, item.part) for item in shown} == {(row["comparison"], row["part"]) for row in rows}
    assert attrgetter(shown[0].part)(analysis.format) == analysis.format.turn.headers
    assert {item.comparison for item in shown if item.rule} == {"R1", "C1", "T1", "T2", "T5", "T6", "A1", "A3"}


def test_split_gives_both_texts_again():
    """The common and different parts add up to both texts."""
    left, right = Shown(what="", text="a b c"), Shown(what="", text="a x c")
    split = Evidence(part="", comparison="", finding="", left=left, right=right).split

    assert (split.prefix, split.left, split.right, split.suffix) == ("a ", "b", "x", " c")
