"""Scanners: the fast path and limits. `tests/corpus/values.jsonl` has the values that they read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from properties.families import RAW_LINES
from splitting import splits

from unrender.answer.build import calls_in
from unrender.answer.follow import open_ends
from unrender.limits import MAX_PARSED_DEPTH
from unrender.types import Tool
from unrender.values import Status
from unrender.values.coercion import ArgumentTypes
from unrender.values.finder import Finder
from unrender.values.raw import RawScanner, TagStyle, read_tree
from unrender.values.scanner import LiteralScanner, LiteralStyle

END = Finder(("</v>", "\n</v>"))

LENIENT = LiteralStyle()
STRICT = LiteralStyle(strict=True)
BARE = LiteralStyle(quote_open='<|"|>', quote_close='<|"|>', bare_keys=True)

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def scanned(text: str, style: LiteralStyle = LENIENT) -> tuple[str, str, Status]:
    """Scan `text` for every chunking. Return the JSON text, the rest, and the status, which must all agree."""
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
    """The output of json.dumps inside a list is kept, character for character."""
    text = json.dumps([value], ensure_ascii=ascii_only, indent=indent)

    for style in (LENIENT, STRICT):
        assert scanned(text + "</x>", style) == (text, "</x>", Status.DONE)


def test_objects_in_deep_lists_are_read_alike() -> None:
    """Near the depth limit, the result is the same character by character."""
    scanner = LiteralScanner(LENIENT)

    assert (
        scanner.scan("[" * 510 + '{"a" : [1, "b"] ,"c":2}', 0, final=False)[1] == "[" * 510 + '{"a" : [1, "b"] ,"c":2}'
    )


@pytest.mark.parametrize(("depth", "status"), [(MAX_PARSED_DEPTH, Status.MORE), (MAX_PARSED_DEPTH + 1, Status.FAILED)])
@pytest.mark.parametrize("style", [LENIENT, STRICT, BARE])
def test_nesting_is_bounded(depth: int, status: Status, style: LiteralStyle) -> None:
    """The limit is the same for every chunking and in every notation."""
    text = "[" * depth
    whole, single, given = LiteralScanner(style), LiteralScanner(style), ""
    for character in text:
        _, piece, found = single.scan(character, 0, final=False)
        given += piece

    assert whole.scan(text, 0, final=False) == (min(depth, 512), "[" * min(depth, 512), status)
    assert (given, found) == ("[" * min(depth, 512), status)


@cases
def test_well_formed_text_goes_straight_through(begun: str, text: str, taken: list[object] | None) -> None:
    """`take` accepts the same text as `scan`, or none."""
    scanner = LiteralScanner(LENIENT)
    scanner.scan(begun, 0, final=False)
    other = scanner.copy()
    if not text:
        assert scanner.flow is not None
        return

    assert scanner.take(text) == (taken and tuple(taken))
    if taken is not None:
        end, json_text, _ = other.scan(text, 0, final=False)
        assert [json_text, end] == taken
        assert [getattr(scanner, name) for name in ("state", "stack", "comma")] == [
            getattr(other, name) for name in ("state", "stack", "comma")
        ]


@cases
def test_what_goes_straight_through(begun: str, style: dict[str, Any], flows: bool) -> None:
    """The fast path takes text in brackets or JSON strings, but not near the depth limit."""
    scanner = LiteralScanner(LiteralStyle(**style))
    scanner.scan(begun, 0, final=False)

    assert (scanner.flow is scanner) is flows


def test_raw_text_goes_straight_through() -> None:
    """Inside a string, text is taken up to a possible end or a character that JSON escapes."""
    begun, held, listed = (RawScanner(END, frozenset(types)) for types in (("string",), ("integer",), ("array",)))
    assert begun.flow is None
    begun.scan("a", 0, final=False)
    held.scan("1", 0, final=False)
    listed.scan("[", 0, final=False)
    assert (held.flow, listed.flow) == (None, None)
    flow = begun.flow
    assert flow is not None

    assert [flow.take(text) for text in ("b c", 'b"', "b<", "b</v>", "b\n")] == [("b c", 3), None, ("b", 1), None, None]


def test_what_follows_a_value_is_not_punctuation_alone() -> None:
    """Without a closing marker, a list that may be something else is held back until its end."""
    follow = open_ends(calls_in(RAW_LINES.format)[0])

    assert RawScanner(follow, frozenset(("array", "null"))).scan("[1] x", 0, final=False) == (5, "", Status.MORE)


@cases
def test_a_value_collects_the_keys_of_its_outermost_object(text: str, key: str) -> None:
    """The keys are the same for the whole text, in chunks, and on the fast path."""
    for size in (1, 2, 3, 7, len(text)):
        scanner = LiteralScanner(LiteralStyle(loose_keys=True))
        left = ""
        for start in range(0, len(text), size):
            left += text[start : start + size]
            taken = scanner.flow and scanner.flow.take(left)
            used = taken[1] if taken else scanner.scan(left, 0, final=False)[0]
            left = left[used:]

        assert (left, scanner.duplicate) == ("", key), size


@pytest.mark.parametrize(("depth", "read"), [(64, 64), (65, 64), (100, 64)])
def test_nesting_of_tags_is_bounded(depth: int, read: int) -> None:
    """Tags beyond the limit are text."""
    value = json.loads(
        read_tree(
            "<a>" * depth + "1" + "</a>" * depth, TagStyle("<", "</", ">", "item"), ArgumentTypes(Tool(name="f")), None
        )
    )
    levels = 0
    while isinstance(value, dict):
        value, levels = value["a"], levels + 1

    assert (levels, value) == (read, 1 if depth == read else "<a>" * (depth - read) + "1" + "</a>" * (depth - read))


@pytest.mark.parametrize(
    ("text", "value"), [("'it''s'\n", "it's"), ("''''\n", "'"), ("''\n", ""), ("'a''''b'\n", "a''b")]
)
def test_quote_that_is_escaped_by_another_is_no_end(text: str, value: str) -> None:
    """A quote at the end of a chunk may be half of an escaped quote, as in YAML and SQL."""
    style = LiteralStyle(quote_open="'", quote_close="'", marks=Finder(("'", "''")), escapes=(("'", "''"),))

    assert scanned(text, style) == (json.dumps(value), "\n", Status.DONE)
