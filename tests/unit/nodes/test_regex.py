"""Regular expressions of JSON Schema become nodes that generate what they find."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lines import node_line
from texts import generates

from unrender.errors import GrammarError
from unrender.nodes import Chars, Choice, Literal, Optional, Ref, Repeat, Sequence
from unrender.nodes.patterns import UnsupportedPattern, complement, read_pattern, write_pattern

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


# `…` is any text.
READ = {
    "^a{0000000000012}$": "('a'){12,12}",
    "a{2": "… 'a' '{' '2' …",
    "a{2,": "… 'a' '{' '2' ',' …",
    "": "… …",
    "^": "…",
    "$": "…",
    "^$": "",
    "a": "… 'a' …",
    "^a": "'a' …",
    "a$": "… 'a'",
    "^a$": "'a'",
    "^ab|c$|d": "'a' 'b' … | … 'c' | … 'd' …",
    "^(?:a|b)$": "('a' | 'b')",
    "^(ab)$": "'a' 'b'",
    "^(a|)c$": "('a' | ) 'c'",
    "(a)": "… 'a' …",
    "^(ab)+$": "('a' 'b'){1,}",
    "^(?<x>a)b$": "'a' 'b'",
    "^(?P<x>a)b$": "'a' 'b'",
    "^a*b+c?d{2}e{2,}f{2,5}g{,3}h{0}i{0,1}j{1}$": "('a'){0,} ('b'){1,} ('c'){0,1} ('d'){2,2} ('e'){2,} ('f'){2,5} 'g' '{' ',' '3' '}' ('h'){0,0} ('i'){0,1} ('j'){1,1}",
    "^a{$": "'a' '{'",
    "^a{x}$": "'a' '{' 'x' '}'",
    "^a{2$": "'a' '{' '2'",
    "^a{,}$": "'a' '{' ',' '}'",
    "^a{2,$": "'a' '{' '2' ','",
    "^a{007}$": "('a'){7,7}",
    "^a*?b+?c??d{2}?$": "('a'){0,} ('b'){1,} ('c'){0,1} ('d'){2,2}",
    "^a{1000}$": "('a'){1000,1000}",
    "^.$": "[^\\n\\r\u2028-\u2029]",
    "^\\d\\D\\w\\W\\s\\S$": "[0-9] [^0-9] [0-9A-Z_a-z] [^0-9A-Z_a-z] [\\t-\\r \xa0\u2000-\u200a\u2028-\u2029\u3000\ufeff] [^\\t-\\r \xa0\u2000-\u200a\u2028-\u2029\u3000\ufeff]",
    "^\\n\\r\\t\\f\\v\\0$": "'\\n' '\\r' '\\t' '\\x0c' '\\x0b' '\\x00'",
    "^\\x41\\u0042\\u{43}$": "'A' 'B' 'C'",
    "^\\u{1F600}$": "'😀'",
    "\\-\\.\\/\\^": "… '-' '.' '/' '^' …",
    "[^\ud800-\udfff]": "… [\\s\\S] …",
    "[a-\ud900]": "… [a-\ud7ff] …",
    "[\ud900-\ue010]": "… [\ue000-\ue010] …",
    "[\ud900-\ue000]": "… [\ue000] …",
    "^[a]$": "[a]",
    "^[^a]$": "[^a]",
    "^[a-z0-9_]$": "[a-z0-9_]",
    "^[-a]$": "[\\-a]",
    "^[a-]$": "[a\\-]",
    "^[a\\-z]$": "[a\\-z]",
    "^[a-\\d]$": "[a\\-0-9]",
    "^[\\d-z]$": "[0-9\\-z]",
    "^[\\w-]$": "[0-9A-Z_a-z\\-]",
    "^[\\W]$": "[\\x00-\\/:-@\\[-\\^`\\{-\ud7ff\ue000-\U0010ffff]",
    "^[^\\D]$": "[^\\x00-\\/:-\ud7ff\ue000-\U0010ffff]",
    "^[\\b]$": "[\\x08]",
    "^[\\]]$": "[\\]]",
    "^[\\n-\\r]$": "[\\n-\\r]",
    "^[^]$": "[\\s\\S]",
    "^[a-a]$": "[a]",
    "(((a)))": "… 'a' …",
    "^(?:(a)(b)|c){2}$": "('a' 'b' | 'c'){2,2}",
    "^a\\{2}$": "'a' '{' '2' '}'",
    "^(a(b(c)))$": "'a' 'b' 'c'",
    "^\u2028$": "'\\u2028'",
    "^(?<a>b)(?<c>d)$": "'b' 'd'",
}
UNSUPPORTED = {
    "(^a$)|b": "an anchor inside a group",
    "(?:^a|b)$": "an anchor inside a group",
    "^$a": "an anchor inside the pattern",
    "a^": "an anchor inside the pattern",
    "^^a$": "an anchor inside the pattern",
    "^a$$": "an anchor inside the pattern",
    "^a{1001}$": "a repetition of more than 1000",
    "^a{0,1001}$": "a repetition of more than 1000",
    "^a{1001,}$": "a repetition of more than 1000",
    "^a{99999999999999}$": "a repetition of more than 1000",
    "\\p{L}": "the escape \\p",
    "\\b": "the escape \\b",
    "\\B": "the escape \\B",
    "\\1": "the escape \\1",
    "\\a": "the escape \\a",
    "\\ud800": "half of a surrogate pair",
    "[\\ud800]": "a class of halves of surrogate pairs",
    "[\ud800]": "a class of halves of surrogate pairs",
    "[\ud900-\udbff]": "a class of halves of surrogate pairs",
    "[]": "an empty class",
    "(?=a)": "a lookaround",
    "(?!a)": "a lookaround",
    "(?<=a)": "a lookaround",
    "(?<!a)": "a lookaround",
    "(a$)": "an anchor inside a group",
    "(^a)b": "an anchor inside a group",
    "a(b$|c)": "an anchor inside a group",
}
BROKEN = {
    "x>(?<a": "unknown kind of group at character 5",
    "^{2}$": "expected something to repeat at character 4",
    "^a**$": "expected something to repeat at character 4",
    "^a{2}*$": "expected something to repeat at character 6",
    "^a?+$": "expected something to repeat at character 4",
    "^a+*$": "expected something to repeat at character 4",
    "^a{3,2}$": "quantifier out of order at character 7",
    "\\x4": "expected a code point, found '4' at character 4",
    "\\x": "expected a code point, found '' at character 4",
    "\\xZZ": "expected a code point, found 'ZZ' at character 4",
    "\\u{110000}": "expected a code point, found '110000' at character 10",
    "\\u{": "expected a code point, found '' at character 4",
    "\\u{}": "expected a code point, found '' at character 4",
    "\\u004": "expected a code point, found '004' at character 6",
    "[": "expected more, found the end at character 1",
    "[a": "expected more, found the end at character 2",
    "[a-": "expected more, found the end at character 3",
    "[\\": "expected more, found the end at character 2",
    "[z-a]": "range out of order at character 4",
    "(": "expected ')' at character 1",
    "(a": "expected ')' at character 2",
    "a)": "unbalanced ')' at character 1",
    ")": "unbalanced ')' at character 0",
    "(?": "unknown kind of group at character 2",
    "(?:": "expected ')' at character 3",
    "(?>a)": "unknown kind of group at character 2",
    "(?<a": "unknown kind of group at character 3",
    "(?P<a": "unknown kind of group at character 4",
    "(?Pa)": "unknown kind of group at character 2",
    "(?i)a": "unknown kind of group at character 2",
    "\\": "expected more, found the end at character 1",
    "*": "expected something to repeat at character 1",
    "+a": "expected something to repeat at character 1",
    "?": "expected something to repeat at character 1",
    "|*": "expected something to repeat at character 2",
    "^*": "expected something to repeat at character 2",
    "$+": "expected something to repeat at character 2",
    "^?": "expected something to repeat at character 2",
    "a|*": "expected something to repeat at character 3",
    "(*a)": "expected something to repeat at character 2",
    "(()": "expected ')' at character 3",
    "x{2}{3}": "expected something to repeat at character 7",
    "^a{2}{3}$": "expected something to repeat at character 8",
    "^\\x+4$": "expected a code point, found '+4' at character 5",
    "^\\u{ 41}$": "expected a code point, found '41' at character 8",
}


@pytest.mark.parametrize("pattern", READ)
def test_each_construct_has_its_node(pattern):
    """Groups, classes, escapes and quantifiers; text on both sides is free where no anchor is."""
    assert node_line(read_pattern(pattern)).replace("([\\s\\S]){0,}", "…") == READ[pattern]


@pytest.mark.parametrize("pattern", UNSUPPORTED)
def test_what_a_grammar_cannot_say_has_a_name(pattern):
    """Each construct that is not regular, or too much, is named."""
    with pytest.raises(UnsupportedPattern) as caught:
        read_pattern(pattern)

    assert str(caught.value) == UNSUPPORTED[pattern]


@pytest.mark.parametrize("pattern", BROKEN)
def test_an_error_says_what_is_wrong_and_where(pattern):
    """The message quotes the pattern and counts its characters."""
    with pytest.raises(GrammarError) as caught:
        read_pattern(pattern)

    assert str(caught.value) == f"pattern {pattern!r}: {BROKEN[pattern]}"


def test_a_long_pattern_is_quoted_in_part():
    """An error quotes no more than 80 characters."""
    with pytest.raises(GrammarError) as caught:
        read_pattern("a" * 90 + "(")

    assert str(caught.value) == f"pattern '{'a' * 79}: expected ')' at character 91"


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("^" + "a" * 9_998 + "$", ""),
        ("^" + "a" * 9_999 + "$", "a pattern of more than 10000 characters"),
        ("a" * 10_001, "a pattern of more than 10000 characters"),
        ("(" * 32 + "a" + ")" * 32, ""),
        ("(" * 33 + "a" + ")" * 33, "a group inside 32 others"),
        ("(a)" * 40, ""),
        ("^(ab){0,1000}(c{2,5}){1000}[de]{3000,}", "a repetition of more than 1000"),
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
    """Characters, depth and repetitions, as they are when they are written out."""
    if not reason:
        read_pattern(pattern)
        return
    with pytest.raises(UnsupportedPattern) as caught:
        read_pattern(pattern)

    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("node", "pattern"),
    [
        (Literal("a.b\n\r\t\0\x1f\x7f "), "a\\.b\\n\\r\\t\\x00\\x1f\\x7f "),
        (Literal("\\.+*?()|[]{}^$-/&~"), "\\\\\\.\\+\\*\\?\\(\\)\\|\\[\\]\\{\\}\\^\\$\\-\\/\\&\\~"),
        (Chars((("a", "c"), ("x", "x"), ("-", "-"))), "[a-cx\\-]"),
        (Chars((("a", "c"),), negated=True, minimum=0, maximum=None), "[^a-c]*"),
        (Chars((("a", "a"),), minimum=1, maximum=None), "[a]+"),
        (Chars((("a", "a"),), minimum=0, maximum=1), "[a]?"),
        (Chars((("a", "a"),), minimum=2, maximum=2), "[a]{2}"),
        (Chars((("a", "a"),), minimum=2, maximum=5), "[a]{2,5}"),
        (Chars((("a", "a"),), minimum=2, maximum=None), "[a]{2,}"),
        (Chars(()), "[^\\s\\S]"),
        (Chars((), negated=True), "[\\s\\S]"),
        (Optional(Literal("ab")), "(?:ab)?"),
        (Repeat(Literal("ab"), 1, 3), "(?:ab){1,3}"),
        (Sequence((Literal("a"), Choice((Literal("b"), Literal(""))))), "a(?:b|)"),
    ],
)
def test_a_node_is_written_as_a_pattern(node, pattern):
    """Bounds are short where they can be, and what means something in a pattern is escaped."""
    assert write_pattern(node) == pattern


def test_a_repetition_with_a_separator_has_no_pattern():
    """What is between two rounds cannot be said in one expression."""
    with pytest.raises(GrammarError, match="Repeat has no regular expression"):
        write_pattern(Repeat(Literal("a"), 0, None, Literal(",")))


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ((), (("\0", "\ud7ff"), ("\ue000", "\U0010ffff"))),
        ((("\0", "\U0010ffff"),), ()),
        ((("c", "f"), ("a", "d")), (("\0", "`"), ("g", "\ud7ff"), ("\ue000", "\U0010ffff"))),
        ((("a", "z"), ("c", "d")), (("\0", "`"), ("{", "\ud7ff"), ("\ue000", "\U0010ffff"))),
        ((("\0", "a"), ("b", "\ud7fe")), (("\ud7ff", "\ud7ff"), ("\ue000", "\U0010ffff"))),
    ],
)
def test_a_complement_is_all_other_characters(ranges, expected):
    """Ranges may overlap, touch and come in any order."""
    assert complement(ranges) == expected
