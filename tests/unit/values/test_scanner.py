"""LiteralScanner: JSON goes through unchanged, other notations become JSON, at every chunking."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from splitting import splits

from unrender.limits import MAX_PARSED_DEPTH, MAX_WORD
from unrender.values.atoms import may_be_word
from unrender.values.scanner import LiteralScanner, LiteralStyle, Status

LENIENT = LiteralStyle()
STRICT = LiteralStyle(strict=True)
BARE = LiteralStyle(quote_open='<|"|>', quote_close='<|"|>', bare_keys=True)
PYTHON = LiteralStyle(quote_open="'", quote_close="'")

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def scanned(text: str, style: LiteralStyle = LENIENT) -> tuple[str, str, Status]:
    """Scan `text` at every chunking; returns the JSON text, what was left, and the status, which must not differ."""
    outcomes = [_scan(chunks, style) for chunks in splits(text)]
    assert len(set(outcomes)) == 1, outcomes
    return outcomes[0]


def _scan(chunks: list[str], style: LiteralStyle) -> tuple[str, str, Status]:
    scanner, buffer, result, status = LiteralScanner(style), "", "", Status.MORE
    for i, chunk in enumerate([*chunks, ""]):
        buffer += chunk
        if status is Status.MORE:
            end, piece, status = scanner.copy().scan(buffer, 0, final=i == len(chunks))
            scanner.scan(buffer, 0, final=i == len(chunks))
            buffer, result = buffer[end:], result + piece
    return result, buffer, status


@pytest.mark.slow
@given(value=JSON_VALUES, ascii_only=st.booleans(), indent=st.sampled_from([None, 0, 2]))
def test_json_comes_out_as_it_went_in(value: object, ascii_only: bool, indent: int | None) -> None:
    """Whatever json.dumps writes inside a list comes out character for character."""
    text = json.dumps([value], ensure_ascii=ascii_only, indent=indent)

    for style in (LENIENT, STRICT):
        assert scanned(text + "</x>", style) == (text, "</x>", Status.DONE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[True, False, None]", "[true, false, null]"),
        ("{'a': 'say \"hi\"'}", '{"a": "say \\"hi\\""}'),
        ("['it\\'s']", '["it\'s"]'),
        ("[1,]", "[1]"),
        ('{"a": 1, }', '{"a": 1}'),
        ("[+5, .5, 01, 1_000]", "[5, 0.5, 1, 1000]"),
        ("[NaN, undefined]", "[null, null]"),
        ('["a\nb\tc"]', '["a\\nb\\tc"]'),
        ('["\\x41\\q\\u12"]', '["\\u0041\\\\q\\\\u12"]'),
        ("[ ]", "[ ]"),
        ("{}", "{}"),
    ],
)
def test_other_notations_become_json(text: str, expected: str) -> None:
    """Python's words and quotes, trailing commas, loose numbers and raw line breaks are read as what they mean."""
    result, rest, status = scanned(text)

    assert (result, rest, status) == (expected, "", Status.DONE)
    json.loads(result)


@pytest.mark.parametrize(
    "text", ["[True]", "['a']", "[1,]", '{"a": 1,}', '["a\nb"]', "[01]", "{a: 1}", "[1 2]", "nul "]
)
def test_a_strict_style_reads_json_alone(text: str) -> None:
    """Each tolerance is a failure when the style is strict."""
    assert scanned(text, STRICT)[2] is Status.FAILED


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{n:[1,<|"|>x, "y"<|"|>,true],ok:None}', '{"n": [1,"x, \\"y\\"",true],"ok": null}'),
        ('<|"|>a\nb<|"|>', '"a\\nb"'),
        ('{<|"|>k<|"|>:{}}', '{"k": {}}'),
    ],
)
def test_bare_keys_and_own_quotes_become_json(text: str, expected: str) -> None:
    """Keys without quotes and strings between markers of the format's own are read verbatim."""
    assert scanned(text, BARE) == (expected, "", Status.DONE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("'it's me')", '"it\'s me"'), ("'a, b', x=1)", '"a, b"'), ("'')", '""'), ("'\\n')", '"\\\\n"')],
)
def test_a_quote_ends_a_verbatim_string_only_where_a_value_can_end(text: str, expected: str) -> None:
    """Unescaped quotes inside a string are text, unless a separator or a bracket follows."""
    assert scanned(text, PYTHON)[0] == expected


@pytest.mark.parametrize(
    "text",
    [
        "]",
        "[1_]",
        "[1__0]",
        "[1_.5]",
        "[}",
        '{"a" 1}',
        "[1;2]",
        "hello",
        "{1: 2}",
        "[" * (MAX_PARSED_DEPTH + 1),
        "9" * (MAX_WORD + 1),
    ],
)
def test_what_is_no_value_fails(text: str) -> None:
    """Text that is not a value fails at the same place at every chunking; so does nesting or a number without bound."""
    assert scanned(text)[2] is Status.FAILED


@pytest.mark.parametrize("text", ["[", '{"a', '"abc\\', "[1, ", '{"a": "\\u00'])
def test_half_a_value_wants_more(text: str) -> None:
    """What may go on neither fails nor is done."""
    assert scanned(text)[2] is Status.MORE


def test_a_word_is_known_by_its_beginning() -> None:
    """Numbers and known words may be words, in any case; other text may not."""
    assert [may_be_word(text) for text in ("nul", "TRUE", "-1.5e", "undef", "nuts", "3 a", "")] == [
        True,
        True,
        True,
        True,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("text", ["3", "-1.5", "true", '"a/b"', "[1, 2]"])
@pytest.mark.parametrize("after", ["/>", "|x", ">"])
def test_what_may_follow_a_value_ends_it(text: str, after: str) -> None:
    """Numbers and words have no end of their own; any of several characters may be what follows."""
    assert scanned(text + after, LiteralStyle(stops=("/", ">", "|"))) == (text, after, Status.DONE)


@pytest.mark.parametrize(
    ("text", "status"),
    [("3-", Status.MORE), ("3--", Status.MORE), ("tru-", Status.MORE), ("x-", Status.FAILED), ("x--", Status.FAILED)],
)
def test_a_word_may_end_in_the_beginning_of_what_ends_it(text: str, status: Status) -> None:
    """As far as what is before that may be a word."""
    assert LiteralScanner(LiteralStyle(stops=("-->",))).scan(text, 0, final=False) == (0, "", status)


def test_commas_between_chunks_come_once() -> None:
    """With the items that follow them."""
    scanner = LiteralScanner(LENIENT)
    said = [scanner.scan(text, 0, final=False)[1] for text in ("[1,", '"a"', ',"b"', ", 'c'", " , true ", "]")]

    assert said == ["[1", ',"a"', ',"b"', ', "c"', " , true ", "]"]


def test_objects_in_deep_lists_are_read_alike() -> None:
    """Near the limit, character by character."""
    scanner = LiteralScanner(LENIENT)

    assert (
        scanner.scan("[" * 510 + '{"a" : [1, "b"] ,"c":2}', 0, final=False)[1] == "[" * 510 + '{"a" : [1, "b"] ,"c":2}'
    )


@pytest.mark.parametrize(
    ("text", "style", "final", "expected"),
    [
        ('"ab', LENIENT, False, (3, '"ab', Status.MORE)),
        ('"a\\', LENIENT, False, (2, '"a', Status.MORE)),
        ('"a\\', LENIENT, True, (3, '"a\\\\', Status.MORE)),
        ('"a\nb"x', LENIENT, False, (5, '"a\\nb"', Status.DONE)),
        ('"a\nb"x', STRICT, False, (2, '"a', Status.FAILED)),
        ("'a\"b'x", LENIENT, False, (5, '"a\\"b"', Status.DONE)),
        ("12", LENIENT, False, (0, "", Status.MORE)),
        ("12", LENIENT, True, (2, "12", Status.DONE)),
        ("12 ", LENIENT, False, (2, "12", Status.DONE)),
        ("12x", LENIENT, False, (0, "", Status.FAILED)),
        ("x", LENIENT, False, (0, "", Status.FAILED)),
        ("tr", LENIENT, True, (0, "", Status.FAILED)),
        (" \n12 ", LENIENT, False, (4, "12", Status.DONE)),
        ("  ", LENIENT, False, (2, "", Status.MORE)),
        ("[1, ", LENIENT, False, (4, "[1", Status.MORE)),
        ("[1,  2", LENIENT, False, (5, "[1", Status.MORE)),
        ("[1,  ]", LENIENT, False, (6, "[1]", Status.DONE)),
        ("[1,  ]", STRICT, False, (5, "[1", Status.FAILED)),
        ('{"a": 1, }', STRICT, False, (9, '{"a": 1', Status.FAILED)),
        ('{"a"', LENIENT, False, (4, '{"a"', Status.MORE)),
        ('{"a": ', LENIENT, False, (6, '{"a": ', Status.MORE)),
        ("{a: 1}", LENIENT, False, (1, "{", Status.FAILED)),
        ("{a: 1}", LiteralStyle(loose_keys=True), False, (6, '{"a": 1}', Status.DONE)),
        ("{two words: 1}", LiteralStyle(loose_keys=True), False, (14, '{"two words": 1}', Status.DONE)),
        ("{a", LiteralStyle(loose_keys=True), False, (1, "{", Status.MORE)),
        ("{a   ", LiteralStyle(loose_keys=True), False, (1, "{", Status.MORE)),
        ("{a      ", LiteralStyle(loose_keys=True), False, (8, '{"a"      ', Status.MORE)),
        ("{" + "a" * 257, LiteralStyle(loose_keys=True), False, (1, "{", Status.FAILED)),
        ("{" + "a" * 256 + ":", LiteralStyle(loose_keys=True), False, (258, '{"' + "a" * 256 + '":', Status.MORE)),
        ("{=", LiteralStyle(loose_keys=True), False, (1, "{", Status.FAILED)),
        ("{'a': 1}", STRICT, False, (1, "{", Status.FAILED)),
        ("{'a': 1}", LENIENT, False, (8, '{"a": 1}', Status.DONE)),
        ('{"a" 1}', LENIENT, False, (5, '{"a" ', Status.FAILED)),
        ("[1}", LENIENT, False, (2, "[1", Status.FAILED)),
        ('{"a": 1]', LENIENT, False, (7, '{"a": 1', Status.FAILED)),
        ("[1 2]", LENIENT, False, (3, "[1 ", Status.FAILED)),
        ("[", LENIENT, True, (1, "[", Status.MORE)),
        ("<|", BARE, False, (0, "", Status.MORE)),
        ("<|", BARE, True, (0, "", Status.FAILED)),
        ("<|x", BARE, False, (0, "", Status.FAILED)),
        ("{<|", BARE, False, (1, "{", Status.MORE)),
        ("{<|", BARE, True, (3, '{"<|"', Status.MORE)),
        ('<|"|>a<|"', BARE, False, (6, '"a', Status.MORE)),
        ('<|"|>a<|"', BARE, True, (9, '"a<|\\"', Status.MORE)),
        ('<|"|>a<|"|>', BARE, False, (11, '"a"', Status.DONE)),
        ("{k:1}", BARE, False, (5, '{"k": 1}', Status.DONE)),
        ('{"k":1}', BARE, False, (7, '{"k": 1}', Status.DONE)),
    ],
)
def test_one_scan(text: str, style: LiteralStyle, final: bool, expected: tuple[int, str, Status]) -> None:
    """How far it goes, what it gives, and whether there is more: from any place in the buffer."""
    assert LiteralScanner(style).scan(text, 0, final=final) == expected
    at, json_text, status = LiteralScanner(style).scan("~~" + text, 2, final=final)
    assert (at - 2, json_text, status) == expected


def test_a_word_ends_at_the_first_of_what_ends_it() -> None:
    """Wherever in the buffer it is, and inside lists only at what JSON has there."""
    style = LiteralStyle(stops=("|", "-->"), loose_keys=True)
    for text, expected in (
        ("3|4|5", (1, "3", Status.DONE)),
        ("3-->4|", (1, "3", Status.DONE)),
        ("3|-->", (1, "3", Status.DONE)),
        ("|3", (0, "", Status.FAILED)),
        ("[3|4]", (1, "[", Status.FAILED)),
        ("{k: 3}", (6, '{"k": 3}', Status.DONE)),
    ):
        assert LiteralScanner(style).scan(text, 0, final=False) == expected
        at, piece, status = LiteralScanner(style).scan("~" * 300 + text, 300, final=False)
        assert (at - 300, piece, status) == expected


@pytest.mark.parametrize(
    ("text", "ends", "final", "expected"),
    [
        ("'a'", (), False, (2, '"a', Status.MORE)),
        ("'a'", (), True, (3, '"a"', Status.DONE)),
        ("'a' ", (), False, (2, '"a', Status.MORE)),
        ("'a'  ", (), True, (3, '"a"', Status.DONE)),
        ("'a',", (), False, (3, '"a"', Status.DONE)),
        ("'a' \n)", (), False, (3, '"a"', Status.DONE)),
        ("'a':", (), False, (3, '"a"', Status.DONE)),
        ("'a']", (), False, (3, '"a"', Status.DONE)),
        ("'a'}", (), False, (3, '"a"', Status.DONE)),
        ("'a'|", (), False, (4, "\"a'|", Status.MORE)),
        ("'a'|", ("|",), False, (3, '"a"', Status.DONE)),
        ("'a' |", ("|",), False, (3, '"a"', Status.DONE)),
        ("'a'b',", (), False, (5, '"a\'b"', Status.DONE)),
        ("'a'" + " " * 255 + ",", (), False, (3, '"a"', Status.DONE)),
        ("'a'" + " " * 256 + ",", (), False, (260, "\"a'" + " " * 256 + ",", Status.MORE)),
    ],
)
def test_a_delimiter_of_one_character(text: str, ends: tuple[str, ...], final: bool, expected: Any) -> None:
    """It closes the string where a value can end, at the end of the output, or before what may follow."""
    style = LiteralStyle(quote_open="'", quote_close="'", ends=ends)

    assert LiteralScanner(style).scan(text, 0, final=final) == expected


def test_inside_lists_strings_have_standard_quotes() -> None:
    """There a backslash escapes, even where a string of its own is verbatim."""
    assert LiteralScanner(PYTHON).scan("['a\\'b']", 0, final=False) == (8, '["a\'b"]', Status.DONE)
    assert LiteralScanner(PYTHON).scan("'a\\n',", 0, final=False)[1] == '"a\\\\n"'


def test_delimiters_of_several_characters_are_for_bare_keys_inside_lists() -> None:
    """Elsewhere they stand outside of lists and objects alone."""
    own = LiteralStyle(quote_open="<<", quote_close=">>")

    assert LiteralScanner(own).scan("<<a>>", 0, final=False) == (5, '"a"', Status.DONE)
    assert LiteralScanner(own).scan("[<<a>>]", 0, final=False)[2] is Status.FAILED
    assert LiteralScanner(BARE).scan('[<|"|>a<|"|>]', 0, final=False) == (13, '["a"]', Status.DONE)


@pytest.mark.parametrize(("depth", "status"), [(MAX_PARSED_DEPTH, Status.MORE), (MAX_PARSED_DEPTH + 1, Status.FAILED)])
@pytest.mark.parametrize("style", [LENIENT, STRICT, BARE])
def test_nesting_is_bounded(depth: int, status: Status, style: LiteralStyle) -> None:
    """The same at every chunking, and in every notation."""
    text = "[" * depth
    whole, single, given = LiteralScanner(style), LiteralScanner(style), ""
    for character in text:
        _, piece, found = single.scan(character, 0, final=False)
        given += piece

    assert whole.scan(text, 0, final=False) == (min(depth, 512), "[" * min(depth, 512), status)
    assert (given, found) == ("[" * min(depth, 512), status)


@pytest.mark.parametrize(
    ("begun", "text", "taken"),
    [
        ('{"a": "', "more text", ("more text", 9)),
        ('{"a": "', 'b", "c', ('b", "c', 6)),
        ('{"a": "', "b\\", None),
        ('{"a": [', "1, 2", ("1", 3)),
        ('{"a": [', "1, ", ("1", 3)),
        ('{"a": [1,', " 2,", (", 2", 3)),
        ('{"a": [1,', " ]", None),
        ('{"a": [1 ', ", ", ("", 2)),
        ('{"a": "b"', ", ", ("", 2)),
        ('{"a": [[1]', ", [2", (", [", 3)),
        ('{"a": 1', "", None),
        ('{"a": [', "tr", ("", 0)),
        ('{"a": [', "x", None),
        ('{"a": [', "'b'", None),
        ('{"a": [1', "}", None),
        ('{"a": "b"', "}", None),
        ('{"a"', ": ", (": ", 2)),
        ("{", '"a', ('"a', 2)),
        ("{", "  ", ("  ", 2)),
        ("[1,", "  ", ("", 2)),
        ('{"a": [', '"' + "b" * 40, ('"' + "b" * 40, 41)),
    ],
)
def test_well_formed_text_goes_straight_through(begun: str, text: str, taken: tuple[str, int] | None) -> None:
    """What is taken is what `scan` would give; where that is anything else, nothing is taken."""
    scanner = LiteralScanner(LENIENT)
    scanner.scan(begun, 0, final=False)
    other = scanner.copy()
    if not text:
        assert scanner.flow is not None
        return

    assert scanner.take(text) == taken
    if taken is not None:
        end, json_text, _ = other.scan(text, 0, final=False)
        assert (json_text, end) == taken
        assert [getattr(scanner, name) for name in ("state", "stack", "comma")] == [
            getattr(other, name) for name in ("state", "stack", "comma")
        ]


@pytest.mark.parametrize(
    ("begun", "style", "flows"),
    [
        ("", LENIENT, False),
        ("[", LENIENT, True),
        ("[", BARE, False),
        ('"a', LENIENT, True),
        ("'a", LENIENT, False),
        ('["a', LENIENT, True),
        ("['a", LENIENT, False),
        ('{"a', LENIENT, True),
        ('"a', LiteralStyle(quote_open='"', quote_close='"'), False),
        ("[" * 509, LENIENT, True),
        ("[" * 510, LENIENT, False),
    ],
)
def test_what_goes_straight_through(begun: str, style: LiteralStyle, flows: bool) -> None:
    """Text inside brackets, or in a string with JSON's quotes; not where depth is nearly at its limit."""
    scanner = LiteralScanner(style)
    scanner.scan(begun, 0, final=False)

    assert (scanner.flow is scanner) is flows


def test_a_value_that_has_begun_is_not_untouched() -> None:
    """White space does not begin one."""
    blank, opened, string, inside = (LiteralScanner(LENIENT) for _ in range(4))
    inside.scan('{"a": ', 0, final=False)
    blank.scan("  ", 0, final=False)
    opened.scan("[", 0, final=False)
    string.scan('"', 0, final=False)

    assert [scanner.untouched for scanner in (blank, opened, string, inside)] == [True, False, False, False]


def test_a_copy_of_a_scanner_goes_on_alone() -> None:
    """With everything that it remembers."""
    scanner = LiteralScanner(LENIENT)
    scanner.scan("['a', ", 0, final=False)
    other = scanner.copy()
    other.scan("'b", 0, final=False)

    assert (scanner.state, scanner.stack, scanner.quote, scanner.comma) == (2, "[", '"', ", ")
    assert (other.stack, other.quote, other.comma) == ("[", "'", "")
    assert other.style is scanner.style
