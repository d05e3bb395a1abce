"""Regular expressions of JSON Schema become nodes that generate what they find."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts import generates

from unrender.errors import GrammarError
from unrender.grammar.nodes import Chars, Literal, Ref
from unrender.grammar.regex import UnsupportedPattern, complement, read_pattern, write_pattern

PATTERNS = [
    "^abc?d*efg+(hij)?kl$",
    r"^\[\]\{\}\(\)\|\+\*\?$",
    '^"$',
    "^A|B|C|D$",
    r"^(\([0-9]{1,3}\))?[0-9]{3}-[0-9]{4}$",
    "[0-9]+",
    "^(?:foo|bar)baz$",
    r"^[0-9]{3}\w$",
    r"^[a-z\-]+$",
    r"^a\-b$",
    r"^\d\D\s\S\w\W$",
    "^[^a-c]{2,}$",
    "^.$",
    "",
    "^$",
    r"^\u0041\x42\n$",
    "^(?<year>[0-9]{4})$",
    "^a{2}b{0,1}c{1,}$",
    "^a+?$",
    "a|",
    r"^[\w.]+$",
    "^{$",
]
TEXTS = [
    "",
    "abcdefgkl",
    "[]{}()|+*?",
    '"',
    "A",
    "xB",
    "DD",
    "(12)555-1234",
    "7",
    "foobaz",
    "123x",
    "a-b",
    "1a a-",
    "AB\n",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_generates_what_it_finds(pattern):
    """The node generates a text if and only if the pattern is found in it."""
    node = read_pattern(pattern)
    found = re.compile(pattern.replace("(?<", "(?P<").removesuffix("$") + (r"\Z" if pattern.endswith("$") else ""))

    wrong = [text for text in TEXTS if generates(node, text) != bool(found.search(text))]

    assert wrong == []


@given(st.text(alphabet="ab01 -\n", max_size=6))
def test_unanchored_patterns_allow_any_text_around(text):
    """What is searched for may be anywhere."""
    assert generates(read_pattern("a0"), text) == ("a0" in text)


@pytest.mark.parametrize("pattern", ["^(a$", "a)", "[a", "a{3,2}", "*a", "a**", "[z-a]", "(?X)", "\\"])
def test_what_is_no_pattern_is_an_error(pattern):
    """A broken pattern raises an error that quotes it and says where it breaks."""
    with pytest.raises(GrammarError, match="at character [0-9]"):
        read_pattern(pattern)


@pytest.mark.parametrize(
    "pattern", ["(?=a)b", "(?!a)b", "(?<=a)b", "(?<!a)b", r"(a)\1", r"\bword\b", r"\p{L}", "a(^b)"]
)
def test_what_is_not_regular_is_reported(pattern):
    """Lookarounds, back references, word boundaries and properties are named as unsupported."""
    with pytest.raises(UnsupportedPattern):
        read_pattern(pattern)


def test_complement_leaves_surrogates_out():
    """Half a surrogate pair is not a character."""
    assert complement((("a", "z"),)) == (("\x00", "`"), ("{", "\ud7ff"), ("\ue000", "\U0010ffff"))


def test_a_reference_has_no_pattern():
    """Only regular nodes can be written as a pattern."""
    with pytest.raises(GrammarError, match="Ref has no regular expression"):
        write_pattern(Ref("x"))


@given(st.text())
def test_a_literal_is_written_so_that_it_finds_itself(text):
    """Every character is escaped where it has to be."""
    assert generates(Literal(text), text)


@given(st.characters(exclude_categories=["Cs"]), st.characters(exclude_categories=["Cs"]))
def test_a_class_is_written_so_that_it_finds_its_members(member, other):
    """A class of one character finds that character alone."""
    assert generates(Chars(((member, member),)), other) == (member == other)
