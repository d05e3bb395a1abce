"""String constraints: formats, alphabets, and words that are left out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts import generates

from unrender.grammar.nodes import Chars, Literal, Repeat
from unrender.grammar.regex import ANY_TEXT, read_pattern
from unrender.grammar.strings import (
    FORMATS,
    JSON,
    JSON_CHARACTER,
    PYTHON,
    RAW,
    all_but,
    cannot_contain,
    encode,
    format_node,
    subtract,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x7f"))
EXAMPLES = {
    "date": (["2024-02-28", "1999-12-31"], ["2024-02-30", "2024-13-01", "24-01-01"]),
    "time": (["18:25:43Z", "00:00:00.5+02:00"], ["24:00:00Z", "12:00", "12:00:00"]),
    "date-time": (["2012-04-23T18:25:43.511Z"], ["2012-04-23", "2012-04-23 18:25:43Z"]),
    "duration": (["P3Y6M", "PT5M", "P2W", "P1DT12H"], ["P", "5D", "PT"]),
    "uuid": (["12345678-1234-1234-1234-1234567890ab"], ["12345678123412341234123456789"]),
    "ipv4": (["127.0.0.1", "255.255.255.255"], ["256.0.0.1", "1.2.3", "01.2.3.4"]),
    "ipv6": (["::1", "2001:db8::8a2e:370:7334", "1:2:3:4:5:6:7:8"], ["1::2::3", "12345::", "1:2:3"]),
    "hostname": (["example.com", "a-b.c"], ["-a.com", "a..b"]),
    "email": (["a.b+c@example.org"], ["a@", "@b", "a b@c.d"]),
    "uri": (["https://example.com/a?b=c#d", "urn:isbn:123"], ["//example.com", "no scheme"]),
    "uri-reference": (["/a/b", "?q", "https://x.y"], ["a b"]),
    "json-pointer": (["", "/a/0/b~1c"], ["a", "/~2"]),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_generates_its_strings(name):
    """Each known format generates valid strings and no invalid ones."""
    node = format_node(name)
    right, wrong = EXAMPLES[name]

    assert [text for text in right if not generates(node, text)] == []
    assert [text for text in wrong if generates(node, text)] == []


def test_an_unknown_format_has_no_node():
    """What is not known is left to be reported."""
    assert format_node("isbn") is None


@given(TEXT)
def test_any_text_can_be_written_in_json(text):
    """Whatever JSON writes for a text, the node of any text generates."""
    assert generates(Repeat(JSON_CHARACTER), json.dumps(text)[1:-1])
    assert generates(Repeat(JSON_CHARACTER), json.dumps(text, ensure_ascii=False)[1:-1])


@pytest.mark.parametrize("text", ['"', "\\", "\n", "\\x", "\\u12", "\\ud83d", "\\ude00\\ud83d"])
def test_what_is_no_json_string_is_not_generated(text):
    """Bare quotes, control characters, half escapes and half surrogate pairs are left out."""
    assert not generates(Repeat(JSON_CHARACTER), text)


@given(TEXT.filter(lambda text: text.isprintable()))
def test_any_printable_text_can_be_written_in_python(text):
    """A single-quoted string generates what `repr` writes."""
    written = repr(text)[1:-1]

    assert repr(text)[0] == '"' or generates(encode(ANY_TEXT, PYTHON), written)


def test_raw_text_is_written_as_it_is():
    """The raw alphabet changes nothing."""
    assert encode(Literal('a"b'), RAW) == Literal('a"b')


def test_a_literal_is_escaped_character_by_character():
    """Each character takes its escaped form."""
    assert encode(Literal('a"\n'), JSON) == Literal('a\\"\\n')


def test_a_class_is_escaped_member_by_member():
    """Members with an escape are written with it, all others as they are."""
    node = encode(Chars((('"', "#"), ("\n", "\n"))), JSON)

    assert [text for text in ['\\"', "\\n", "#", '"', "\n"] if generates(node, text)] == ['\\"', "\\n", "#"]


@given(st.sets(st.text("ab", max_size=3), max_size=4), st.text("abc", max_size=4))
def test_excluded_words_alone_are_left_out(words, text):
    """Every text is generated but the words."""
    assert generates(all_but(words, RAW), text) == (text not in words)


def test_a_pattern_cannot_contain_what_it_has_no_characters_for():
    """A marker is safe when one of its characters is in no text of the pattern."""
    assert cannot_contain(read_pattern("^[a-z]+$"), "</a>")
    assert not cannot_contain(read_pattern("^.*$"), "</a>")


def test_subtracting_cuts_ranges():
    """Holes may lie inside, at the edge, or outside."""
    assert subtract((("a", "f"),), (("c", "d"), ("x", "z"))) == (("a", "b"), ("e", "f"))
