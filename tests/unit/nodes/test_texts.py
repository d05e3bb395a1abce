"""String constraints: formats, alphabets, and words that are left out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lines import node_line
from texts import generates

from unrender.nodes import Chars, Choice, Literal, Optional, Ref, Repeat, Sequence, Until
from unrender.nodes.patterns import ANY_TEXT, read_pattern
from unrender.nodes.texts import (
    FORMATS,
    JSON,
    JSON_CHARACTER,
    JSON_SINGLE,
    PYTHON,
    PYTHON_DOUBLE,
    RAW,
    WORDS,
    Alphabet,
    all_but,
    between,
    cannot_contain,
    encoded_node,
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

    assert repr(text)[0] == '"' or generates(encoded_node(ANY_TEXT, PYTHON), written)


def test_raw_text_is_written_as_it_is():
    """The raw alphabet changes nothing."""
    assert encoded_node(Literal('a"b'), RAW) == Literal('a"b')


def test_a_literal_is_escaped_character_by_character():
    """Each character takes its escaped form."""
    assert encoded_node(Literal('a"\n'), JSON) == Literal('a\\"\\n')


def test_a_class_is_escaped_member_by_member():
    """Members with an escape are written with it, all others as they are."""
    node = encoded_node(Chars((('"', "#"), ("\n", "\n"))), JSON)

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


EDGES = {
    "date": (
        "0000-01-31 2024-04-30 2024-09-30 2024-11-30 2024-10-31 2024-12-01 2024-07-29 2024-02-28 2024-02-09 2024-02-19",
        "2024-02-29 2024-04-31 2024-11-31 2024-00-01 2024-01-00 2024-1-01 2024-01-32 20240101 2024-01-011 2024-06-00 2024-02-00",
    ),
    "time": (
        "23:59:59Z 19:00:00z 09:09:09.123456789-23:59 00:00:00+00:00 12:34:56.0Z",
        "9:00:00Z 12:60:00Z 12:00:60Z 12:00:00.Z 12:00:00.1234567890Z 12:00:00+24:00 12:00:00+00:60 12:00:00+0000 12:00:00 12:00:00+1:00",
    ),
    "date-time": (
        "2024-01-31T00:00:00Z 2024-01-31t23:59:59.5+01:00",
        "2024-01-31 2024-01-31T 2024-01-31T00:00:00 2024-02-30T00:00:00Z T00:00:00Z 2024-01-31x00:00:00Z",
    ),
    "duration": (
        "P1Y P10M P1D P1Y2M3D P2M3D P1YT1H P1Y2M3DT4H5M6S P10W PT10H PT1H2M PT2M3S PT10S P1MT1M P1DT1S PT1H2M3S",
        "P1H P1YT PT P 1Y P1W1D P1D1M PT1S1M P1Y1D PT1H1S P-1D P1.5D p1y",
    ),
    "uuid": (
        "00000000-0000-0000-0000-000000000000 abcdefAB-CDEF-0123-4567-89abcdefABCD",
        "0000000-0000-0000-0000-000000000000 00000000-0000-0000-000000000000 g0000000-0000-0000-0000-000000000000 "
        "00000000-0000-0000-0000-00000000000 00000000-000-0000-0000-000000000000 00000000x0000-0000-0000-000000000000",
    ),
    "ipv4": (
        "0.0.0.0 9.10.99.100 199.200.249.250 1.2.3.255",
        "1.2.3.256 1.2.3.260 1.2.3.300 1.2.3.4.5 1.2.3. 1.2.3.1000 00.1.1.1 1.2.3.04 1,2,3,4 a.1.1.1",
    ),
    "ipv6": (
        "1:2:3:4:5:6:7:8 :: ::8 1:: 1::8 1:2:3:4:5:6::8 1:2:3:4:5::7:8 1::4:5:6:7:8 ::3:4:5:6:7:8 1:2:3:4:5:6:: aBcD:0:: "
        "1:2::7:8 1:2:3::7:8 1:2:3:4::7:8 1:2:3::8",
        "1:2:3:4:5:6:7 1:2:3:4:5:6:7:8:9 1:2:3:4:5:6:7:8: ::1::2 12345:: g:: 1:::2 : 1 ::2:3:4:5:6:7:8:9 1:2:3:4:5:6:7:8::",
    ),
    "hostname": (
        f"a a1 1a A-b.c-D a.b.c.d.e.f.g.h.i {'a' * 63} Z9.z0",
        f"- a- -a a..b .a a. a_b a.b.c.d.e.f.g.h.i.j {'a' * 64} a.-b a.b-",
    ),
    "email": (
        "a@b a.b@c.d !#$%&'*+/=?^_`{|}~-@x A9@b",
        "@b a@ a a..b@c .a@b a.@b a@b@c a@-b a(b@c a@b..c",
    ),
    "uri": (
        "a: a:b a://h a://h/p/q a:/p a1+.-:x a:?q a:#f a:p?q/?r#f/?g A://u:p@h:1/%20;=,!$&'()*+~ a:b//c a://h?q#f a:b#",
        "1a:b :b a a:%2 a:%zz a://h#f#g a:{ a:[ +a:b a://h/^ #",
    ),
    "uri-reference": (
        "a /a //h //h/p ?q #f a?q#f a/b a:b ./a:b a://h/p?q#f %41 #",
        "% %4 ## a#b#c ^ a:[ { ?^",
    ),
    "json-pointer": ("/ /a /a/b /~0~1 // /a~0b/%20 /0", "a ~ /~ /~2 a/b /~a"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_right_at_its_edges(name):
    """The last day of each month, the longest label, each place of `::`: what is right and what just is not."""
    node = format_node(name)
    right, wrong = EDGES[name]

    assert [text for text in right.split() if not generates(node, text)] == []
    assert [text for text in wrong.split() if generates(node, text)] == []


@pytest.mark.parametrize(
    ("alphabet", "any_character", "classes"),
    [
        (
            JSON,
            "[^\\x00-\\x1f\"\\\\\\x7f] | '\\\\' ([\"\\\\bfnrt] | 'u' ([0-9A-CE-Fa-ce-f] [0-9A-Fa-f]{3} | [Dd] [0-7] [0-9A-Fa-f]{2} | [Dd] [8-9A-Ba-b] [0-9A-Fa-f]{2} '\\\\u' [Dd] [C-Fc-f] [0-9A-Fa-f]{2}))",
            {
                "[^a]": "[^\\x00-\\x1f\"\\\\a\\x7f] | '\\\\' [\"\\\\bfnrt]",
                '["a]': "[a] | '\\\\' [\"]",
                "['a]": "['a]",
                "[\\\\]": "'\\\\' [\\\\]",
                "[\\n]": "'\\\\' [n]",
                "[\\x00-\\x1f]": "'\\\\' [bfnrt]",
                "[\\x7f]": "[^\\s\\S]",
                "[\\u0080-\\u{10ffff}]": "[^\\x00-\\x7f]",
            },
        ),
        (
            JSON_SINGLE,
            "[^\\x00-\\x1f'\\\\\\x7f] | '\\\\' ['\\\\bfnrt]",
            {
                "[^a]": "[^\\x00-\\x1f'\\\\a\\x7f] | '\\\\' ['\\\\bfnrt]",
                '["a]': '["a]',
                "['a]": "[a] | '\\\\' [']",
                "[\\\\]": "'\\\\' [\\\\]",
                "[\\n]": "'\\\\' [n]",
                "[\\x00-\\x1f]": "'\\\\' [bfnrt]",
                "[\\x7f]": "[^\\s\\S]",
                "[\\u0080-\\u{10ffff}]": "[^\\x00-\\x7f]",
            },
        ),
        (
            PYTHON,
            "[^\\x00-\\x1f'\\\\\\x7f-\xa0\xad] | '\\\\' ['\\\\nrt]",
            {
                "[^a]": "[^\\x00-\\x1f'\\\\a\\x7f-\xa0\xad] | '\\\\' ['\\\\nrt]",
                '["a]': '["a]',
                "['a]": "[a] | '\\\\' [']",
                "[\\\\]": "'\\\\' [\\\\]",
                "[\\n]": "'\\\\' [n]",
                "[\\x00-\\x1f]": "'\\\\' [nrt]",
                "[\\x7f]": "[^\\s\\S]",
                "[\\u0080-\\u{10ffff}]": "[^\\x00-\xa0\xad]",
            },
        ),
        (
            PYTHON_DOUBLE,
            "[^\\x00-\\x1f\"\\\\\\x7f-\xa0\xad] | '\\\\' [\"\\\\nrt]",
            {
                "[^a]": "[^\\x00-\\x1f\"\\\\a\\x7f-\xa0\xad] | '\\\\' [\"\\\\nrt]",
                '["a]': "[a] | '\\\\' [\"]",
                "['a]": "['a]",
                "[\\\\]": "'\\\\' [\\\\]",
                "[\\n]": "'\\\\' [n]",
                "[\\x00-\\x1f]": "'\\\\' [nrt]",
                "[\\x7f]": "[^\\s\\S]",
                "[\\u0080-\\u{10ffff}]": "[^\\x00-\xa0\xad]",
            },
        ),
        (
            WORDS,
            "[0-9A-Z_a-z]",
            {
                "[^a]": "[0-9A-Z_b-z]",
                '["a]': "[a]",
                "['a]": "[a]",
                "[\\\\]": "[^\\s\\S]",
                "[\\n]": "[^\\s\\S]",
                "[\\x00-\\x1f]": "[^\\s\\S]",
                "[\\x7f]": "[^\\s\\S]",
                "[\\u0080-\\u{10ffff}]": "[^\\s\\S]",
            },
        ),
    ],
)
def test_each_alphabet_writes_classes_in_its_way(alphabet, any_character, classes):
    """Members that are escaped get their escape, those that are not generated are left out, all others stay."""
    assert node_line(alphabet.character()) == any_character
    written = {pattern: node_line(encoded_node(read_pattern(f"^{pattern}$").parts[0], alphabet)) for pattern in classes}
    assert written == classes


NUMBERED = [0, 1, 7, 11, 14, 31]


@pytest.mark.parametrize(
    ("alphabet", "expected"),
    [
        (JSON, "\\b\\t\\n\\f\\r\\\"'\\\\aé\x7f \\u0000\\u0001\\u0007\\u000b\\u000e\\u001f"),
        (JSON_SINGLE, "\\b\\t\\n\\f\\r\"\\'\\\\aé\x7f \\u0000\\u0001\\u0007\\u000b\\u000e\\u001f"),
        (PYTHON, "\\x08\\t\\n\\x0c\\r\"\\'\\\\aé\x7f \\x00\\x01\\x07\\x0b\\x0e\\x1f"),
        (PYTHON_DOUBLE, "\\x08\\t\\n\\x0c\\r\\\"'\\\\aé\x7f \\x00\\x01\\x07\\x0b\\x0e\\x1f"),
        (RAW, "\b\t\n\f\r\"'\\aé\x7f \x00\x01\x07\x0b\x0e\x1f"),
    ],
    ids=["json", "single", "python", "double", "raw"],
)
def test_each_alphabet_writes_text_in_its_way(alphabet, expected):
    """Quotes, backslashes and control characters are escaped; a blank is not a control character."""
    assert alphabet.written("\b\t\n\f\r\"'\\aé\x7f " + "".join(map(chr, NUMBERED))) == expected


@pytest.mark.parametrize(
    ("node", "line"),
    [
        (Chars((("a", "z"),), minimum=2, maximum=3), "([a-z]){2,3}"),
        (Chars((('"', "#"),), minimum=0, maximum=None), "([#] | '\\\\' [\"]){0,}"),
        (Chars((("a", "z"),), minimum=1, maximum=2), "([a-z]){1,2}"),
        (Chars((("a", "z"),), minimum=0, maximum=1), "([a-z]){0,1}"),
        (Sequence((Literal('"'), Ref("x"))), "'\\\\\"' $x"),
        (Choice((Literal("\n"), Literal("a"))), "'\\\\n' | 'a'"),
        (Optional(Literal("\n")), "['\\\\n']"),
        (Repeat(Literal('"'), 1, 3, Literal("\t")), "('\\\\\"'){1,3 by '\\\\t'}"),
        (Repeat(Literal('"')), "('\\\\\"'){0,}"),
    ],
)
def test_every_regular_node_is_written_in_an_alphabet(node, line):
    """Bounds, separators and references stay; texts and classes are escaped."""
    assert node_line(encoded_node(node, JSON)) == line


def test_free_text_is_not_written_in_an_alphabet():
    """A node that is not regular is a mistake of the caller."""
    with pytest.raises(TypeError, match="cannot write Until in a string"):
        encoded_node(Until(()), JSON)


def test_escapes_may_have_any_form():
    """An escape that is not a backslash and one character is written out; what is not escaped stays."""
    entities = Alphabet(escapes=(("&", "&amp;"), ("<", "&lt;"), ("x", "\\xyz"), ("q", "ab")))

    written = [
        node_line(encoded_node(Chars((pair,)), entities)) for pair in (("&", "&"), ("%", "'"), ("<", "="), ("q", "x"))
    ]

    assert written == ["'&amp;'", "[%'] | '&amp;'", "[=] | '&lt;'", "[r-w] | '\\\\xyz' | 'ab'"]
    assert node_line(entities.character()) == "[^\\&<qx] | '&amp;' | '&lt;' | '\\\\xyz' | 'ab'"


def test_an_alphabet_may_only_forbid():
    """Without escapes, forbidden characters are still left out."""
    assert node_line(encoded_node(Chars((("a", "c"),)), Alphabet(forbidden=(("b", "b"),)))) == "[ac]"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "…"),
        ([""], "[\\s\\S] …"),
        (["a"], "[^a] … | 'a' [\\s\\S] … | ''"),
        (["ab", "b", "ab"], "[^ab] … | 'a' ([^b] … | 'b' [\\s\\S] … | '') | 'b' [\\s\\S] … | ''"),
        (["ab", "ac", ""], "[^a] … | 'a' ([^bc] … | 'b' [\\s\\S] … | 'c' [\\s\\S] … | '')"),
        (["a" * 101, "b"], "[^b] … | 'b' [\\s\\S] … | ''"),
    ],
)
def test_words_are_left_out_letter_by_letter(words, line):
    """A text differs from all words at some letter, is longer, or ends earlier; words of over 100 characters are let pass."""
    assert node_line(all_but(words, RAW)).replace("[\\s\\S]*", "…") == line


def test_a_word_of_the_greatest_length_is_left_out():
    """100 characters are still told apart."""
    node = all_but(["a" * 100], RAW)

    assert [generates(node, "a" * count) for count in (99, 100, 101)] == [True, False, True]


def test_words_are_left_out_in_their_written_form():
    """In an alphabet, letters of a word are escaped like all others."""
    node = all_but(['"', "\n"], JSON_SINGLE)

    assert [text for text in ['"', "\\n", "'", "\\'", "", "n", '""'] if generates(node, text)] == ["\\'", "", "n", '""']


@pytest.mark.parametrize(
    ("node", "line"),
    [
        (Chars((("a", "b"),)), "[a-b]{2,5}"),
        (Chars((("a", "b"),), minimum=0), "([a-b]?){2,5}"),
        (Chars((("a", "b"),), minimum=2, maximum=2), "([a-b]{2}){2,5}"),
        (Ref("x"), "($x){2,5}"),
    ],
)
def test_a_single_character_takes_the_bounds_of_its_repetition(node, line):
    """Only a class of exactly one character is the same with bounds of its own."""
    assert node_line(between(node, 2, 5)) == line


@pytest.mark.parametrize(
    ("pattern", "stop", "expected"),
    [
        ("^[a-z]+$", "<a>", True),
        ("^[a-z]+$", "abc", False),
        ("^[^<]*$", "<a", True),
        ("^x(<|y)$", "<x", False),
        ("^x(<|y)$", "<z", True),
        ("^[^a]$", "b", False),
    ],
)
def test_a_stop_is_safe_when_one_of_its_characters_cannot_come(pattern, stop, expected):
    """Literals and classes are looked at, wherever they are in the pattern."""
    assert cannot_contain(read_pattern(pattern), stop) is expected
