"""Words, numbers and escapes of other notations become what JSON writes."""

from __future__ import annotations

import pytest

from unrender.values.atoms import escape, json_word, may_be_in_word, may_be_word, read_escape


@pytest.mark.parametrize(
    ("word", "loose", "strict"),
    [
        ("true", "true", "true"),
        ("false", "false", "false"),
        ("null", "null", "null"),
        ("True", "true", ""),
        ("False", "false", ""),
        ("None", "null", ""),
        ("NaN", "null", ""),
        ("undefined", "null", ""),
        ("TRUE", "", ""),
        ("nil", "", ""),
        ("", "", ""),
        ("0", "0", "0"),
        ("-0", "-0", "-0"),
        ("12", "12", "12"),
        ("-1.50", "-1.50", "-1.50"),
        ("1e5", "1e5", "1e5"),
        ("1E+05", "1E+05", "1E+05"),
        ("2.5e-3", "2.5e-3", "2.5e-3"),
        ("1.e5", "100000.0", ""),
        ("+5", "5", ""),
        ("007", "7", ""),
        ("-07", "-7", ""),
        (".5", "0.5", ""),
        ("-.5", "-0.5", ""),
        ("5.", "5.0", ""),
        ("1_000", "1000", ""),
        ("1_0e2", "1000.0", ""),
        ("+1e999", "null", ""),
        ("-01e999", "null", ""),
        ("1_", "", ""),
        ("_1", "", ""),
        ("1__0", "", ""),
        ("1_.5", "", ""),
        ("1.5_0", "", ""),
        (".", "", ""),
        ("e5", "", ""),
        ("1e", "", ""),
        ("--1", "", ""),
        ("1 ", "", ""),
        ("5x", "", ""),
    ],
)
def test_what_json_writes_for_a_word(word: str, loose: str, strict: str) -> None:
    """JSON's own words stay as they are; Python's and JavaScript's are tidied up, unless strict."""
    assert (json_word(word, strict=False), json_word(word, strict=True)) == (loose, strict)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("9" * 256, True),
        ("9" * 257, False),
        ("T", True),
        ("tRuE", True),
        ("undefined", True),
        ("undefinedx", False),
        ("NAN", True),
        ("+1_0.e-5", True),
        ("1x", False),
        ("1 ", False),
        ("", True),
    ],
)
def test_the_beginning_of_a_word(text: str, found: bool) -> None:
    """Bounded in length; what no known word begins with is none."""
    assert may_be_word(text) is found


ESCAPES = [
    (r"\"", '\\"'),
    (r"\'", "'"),
    (r"\\", "\\\\"),
    (r"\/", "\\/"),
    (r"\b", "\\b"),
    (r"\f", "\\f"),
    (r"\n", "\\n"),
    (r"\r", "\\r"),
    (r"\t", "\\t"),
    ("\\\n", ""),
    (r"\q", "\\\\q"),
    ("\\\t", "\\\\\\t"),
    (r"\u00e9", "\\u00e9"),
    (r"\uABCD", "\\uABCD"),
    (r"\x41", "\\u0041"),
]


@pytest.mark.parametrize(("text", "json"), ESCAPES)
@pytest.mark.parametrize("final", [True, False])
def test_a_whole_escape(text: str, json: str, final: bool) -> None:
    """It becomes JSON's own; one that JSON does not have is a backslash and the character."""
    assert read_escape(f"ab{text}12", 2, final) == (2 + len(text), json)
    assert read_escape(f"ab{text}", 2, final) == (2 + len(text), json)


@pytest.mark.parametrize(
    ("text", "going_on", "at_the_end"),
    [
        ("\\", (1, ""), (2, "\\\\")),
        (r"\u", (1, ""), (3, "\\\\u")),
        (r"\u00e", (1, ""), (3, "\\\\u")),
        (r"\x4", (1, ""), (3, "\\\\x")),
        (r"\u00 ", (1, ""), (3, "\\\\u")),
        (r"\u00    ", (1, ""), (3, "\\\\u")),
        (r"\u00     ", (3, "\\\\u"), (3, "\\\\u")),
        (r"\u00g", (3, "\\\\u"), (3, "\\\\u")),
        (r"\x4g", (3, "\\\\x"), (3, "\\\\x")),
    ],
)
def test_half_an_escape(text: str, going_on: tuple[int, str], at_the_end: tuple[int, str]) -> None:
    """While more may come it is left where it is; at the end, or when it cannot become one, the backslash is text."""
    assert read_escape("~" + text, 1, False) == going_on
    assert read_escape("~" + text, 1, True) == at_the_end


def test_text_inside_a_json_string() -> None:
    """Quotes, backslashes and control characters are escaped; everything else stays."""
    assert escape('a"b\\c\n\x01é') == 'a\\"b\\\\c\\n\\u0001é'


@pytest.mark.parametrize(
    ("text", "may_be"),
    [("al", True), ("RU", True), ("one", True), ("-->", False), ("-", True), ("1e", True), ("x", False)],
)
def test_what_may_be_in_a_word_does_not_end_one(text: str, may_be: bool) -> None:
    """A part of a number, or of a known word in any case."""
    assert may_be_in_word(text) is may_be
