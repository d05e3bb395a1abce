"""JSON Schema's regular expressions: parsed into nodes, written and matched. Rows: `tests/corpus/patterns.jsonl`.

In a row's `node`, `…` is any text. `unsupported` is a construct that no grammar can express, and `broken` an invalid
pattern.
"""

from __future__ import annotations

import re
import string

import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from lines import generates, node_line
from recipes import ANALYSIS, rows_of
from remainders import node_of
from tables import table

from unrender import GrammarError
from unrender.grammar import literal, ref, repeat, sequence
from unrender.nodes import Chars
from unrender.nodes import patterns as module
from unrender.nodes.patterns import UnsupportedPattern, complement, matches, read_pattern, write_pattern

PATTERNS = [row for row in rows_of(ANALYSIS.with_name("patterns.jsonl")) if "pattern" in row]
TEXTS = table("test_patterns")["TEXTS"]
PIECES = ["a", "b", "[ab]", "[^a]", ".", "(a|bc)", "(?:ab)*", "a?", "b+", "c{2}", "a{1,3}", "(a+)+", "(|b)", r"\d"]
A = literal("a")


def found(pattern):
    """Return the parsed pattern in a row's notation."""
    try:
        return {"node": node_line(read_pattern(pattern)).replace("([\\s\\S]){0,}", "…")}
    except UnsupportedPattern as reason:
        return {"unsupported": str(reason)}
    except GrammarError as error:
        return {"broken": str(error).removeprefix(f"pattern {pattern!r}: ")}


def test_each_construct_is_read_as_its_row_says():
    """Without an anchor, any text may precede or follow. Rows also have unsupported constructs and errors."""
    rows = [row for row in PATTERNS if {"node", "unsupported", "broken"} & set(row)]

    assert [{"pattern": row["pattern"], **found(row["pattern"])} for row in rows] == rows


def test_a_pattern_is_written_in_the_syntax_that_all_share():
    """Bounds are short where possible, and special characters are escaped."""
    rows = [row for row in PATTERNS if "written" in row]

    assert [write_pattern(read_pattern(row["pattern"])) for row in rows] == [row["written"] for row in rows]


@pytest.mark.parametrize("pattern", [row["pattern"] for row in PATTERNS if "…" not in row.get("node", "…")])
def test_a_pattern_generates_what_re_finds(pattern):
    """The node generates a text if and only if Python's `re` finds the pattern in it. Both ways of matching agree."""
    if re.search(r"\\u\{|\\v|\{,|\[\^\]|\\b|\\x7f|-\\d|\\d-", pattern):  # Python's syntax differs here.
        return
    expected = re.compile(re.sub(r"\(\?<(?=\w)", "(?P<", pattern.replace("$", r"\Z")), re.ASCII)
    node = read_pattern(pattern)

    for text in TEXTS:
        assert generates(node, text) == matches(node, text) == bool(expected.search(text)), text


@given(st.lists(st.sampled_from(PIECES), max_size=6), st.text("abc1", max_size=8), st.booleans(), st.booleans())
def test_a_pattern_matches_what_re_matches(pieces, text, starts, ends):
    """The result equals that of Python's own regular expressions."""
    pattern = ("^" if starts else "") + "".join(pieces) + ("$" if ends else "")

    assert matches(read_pattern(pattern), text) == (re.search(pattern.replace("$", r"\Z"), text) is not None)


def test_nested_repetitions_take_linear_time():
    """A pattern that hangs a backtracking engine takes a few thousand steps."""
    assert not matches(read_pattern("^(a+)+$"), "a" * 20_000 + "b")
    assert matches(read_pattern("(a|a)*b"), "a" * 20_000 + "b")


def test_what_costs_too_much_counts_as_matched(monkeypatch):
    """Beyond the limit every text matches. A new character costs as many steps as there are states."""
    node = sequence("abc", "d")
    monkeypatch.setattr(module, "MAX_STEPS", 4)
    assert not matches(node, "abcx")
    monkeypatch.setattr(module, "MAX_STEPS", 3)
    assert matches(sequence("abc", "e"), "abcx")


def test_the_cache_is_bounded(monkeypatch):
    """The cache never holds more state sets than its limit, for any number of texts."""
    monkeypatch.setattr(module, "MAX_KNOWN_STATES", 3)
    pattern = read_pattern("^.{0,20}x$")

    assert [matches(pattern, letter * 9 + "x") for letter in string.ascii_letters] == [True] * 52


@cases
def test_every_regular_node_is_matched(node, matched, refused):
    """The node must match the whole text."""
    assert [text for text in (*matched, *refused) if matches(node_of(node), text)] == matched
    assert [text for text in (*matched, *refused) if generates(node_of(node), text)] == matched


@pytest.mark.parametrize("node", [ref("x"), repeat(A, 0, None, ","), sequence(A, ref("x"))])
def test_what_is_not_regular_is_named(node):
    """Matching and writing name a node that isn't regular, even inside another node."""
    with pytest.raises(GrammarError, match="is not part of a regular expression"):
        matches(node, "a")
    with pytest.raises(GrammarError, match="has no regular expression"):
        write_pattern(node)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("^" + "a" * 9_998 + "$", ""),
        ("^" + "a" * 9_999 + "$", "a pattern of more than 10000 characters"),
        ("a" * 10_001, "a pattern of more than 10000 characters"),
        ("(" * 32 + "a" + ")" * 32, ""),
        ("(" * 33 + "a" + ")" * 33, "a group inside 32 others"),
        ("(a)" * 40, ""),
        ("^((ab){0,50}){0,100}$", ""),
        ("^((ab){0,50}){0,100}c$", "a pattern that repeats more than 10000 characters"),
        ("^((ab){50,}){100,}$", ""),
        ("^((ab){50,}){100,}c$", "a pattern that repeats more than 10000 characters"),
        ("^((a|b){0,50}){0,100}$", ""),
        ("^((a|b){0,50}){0,100}[a-z]$", "a pattern that repeats more than 10000 characters"),
        ("^((ab)*){1000}a{0}$", ""),
    ],
)
def test_patterns_are_bounded(pattern, reason):
    """Characters, depth and repetitions are limited, counting the expanded repetitions."""
    assert found(pattern).get("unsupported", "") == reason


def test_a_long_pattern_is_quoted_in_part():
    """An error quotes at most 80 characters."""
    with pytest.raises(GrammarError) as caught:
        read_pattern("a" * 90 + "(")

    assert str(caught.value) == f"pattern '{'a' * 79}: expected ')' at character 91"


@given(st.characters(exclude_categories=["Cs"]), st.characters(exclude_categories=["Cs"]))
def test_what_is_written_finds_itself(member, other):
    """A literal matches its text, and a class of one character only that character."""
    assert generates(literal(member + other), member + other)
    assert generates(Chars(((member, member),)), other) == (member == other)


@cases
def test_a_complement_is_all_other_characters(ranges, expected):
    """Ranges may overlap, touch and come in any order. An unpaired surrogate isn't a character."""
    assert list(map(list, complement(ranges))) == expected
