"""Limits of validation, and values that are almost JSON. `tests/corpus/schemas.jsonl` has the values of each shape."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from unrender.grammar import conforms
from unrender.schema import admission
from unrender.schema.admission import admits, as_json, canonical, disjoint, exclusive
from unrender.schema.shapes import (
    Anything,
    Array,
    Boolean,
    Constant,
    Integer,
    Nothing,
    Null,
    Object,
    Reference,
    Text,
    Union,
    union,
)


@pytest.mark.parametrize(
    ("schema", "admitted", "refused"),
    [
        ({"const": {"a": [1.0]}}, [{"a": [1]}, {"a": (1,)}], []),
        ({"type": "integer"}, [7.0, 2**70], [True, float("inf"), float("nan")]),
        ({"type": "number"}, [-1e300], [True, float("inf"), float("nan")]),
        ({"type": "array"}, [[1, "a"]], [(1,), "[]"]),
        ({"type": "object"}, [MappingProxyType({"a": "x"})], [[], "a"]),
    ],
)
def test_what_is_like_json_is_judged(schema, admitted, refused):
    """Numbers are compared as written, mappings are objects, and tuples are lists only in constants."""
    assert [value for value in (*admitted, *refused) if conforms(value, schema)] == admitted


def test_what_is_too_deep_is_admitted():
    """64 levels are checked, so validation ends for values that contain themselves."""
    endless: list[object] = []
    endless.append(endless)
    shape = Reference("nested")

    def nested(depth):
        return "x" if depth == 0 else [nested(depth - 1)]

    definitions = {"nested": Array(items=Reference("nested"))}
    assert admits(shape, endless, definitions)
    assert not admits(shape, nested(64), definitions)
    assert admits(shape, nested(65), definitions)


def test_what_takes_too_many_steps_is_admitted(monkeypatch):
    """The limit of steps applies to one value with all its parts."""
    monkeypatch.setattr(admission, "MAX_JUDGED", 4)
    shape = Array(items=Integer())

    assert not admits(shape, [1, 2, "x"], {})
    assert admits(shape, [1, 2, 3, "x"], {})


def test_a_container_is_judged_once_by_each_shape(monkeypatch):
    """A list that occurs several times in a value is checked only once."""
    monkeypatch.setattr(admission, "MAX_JUDGED", 230)
    part = [1] * 100
    shape = Array(items=Array(items=Integer()))

    assert not admits(shape, [*[part] * 100, "x"], {})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1.0, "a": None}, '{"b": 1, "a": null}'),
        ([1.5, True, "é", 2.0], '[1.5, true, "é", 2]'),
        ((1.0, (2.0,)), "[1, [2]]"),
        ({"a": {"c": (1.0,), "b": []}}, '{"a": {"c": [1], "b": []}}'),
        (2.0**62, "4611686018427387904"),
        (2.0**63, "9.223372036854776e+18"),
        (-(2.0**63), "-9.223372036854776e+18"),
        (MappingProxyType({"a": MappingProxyType({})}), '{"a": {}}'),
    ],
)
def test_values_are_written_as_json_with_whole_numbers(value, text):
    """Whole numbers are written without a fraction, as far as floats are exact. Keys keep their order."""
    assert as_json(value) == text


def test_equal_values_have_one_text():
    """The order of keys is ignored, letters aren't escaped, and 1.0 is 1."""
    assert canonical(1.0) == canonical(1) == "1"
    assert canonical({"b": "é", "a": (1.0,)}) == canonical({"a": [1], "b": "é"}) == '{"a": [1], "b": "é"}'


def test_what_costs_too_much_to_tell_apart_is_not(monkeypatch):
    """Beyond the limit, shapes don't count as exclusive."""
    few = [Null(), Boolean(), Text()]
    assert exclusive(few, {})
    monkeypatch.setattr(admission, "MAX_STATES", 9)
    assert exclusive(few, {})
    assert disjoint(Union((Null(), Boolean(), Text())), Union((Integer(), Array(), Object())), {})
    monkeypatch.setattr(admission, "MAX_STATES", 8)
    assert not exclusive(few, {})
    assert exclusive([*map(Constant, "123"), Null()], {})
    assert not disjoint(Union((Null(), Boolean(), Text())), Union((Integer(), Array(), Object())), {})


def test_a_choice_has_no_doubles():
    """`Nothing` adds nothing to a union, `Anything` replaces it, and lists are compared by identity."""
    one, other, choice = Array(items=Null()), Array(items=Null()), Union((Null(), Text()))

    assert union([]) == Nothing()
    assert union([Nothing(), Null(), Null()]) == Null()
    assert union([Null(), choice]) == choice
    assert union([Null(), Anything(), Text()]) == Anything()
    assert len(union([one, other, one]).options) == 2
