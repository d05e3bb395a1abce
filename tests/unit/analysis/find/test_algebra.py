"""Solving rows of items for their literals."""

from __future__ import annotations

import pytest

from unrender.analysis.find.split import solve


@pytest.mark.parametrize(
    ("before", "between", "after", "expected"),
    [
        (["<c>\n"], "\n</c>\n<c>\n", ["\n</c>"], ("<c>\n", "\n</c>", "\n")),
        (["[CALLS]["], ", ", ["]"], ("", "", ", ")),
        (["[CALL]"], "[CALL]", [""], ("[CALL]", "", "")),
        (["<s><c>", "text<c>"], "</c><c>", ["</c></s>"], ("<c>", "</c>", "")),
        (["f("], ", ", [")"], ("", "", ", ")),
    ],
)
def test_literals_are_solved(before, between, after, expected):
    """Prefix, suffix and separator are what repeats, what repeats, and what is left."""
    solution = solve(before, between, after)

    assert (solution.prefix, solution.suffix, solution.separator) == expected


def test_overlap_is_cut_between_tags():
    """A token that is before every tag belongs to the tag after it, and the bracket to the tag before it."""
    solution = solve(['">]<~[<'], ">]<~[<", [">]<~[</call>"])

    assert (solution.suffix, solution.prefix) == (">", "]<~[<")


def test_overlap_is_cut_after_a_line_break():
    """White space between two items ends the first."""
    solution = solve([">\n<p "], "</p>\n<p ", ["</p>\n</f>"])

    assert (solution.suffix, solution.prefix) == ("</p>\n", "<p ")


def test_overlap_never_leaves_a_marker_behind():
    """A composite marker stays whole."""
    solution = solve(
        ["<|open|>all<|sep|><|open|>one n="],
        "<|close|>one<|sep|><|open|>one n=",
        ["<|close|>one<|sep|><|close|>all<|sep|>"],
    )

    assert (solution.suffix, solution.prefix) == ("<|close|>one<|sep|>", "<|open|>one n=")


@pytest.mark.parametrize(
    ("before", "between", "after", "expected"),
    [
        (["a<c>"], "</c>\n<c>", ["</c>\n"], ("<c>", "</c>\n", "")),
        (["<a><b>"], "<a><b>", ["<a><b>"], ("<a><b>", "", "")),
        (["x<c>"], "><c>", ["></d>"], ("<c>", ">", "")),
        (["\n"], "\n", ["\n"], ("", "\n", "")),
        ([" x"], " x", [" x"], ("x", " ", "")),
        (["<|a|>w<|b|>"], "<|a|>w<|b|>", ["<|a|>w<|b|>"], ("<|a|>w<|b|>", "", "")),
        (["-> "], "-> ", ["-> "], ("", "-> ", "")),
        (["a, "], ", ", [", b"], (", ", "", "")),
        (["1", "2"], "3", ["4"], ("", "", "3")),
    ],
)
def test_border_lies_where_it_is_least_awkward(before, between, after, expected):
    """Where prefix and suffix overlap, the border is not inside a marker, and comes after white space."""
    solution = solve(before, between, after)

    assert (solution.prefix, solution.suffix, solution.separator) == expected
