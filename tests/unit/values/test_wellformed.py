"""well_formed: as far as JSON goes, and not a character further."""

from __future__ import annotations

import pytest

from unrender.values import wellformed
from unrender.values.wellformed import (
    COLON,
    END,
    FIRST_ITEM,
    FIRST_KEY,
    ITEM,
    KEY,
    KEY_STRING,
    LEVELS,
    NEXT,
    STRING,
    VALUE,
    well_formed,
)


@pytest.mark.parametrize(
    ("text", "state", "stack", "expected"),
    [
        ("1, 2]", FIRST_ITEM, "[", (5, END, "", -1)),
        ("1, 2] x", FIRST_ITEM, "[[", (5, NEXT, "[", -1)),
        ('"a": {"b": [1, {"c": null}]}, ', KEY, "{", (29, KEY, "{", 28)),
        ("1, ]", FIRST_ITEM, "[", (2, ITEM, "[", 1)),
        ("tru", FIRST_ITEM, "[", (0, FIRST_ITEM, "[", -1)),
        ("12", FIRST_ITEM, "[", (0, FIRST_ITEM, "[", -1)),
        ('"half', VALUE, "[", (5, STRING, "[", -1)),
        ('of it", 1', STRING, "[", (7, ITEM, "[", 6)),
        ('"key"', FIRST_KEY, "{", (5, COLON, "{", -1)),
        ("}", FIRST_ITEM, "[", (0, FIRST_ITEM, "[", -1)),
        ("]", NEXT, "{", (0, NEXT, "{", -1)),
        ("[[[[[1", VALUE, "[", (5, FIRST_ITEM, "[[[[[[", -1)),
        ("[" * 20, VALUE, "[", (8, FIRST_ITEM, "[" * 9, -1)),
        ("'a'", VALUE, "[", (0, VALUE, "[", -1)),
        ('"a\nb"', VALUE, "[", (0, VALUE, "[", -1)),
        ("01, ", VALUE, "[", (0, VALUE, "[", -1)),
        ("1. ", VALUE, "[", (0, VALUE, "[", -1)),
        ("-1.5e+3 ", VALUE, "[", (7, NEXT, "[", -1)),
        ("1" + "0" * 90 + ",", VALUE, "[", (92, ITEM, "[", 91)),
        ("1" + "0" * 91 + ",", VALUE, "[", (0, VALUE, "[", -1)),
        ('"\\q"', VALUE, "[", (0, VALUE, "[", -1)),
        ('"\\u00e9"', VALUE, "[", (8, NEXT, "[", -1)),
        ('"\\u00e"', VALUE, "[", (0, VALUE, "[", -1)),
        ('of it": ', KEY_STRING, "{", (7, VALUE, "{", -1)),
        ('"half', KEY, "{", (5, KEY_STRING, "{", -1)),
        ("1, 2, ", FIRST_ITEM, "[", (5, ITEM, "[", 4)),
        ('1, "a": ', ITEM, "{[", (6, NEXT, "{[", -1)),
        ("], ", FIRST_ITEM, "{[", (2, KEY, "{", 1)),
        ("}], ", FIRST_KEY, "[[{", (3, ITEM, "[", 2)),
        ("[1, ]", VALUE, "[", (3, ITEM, "[[", 2)),
        ('{"a": 1, }', VALUE, "[", (8, KEY, "[{", 7)),
    ],
)
def test_it_stops_where_json_does(text: str, state: int, stack: str, expected: tuple[int, int, str, int]) -> None:
    """Where it ends, the state there, the open brackets, and a comma without a follower."""
    assert well_formed(text, 0, state, stack, 9)[:4] == expected


@pytest.mark.parametrize(
    ("text", "state", "stack", "keys"),
    [
        ('"a": {"b": 1}, "c" :2, "d"', FIRST_KEY, "{", 'a"c"d"'),
        ('"a:": 1, "\\"": 2', KEY, "{", 'a:"\\""'),
        ('"hal', KEY, "{", "hal"),
        ('f of it": 1', KEY_STRING, "{", 'f of it"'),
        ('"a": 1', FIRST_KEY, "[{", ""),
        ('": "b"', STRING, "{", ""),
        ('"a"', VALUE, "{", ""),
    ],
)
def test_the_keys_of_the_outermost_object(text: str, state: int, stack: str, keys: str) -> None:
    """As they are written, without their first quotation marks; a key that is cut off as far as it is there."""
    assert well_formed(text, 0, state, stack, 9)[4] == keys


@pytest.mark.parametrize(
    "value", ["1", "-2.5e3", "null", '"a\\n"', "[]", "[1, [2]]", "{}", '{"a": {"b": [1]}, "c": ""}']
)
@pytest.mark.parametrize("state", [VALUE, FIRST_ITEM, ITEM])
def test_a_value_that_is_all_there_is_one_step(value: str, state: int) -> None:
    """Of any kind; where it is nested more deeply than that, the step takes its bracket alone."""
    step = wellformed._STEPS[state]
    whole, deep = step.match(f" {value},"), step.match("[" * (LEVELS + 1) + "]" * (LEVELS + 1))

    assert whole is not None
    assert (whole.lastgroup, whole.group()) == ("value", f" {value}")
    assert deep is not None
    assert (deep.lastgroup, deep.group()) == ("list", "[")


@pytest.mark.parametrize("state", [FIRST_KEY, KEY])
def test_a_key_and_its_colon_are_one_step(state: int) -> None:
    """A key without one is a step of its own."""
    step = wellformed._STEPS[state]
    found = [step.match(text) for text in ('"a" : 1', '"a" 1', '"a')]

    assert [match and (match.lastgroup, match.end()) for match in found] == [("key", 5), ("name", 3), ("key_text", 2)]


@pytest.mark.parametrize(("depth", "end"), [(8, 0), (9, 1), (10, 1)])
def test_depth_is_bounded(depth: int, end: int) -> None:
    """A bracket beyond it is left to others."""
    assert well_formed("[1", 0, VALUE, "[" * 8, depth)[0] == end
