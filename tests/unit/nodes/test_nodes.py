"""Nodes of JSON Schema's regular expressions, formats, alphabets and excluded words. Rows: `tests/corpus/patterns.jsonl`.

In a row's `node`, `…` is any text. `unsupported` is a construct that no grammar can express, and `broken` an invalid pattern.
"""

from __future__ import annotations

import inspect
import json
import re
import string
from typing import get_args

import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from lines import generates, node_line
from recipes import ANALYSIS, rows_of
from remainders import node_of
from tables import table

from unrender import GrammarError, nodes
from unrender.grammar import chars, literal, ref, repeat, sequence, until
from unrender.nodes import Chars, children, patterns, texts
from unrender.nodes.patterns import ANY_TEXT, UnsupportedPattern, complement, matches, read_pattern, write_pattern
from unrender.nodes.texts import (
    FORMATS,
    JSON,
    JSON_CHARACTER,
    JSON_SINGLE,
    PYTHON,
    RAW,
    Alphabet,
    all_but,
    between,
    cannot_contain,
    encoded_node,
    format_node,
)


def test_every_kind_is_in_the_union() -> None:
    """Each class of the module is a kind of node, except for grammars, rules, roles and the base class of leaves."""
    classes = {kind for _, kind in inspect.getmembers(nodes, inspect.isclass) if kind.__module__ == nodes.__name__}

    assert classes - set(get_args(nodes.Node)) == {nodes.Grammar, nodes.Leaf, nodes.Role, nodes.Rules}


def test_a_kind_that_holds_nodes_is_no_leaf() -> None:
    """A kind is either a leaf, a reference, or has nodes below it."""
    leaves = {kind for kind in get_args(nodes.Node) if issubclass(kind, nodes.Leaf)}

    assert not leaves & nodes._BELOW.keys()
    assert leaves | nodes._BELOW.keys() | {nodes.Ref} == set(get_args(nodes.Node))


def test_a_node_out_of_place_is_named() -> None:
    """The error names the kind of the node."""
    with pytest.raises(GrammarError, match="Cut has no words"):
        raise nodes.refusal_of(nodes.Cut(), "has no words")


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
    monkeypatch.setattr(patterns, "MAX_STEPS", 4)
    assert not matches(node, "abcx")
    monkeypatch.setattr(patterns, "MAX_STEPS", 3)
    assert matches(sequence("abc", "e"), "abcx")


def test_the_cache_is_bounded(monkeypatch):
    """The cache never holds more state sets than its limit, for any number of texts."""
    monkeypatch.setattr(patterns, "MAX_KNOWN_STATES", 3)
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


ROWS = rows_of(ANALYSIS.with_name("patterns.jsonl"))
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x7f"))
CONTROLS = "\b\t\n\f\r\"'\\aé\x7f " + "".join(map(chr, [0, 1, 7, 11, 14, 31]))


@pytest.mark.parametrize("row", [row for row in ROWS if "format" in row], ids=lambda row: row["format"])
def test_a_format_generates_its_strings(row):
    """Formats accept valid edge cases and reject the nearest invalid ones: last days of months, long labels, `::`."""
    node = format_node(row["format"])

    assert [text for text in row["accepts"] if not generates(node, text)] == []
    assert [text for text in row["rejects"] if generates(node, text)] == []


def test_every_format_has_a_row():
    """An unknown format has no node."""
    assert {row["format"] for row in ROWS if "format" in row} == set(FORMATS)
    assert format_node("isbn") is None


@pytest.mark.parametrize("row", [row for row in ROWS if "alphabet" in row], ids=lambda row: row["alphabet"])
def test_each_alphabet_writes_in_its_way(row):
    """Escaped characters get their escape, characters that are never generated are dropped, and others are kept."""
    alphabet = getattr(texts, row["alphabet"])
    if "text" in row:
        assert alphabet.written(CONTROLS) == row["text"]
        return
    assert node_line(alphabet.character()) == row["character"]
    read = {pattern: children(read_pattern(f"^{pattern}$"))[0] for pattern in row["classes"]}
    assert {pattern: node_line(encoded_node(node, alphabet)) for pattern, node in read.items()} == row["classes"]


def test_words_are_left_out_letter_by_letter():
    """A text differs from each excluded word in a letter or its length. Words over 100 characters are allowed."""
    for row in [row for row in ROWS if "words" in row]:
        assert node_line(all_but(row["words"], RAW)).replace("[\\s\\S]*", "…") == row["node"]


def test_a_stop_is_safe_when_one_of_its_characters_cannot_come():
    """Literals and classes anywhere in the pattern are checked."""
    for row in [row for row in ROWS if "stop" in row]:
        assert cannot_contain(read_pattern(row["pattern"]), row["stop"]) is row["safe"], row


@given(TEXT)
def test_any_text_can_be_written_in_json(text):
    """The node of any text generates every JSON spelling of it."""
    assert generates(repeat(JSON_CHARACTER), json.dumps(text)[1:-1])
    assert generates(repeat(JSON_CHARACTER), json.dumps(text, ensure_ascii=False)[1:-1])


@pytest.mark.parametrize("text", ['"', "\\", "\n", "\\x", "\\u12", "\\ud83d", "\\ude00\\ud83d"])
def test_what_is_no_json_string_is_not_generated(text):
    """Bare quotes, control characters, partial escapes and half surrogate pairs aren't generated."""
    assert not generates(repeat(JSON_CHARACTER), text)


@given(TEXT.filter(lambda text: text.isprintable()))
def test_any_printable_text_can_be_written_in_python(text):
    """A single-quoted string generates the output of `repr`."""
    assert repr(text)[0] == '"' or generates(encoded_node(ANY_TEXT, PYTHON), repr(text)[1:-1])


@given(st.sets(st.text("ab", max_size=3), max_size=4), st.text("abc", max_size=4))
def test_excluded_words_alone_are_left_out(words, text):
    """Every text except the words is generated."""
    assert generates(all_but(words, RAW), text) == (text not in words)


LENGTHS = st.tuples(st.integers(0, 3), st.none() | st.integers(1, 4)).filter(lambda n: n[1] is None or n[0] <= n[1])


@given(st.sets(st.text("ab", max_size=3), max_size=4), LENGTHS, st.text("abc", max_size=5))
def test_excluded_words_and_other_lengths_are_left_out(words, lengths, text):
    """Every text of the given lengths except the words is generated."""
    least, most = lengths
    wanted = text not in words and least <= len(text) and (most is None or len(text) <= most)
    assert generates(all_but(words, RAW, lengths), text) == wanted


def test_a_word_of_the_greatest_length_is_left_out():
    """A word of 100 characters is still excluded."""
    assert [generates(all_but(["a" * 100], RAW), "a" * count) for count in (99, 100, 101)] == [True, False, True]


def test_words_are_left_out_in_their_written_form():
    """Letters of an excluded word are escaped in the alphabet, like all others."""
    node = all_but(['"', "\n"], JSON_SINGLE)

    assert [text for text in ['"', "\\n", "'", "\\'", "", "n", '""'] if generates(node, text)] == ["\\'", "", "n", '""']


@cases
def test_every_regular_node_is_written_in_an_alphabet(node, line):
    """Bounds, separators and references are kept, texts and classes are escaped. The raw alphabet changes nothing."""
    assert node_line(encoded_node(node_of(node), JSON)) == line
    assert encoded_node(node_of(node), RAW) == node_of(node)
    with pytest.raises(GrammarError, match="Until cannot be written in a string"):
        encoded_node(until(), JSON)


def test_escapes_may_have_any_form():
    """An escape may be any text. Characters without an escape are kept, or forbidden."""
    entities = Alphabet(escapes=(("&", "&amp;"), ("<", "&lt;"), ("x", "\\xyz"), ("q", "ab")))
    pairs = (("&", "&"), ("%", "'"), ("<", "="), ("q", "x"))

    written = [node_line(encoded_node(Chars((pair,)), entities)) for pair in pairs]

    assert written == ["'&amp;'", "[%'] | '&amp;'", "[=] | '&lt;'", "[r-w] | '\\\\xyz' | 'ab'"]
    assert node_line(entities.character()) == "[^\\&<qx] | '&amp;' | '&lt;' | '\\\\xyz' | 'ab'"
    assert node_line(encoded_node(chars("a-c"), Alphabet(forbidden=(("b", "b"),)))) == "[ac]"


def test_a_single_character_takes_the_bounds_of_its_repetition():
    """Only a class of exactly one character can take the bounds of its repetition."""
    one = Chars((("a", "b"),))
    others = [Chars(one.ranges, minimum=0), Chars(one.ranges, minimum=2, maximum=2), ref("x")]

    assert node_line(between(one, 2, 5)) == "[a-b]{2,5}"
    assert [between(node, 2, 5) for node in others] == [repeat(node, 2, 5) for node in others]
