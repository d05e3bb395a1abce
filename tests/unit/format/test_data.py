"""Dataclasses of a Format and plain JSON data."""

from __future__ import annotations

from typing import Any

import pytest

from unrender import FormatError
from unrender.format import Codec, Content, ContentMode, Slot, Spelling, Strings, TurnTexts
from unrender.format.data import data_in_words, decode, plain_data


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ("text", "text"),
        (7, 7),
        (None, None),
        (Slot.NAME, {"slot": "name"}),
        (Strings.RAW, "raw"),
        (("<", Slot.NAME, ()), ["<", {"slot": "name"}, []]),
        (TurnTexts(), {}),
        (TurnTexts(headers=("<h>",), tools_first=True), {"headers": ["<h>"], "tools_first": True}),
        (Content(), {"mode": "plain"}),
        (Content(mode=ContentMode.PLAIN, start="<c>"), {"mode": "plain", "start": "<c>"}),
        (Spelling(marker="<t>", others=("<T>",)), {"marker": "<t>", "others": ["<T>"]}),
        (Codec(types=(("string", "s"),)), {"types": [["string", "s"]]}),
    ],
    ids=repr,
)
def test_values_become_plain_data(value: Any, data: Any) -> None:
    """Defaults are left out, but a mode is always said."""
    assert plain_data(value) == data


@pytest.mark.parametrize(
    ("kind", "data", "value"),
    [
        (str, "text", "text"),
        (int, 7, 7),
        (bool, True, True),
        (Slot, {"slot": "name"}, Slot.NAME),
        (Slot, "name", Slot.NAME),
        (str | Slot, "name", "name"),
        (str | Slot, {"slot": "name"}, Slot.NAME),
        (str | None, None, None),
        (str | None, "a", "a"),
        (tuple[str, ...] | str, "a", "a"),
        (Content | None, {}, Content()),
        (tuple[str, ...], ["a", "b"], ("a", "b")),
        (tuple[str, ...], [], ()),
        (tuple[int, str], [1, "a"], (1, "a")),
        (Strings, "raw", Strings.RAW),
        (Content, {"mode": "always_wrapped", "start": "<c>"}, Content(mode=ContentMode.ALWAYS_WRAPPED, start="<c>")),
    ],
    ids=repr,
)
def test_plain_data_becomes_values(kind: Any, data: Any, value: Any) -> None:
    """A text is a text even where a slot of that name may be; `null` only where it is allowed."""
    assert decode(kind, data, where="x") == value


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        (str, 7, "x: expected str, found 7"),
        (int, True, "x: expected int, found True"),
        (bool, 1, "x: expected bool, found 1"),
        (str, None, "x: expected str, found None"),
        (str | None, 7, "x: expected str, found 7"),
        (str | Slot, 7, "x: expected str, found 7"),
        (tuple[str, ...], "ab", "x: expected a list, found 'ab'"),
        (tuple[str, ...], ["a", 7], "x[1]: expected str, found 7"),
        (tuple[int, int], [1], "x: expected 2 items, found 1"),
        (tuple[int, str], [1, 2], "x[1]: expected str, found 2"),
        (Strings, "xml", "x: expected one of ['json', 'python', 'raw', 'quoted', 'single'], found 'xml'"),
        (Strings, {"slot": "raw"}, "x: expected one of ['json', 'python', 'raw', 'quoted', 'single'], found dict"),
        (Content, [], "x: expected an object, found list"),
        (Content, {"start": 7}, "x.start: expected str, found 7"),
        (Content, {"strat": ""}, "x: unknown field 'strat'; known are ['end', 'mode', 'start', 'wraps_empty']"),
        (Spelling, {"marker": "<t>"}, "x: the field 'others' is missing"),
        (tuple[Spelling, ...], [{"marker": "<t>", "others": [7]}], "x[0].others[0]: expected str, found 7"),
    ],
    ids=lambda value: repr(value)[:40],
)  # fmt: skip
def test_what_does_not_fit_is_named_with_its_place(kind: Any, data: Any, message: str) -> None:
    """The path, what was expected there, and what was found."""
    with pytest.raises(FormatError) as refused:
        decode(kind, data, where="x")

    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("a'b", '"a\'b"'),
        ("x" * 61, repr("x" * 60)),
        (1.5, "1.5"),
        (None, "None"),
        (-(10**60) + 1, str(-(10**60) + 1)),
        (10**60, "a number of more than 60 digits"),
        (-(10**60), "a number of more than 60 digits"),
        ([1], "list"),
        ({"a": 1}, "dict"),
        ((), "tuple"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_found_data_is_shown_in_short(data: Any, text: str) -> None:
    """No message grows with what was found."""
    assert data_in_words(data) == text
