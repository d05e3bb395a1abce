"""Patterns are matched as `re` matches them, without its exponential cases."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrender.errors import GrammarError
from unrender.nodes import Chars, Choice, Literal, Optional, Ref, Repeat, Sequence
from unrender.nodes import patterns as matching
from unrender.nodes.patterns import matches, read_pattern

PIECES = [
    "a",
    "b",
    "[ab]",
    "[^a]",
    ".",
    "(a|bc)",
    "(?:ab)*",
    "a?",
    "b+",
    "c{2}",
    "a{1,3}",
    "(a+)+",
    "(|b)",
    r"\d",
    "^",
    "$",
]


@given(
    st.lists(st.sampled_from(PIECES[:-2]), max_size=6),
    st.text(alphabet="abc1", max_size=8),
    st.booleans(),
    st.booleans(),
)
def test_a_pattern_matches_what_re_matches(pieces, text, starts, ends):
    """The verdict is that of Python's own regular expressions."""
    pattern = ("^" if starts else "") + "".join(pieces) + ("$" if ends else "")

    assert matches(read_pattern(pattern), text) == (re.search(pattern.replace("$", r"\Z"), text) is not None)


def test_nested_repetitions_take_linear_time():
    """What makes a backtracking engine hang is a few thousand steps."""
    assert not matches(read_pattern("^(a+)+$"), "a" * 20_000 + "b")
    assert matches(read_pattern("(a|a)*b"), "a" * 20_000 + "b")


def test_what_costs_too_much_counts_as_matched(monkeypatch):
    """Beyond the budget nothing is refused."""
    monkeypatch.setattr(matching, "MAX_WORK", 10)

    assert matches(read_pattern("^(a|b)*a(a|b){9}$"), "ab" * 50 + "c")


def test_the_cache_is_bounded(monkeypatch):
    """Many different texts leave no more sets of states after than the bound."""
    monkeypatch.setattr(matching, "MAX_KNOWN_STATES", 3)
    pattern = read_pattern("^.{0,20}x$")

    assert [matches(pattern, letter * 9 + "x") for letter in string.ascii_letters] == [True] * 52


def test_only_regular_nodes_are_matched():
    """A reference to a rule has no text of its own."""
    with pytest.raises(GrammarError, match="Ref"):
        matches(Ref("x"), "")


A = Literal("a")


@pytest.mark.parametrize(
    ("node", "matched", "refused"),
    [
        (Literal(""), [""], ["a"]),
        (Literal("ab"), ["ab"], ["", "a", "b", "abc"]),
        (Chars((("a", "c"), ("x", "x"))), ["a", "c", "x"], ["", "d", "ab"]),
        (Chars((("a", "c"),), negated=True), ["d", "\n"], ["a", "c", ""]),
        (Chars((("a", "a"),), minimum=2, maximum=3), ["aa", "aaa"], ["a", "aaaa", "ab"]),
        (Chars((("a", "a"),), minimum=0, maximum=1), ["", "a"], ["aa"]),
        (Chars((("a", "a"),), minimum=1, maximum=None), ["a", "aaaaa"], ["", "b"]),
        (Sequence((A, Literal("b"))), ["ab"], ["ba", "a"]),
        (Sequence(()), [""], ["a"]),
        (Choice((A, Literal("bc"))), ["a", "bc"], ["b", "abc", ""]),
        (Optional(A), ["", "a"], ["aa"]),
        (Repeat(A), ["", "a", "aaa"], ["b"]),
        (Repeat(A, 2, 3), ["aa", "aaa"], ["a", "aaaa"]),
        (Repeat(A, 2, None), ["aa", "aaaa"], ["", "a"]),
        (Repeat(A, 0, 0), [""], ["a"]),
        (Repeat(Literal("ab"), 1, 2), ["ab", "abab"], ["", "a", "ababab"]),
        (Repeat(Choice((A, Literal("bc"))), 2, 2), ["aa", "abc", "bcbc"], ["a", "bc", "aaa"]),
        (Repeat(Chars((("a", "a"),), minimum=2, maximum=2), 1, 2), ["aa", "aaaa"], ["a", "aaa"]),
    ],
)
def test_every_regular_node_is_matched(node, matched, refused):
    """The whole text, neither more nor less."""
    assert [text for text in (*matched, *refused) if matches(node, text)] == matched


@pytest.mark.parametrize("node", [Repeat(A, 0, None, Literal(",")), Sequence((A, Ref("x")))])
def test_what_is_not_regular_is_named(node):
    """Also inside of others."""
    with pytest.raises(GrammarError, match="is not part of a regular expression"):
        matches(node, "a")


def test_a_text_may_cost_as_much_as_the_bound(monkeypatch):
    """Each new character in a set of states costs as many steps as there are states."""
    node = Sequence((Literal("abc"), Literal("d")))
    monkeypatch.setattr(matching, "MAX_WORK", 4)

    assert not matches(node, "abcx")
    monkeypatch.setattr(matching, "MAX_WORK", 3)
    assert matches(Sequence((Literal("abc"), Literal("e"))), "abcx")
