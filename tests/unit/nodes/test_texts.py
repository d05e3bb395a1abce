"""String constraints: formats, alphabets, and excluded words. Rows: `tests/corpus/patterns.jsonl`."""

from __future__ import annotations

import json

import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from lines import generates, node_line
from recipes import ANALYSIS, rows_of
from remainders import node_of

from unrender import GrammarError
from unrender.grammar import chars, ref, repeat, until
from unrender.nodes import Chars, children
from unrender.nodes import texts as module
from unrender.nodes.patterns import ANY_TEXT, read_pattern
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
    alphabet = getattr(module, row["alphabet"])
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
