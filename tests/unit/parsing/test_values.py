"""LiteralScanner: JSON goes through unchanged, other notations become JSON, at every chunking."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from splitting import splits

from unrender.parsing.atoms import MAX_WORD, may_be_word
from unrender.parsing.values import MAX_DEPTH, LiteralScanner, LiteralStyle, Status

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
        "[" * (MAX_DEPTH + 1),
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
@pytest.mark.parametrize("behind", ["/>", "|x", ">"])
def test_what_may_follow_a_value_ends_it(text: str, behind: str) -> None:
    """Numbers and words have no end of their own; any of several characters may be what follows."""
    assert scanned(text + behind, LiteralStyle(stops=("/", ">", "|"))) == (text, behind, Status.DONE)
