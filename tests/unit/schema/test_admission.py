"""Shapes admit values, and are told apart."""

from __future__ import annotations

from decimal import Decimal
from types import MappingProxyType

import jsonschema
import pytest

from unrender.nodes import Literal
from unrender.schema import admission
from unrender.schema.admission import admits, as_json, canonical, disjoint, exclusive
from unrender.schema.reader import read_schema
from unrender.schema.shapes import (
    Anything,
    Array,
    Boolean,
    Constant,
    Contained,
    Integer,
    Nothing,
    Null,
    Number,
    Object,
    Property,
    Reference,
    Text,
    Union,
)

VALUES = [None, True, 0, 7, 7.5, -3, "", "abc", [], [1], ["a", 2], {}, {"a": 1}, {"a": "x", "b": 2}]
SCHEMAS = [
    {},
    {"type": "null"},
    {"type": "integer", "minimum": 1},
    {"type": "number", "maximum": 7},
    {"type": "number", "exclusiveMinimum": 7},
    {"type": "integer", "multipleOf": 7},
    {"type": "string", "minLength": 1},
    {"type": "string", "pattern": "^a"},
    {"type": "array", "items": {"type": "integer"}, "minItems": 1},
    {"type": "array", "prefixItems": [{"type": "string"}], "maxItems": 2},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": True},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False},
    {"type": "object", "maxProperties": 1},
    {"anyOf": [{"type": "boolean"}, {"const": 7}]},
    {"enum": [7.0, "abc", {"a": 1}]},
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_shape_admits_what_its_schema_admits(schema):
    """The verdict is jsonschema's, for every kind of value."""
    reading = read_schema(schema)

    admitted = [value for value in VALUES if admits(reading.shape, value, reading.definitions)]

    assert admitted == [value for value in VALUES if jsonschema.Draft202012Validator(schema).is_valid(value)]


def test_equal_numbers_have_one_text():
    """JSON knows one number: 1 and 1.0 are the same."""
    assert canonical(1.0) == canonical(1) == "1"


def named(*properties, **more):
    """Return an object's shape; a name that ends in `?` is optional."""
    own = tuple(Property(name.rstrip("?"), shape, not name.endswith("?")) for name, shape in properties)
    return Object(properties=own, **more)


A, AB = Text(pattern=Literal("a")), Text(pattern=Literal("ab"))
D = Decimal
CASES = [
    (Anything(), [None, 1, "a", [], {}], []),
    (Nothing(), [], [None, 1, "a"]),
    (Null(), [None], [False, 0, "", "null"]),
    (Boolean(), [True, False], [0, 1, "true", None]),
    (Constant("1"), [1, 1.0], [True, "1", 2, [1]]),
    (Constant('{"a": [1.0]}'), [{"a": [1]}, {"a": [1.0]}, {"a": (1,)}], [{"a": []}, {"b": [1]}]),
    (Text(), ["", "a"], [None, 1, ["a"]]),
    (Text(minimum=1, maximum=2), ["a", "ab"], ["", "abc"]),
    (Text(excluded=frozenset(["a"])), ["", "b", "aa"], ["a"]),
    (AB, ["ab"], ["", "a", "abc"]),
    (Integer(), [0, -1, 7, 7.0, 2**70], [0.5, True, "1", None, float("inf"), float("nan")]),
    (Integer(minimum=0, maximum=3), [0, 3, 0.0], [-1, 4, 1.5]),
    (Integer(minimum=2), [2, 9], [1]),
    (Integer(maximum=2), [2, -9], [3]),
    (Integer(multiple=3), [0, 3, -6, 9.0], [1, 2, 4, 3.5]),
    (Number(), [0, 0.5, -1e300], [True, "1", None, float("inf"), float("nan")]),
    (Number(minimum=D("0.1"), maximum=D("0.3")), [0.1, 0.2, 0.3], [0.05, 0.35, 1]),
    (
        Number(minimum=D("0.1"), maximum=D("0.3"), exclusive_minimum=True, exclusive_maximum=True),
        [0.2, 0.15],
        [0.1, 0.3, 0, 1],
    ),
    (Number(minimum=D(1), exclusive_minimum=True), [1.5, 2], [1, 1.0, 0]),
    (Number(maximum=D(1), exclusive_maximum=True), [0.5, -2], [1, 1.0, 2]),
    (Number(places=1), [0.5, 1, -2.5, 1.0, 100, 3.10], [0.25, 1.05]),
    (Number(places=2), [0.25, 0.5], [0.125]),
    (Number(fractional=True), [0.5, -1.25], [1, 1.0, 0]),
    (Union((Null(), Text())), [None, "a"], [1]),
    (Reference("n"), [1, 2], ["a", 0]),
    (Reference("unknown"), [1, "a"], []),
    (Array(), [[], [1, "a"]], [{}, "[]", (1,), None]),
    (Array(minimum=1, maximum=2), [[1], [1, 2]], [[], [1, 2, 3]]),
    (Array(prefix=(Null(),), items=Text()), [[], [None], [None, "a", "b"]], [["a"], [None, 1], [None, "a", 1]]),
    (Array(prefix=(Null(),), items=Nothing()), [[], [None]], [[None, None], [1]]),
    (
        Array(contained=Contained(Text(), Null(), 1, 2)),
        [["a"], ["a", None], ["a", "b", 1]],
        [[], [None], ["a", "b", "c"]],
    ),
    (named(("a", Text()), ("b?", Null())), [{"a": "x"}, {"a": "x", "b": None}], [{}, {"b": None}, {"a": 1}, [], "a"]),
    (named(("a", Text()), ("b?", Null())), [MappingProxyType({"a": "x"})], [{"a": "x", "b": 1}, {"a": "x", "c": 1}]),
    (named(others=Anything()), [{}, {"a": 1}], [[]]),
    (named(extra=((Text(), Integer()),)), [{}, {"a": 1, "b": 2}], [{"a": 1, "b": "x"}]),
    (named(extra=((A, Integer()), (AB, Text()))), [{"a": 1, "ab": "x"}], [{"a": "x"}, {"ab": 1}, {"c": 1}]),
    (named(extra=((A, Integer()), (Text(), Text()))), [{"a": 1}, {"a": "x"}, {"b": "x"}], [{"b": 1}, {"a": None}]),
    (named(extra=((A, Integer()),), others=Null()), [{"a": 1, "b": None}], [{"a": None}, {"b": 1}]),
    (
        named(("a", Text()), extra=((Text(), Integer()),), minimum=1, maximum=2),
        [{"a": "x", "b": 1}, {"a": "x", "b": 1, "c": 2}],
        [{"a": "x"}, {"a": "x", "b": 1, "c": 2, "d": 3}, {"b": 1}],
    ),
]


@pytest.mark.parametrize(("shape", "admitted", "refused"), CASES)
def test_every_shape_judges_every_kind_of_value(shape, admitted, refused):
    """Bounds belong to the range, numbers are compared as numbers, and no value has a wrong type."""
    definitions = {"n": Integer(minimum=1)}

    assert [value for value in admitted if not admits(shape, value, definitions)] == []
    assert [value for value in refused if admits(shape, value, definitions)] == []


def test_what_is_too_deep_is_admitted():
    """64 levels are looked at, so that a value without end is judged."""
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
    """The budget is for one value with all its parts."""
    monkeypatch.setattr(admission, "MAX_JUDGED", 4)
    shape = Array(items=Integer())

    assert not admits(shape, [1, 2, "x"], {})
    assert admits(shape, [1, 2, 3, "x"], {})


def test_a_container_is_judged_once_by_each_shape(monkeypatch):
    """One list that is in a value often costs what it costs once."""
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
    """Numbers without a fraction have none in the text, as far as floats are exact; keys keep their order."""
    assert as_json(value) == text


def test_equal_values_have_one_text():
    """The order of keys is not a difference; letters stay as they are."""
    assert canonical({"b": "é", "a": (1.0,)}) == canonical({"a": [1], "b": "é"}) == '{"a": [1], "b": "é"}'


ONE, TWO = Constant("1"), Constant("2")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], True),
        ([ONE, TWO], True),
        ([ONE, Constant("1.0")], False),
        ([ONE, Null(), Text()], True),
        ([ONE, Integer()], False),
        ([Text(), Null(), Text()], False),
        ([Text(), Constant('"a"')], False),
        ([Text(maximum=0), Constant('"a"')], True),
        ([Union((Text(), Null())), Integer(), Null()], False),
        ([Anything(), Null()], False),
    ],
)
def test_a_choice_is_exclusive_when_no_value_has_two_shapes(options, expected):
    """Constants are compared with each other and with all other shapes."""
    assert exclusive(options, {}) is expected


def test_what_costs_too_much_to_tell_apart_is_not(monkeypatch):
    """Beyond the budget nothing is certain."""
    few = [Null(), Boolean(), Text()]
    assert exclusive(few, {})
    monkeypatch.setattr(admission, "MAX_STATES", 9)
    assert exclusive(few, {})
    assert disjoint(Union((Null(), Boolean(), Text())), Union((Integer(), Array(), Object())), {})
    monkeypatch.setattr(admission, "MAX_STATES", 8)
    assert not exclusive(few, {})
    assert exclusive([ONE, TWO, Constant("3"), Null()], {})
    assert not disjoint(Union((Null(), Boolean(), Text())), Union((Integer(), Array(), Object())), {})


def kind(value, *more):
    return named(("kind", value), *more)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (Null(), Boolean(), True),
        (Text(), Array(), True),
        (Array(), Object(), True),
        (Array(), Array(), False),
        (Integer(), Number(), False),
        (Text(), Text(minimum=3), False),
        (ONE, TWO, True),
        (ONE, Number(), False),
        (Number(maximum=D(0)), ONE, True),
        (Anything(), Null(), False),
        (Nothing(), Null(), True),
        (Reference("one"), TWO, True),
        (Reference("one"), ONE, False),
        (Reference("unknown"), ONE, False),
        (Union((Null(), Text())), Union((Integer(), Boolean())), True),
        (Union((Null(), Text())), Union((Integer(), Null())), False),
        (kind(ONE), kind(TWO), True),
        (kind(ONE), kind(Union((ONE, TWO))), False),
        (kind(ONE), kind(Integer(minimum=2)), False),
        (kind(ONE), named(("kind?", TWO)), False),
        (named(("kind?", ONE)), kind(TWO), False),
        (kind(ONE), named(("other", TWO)), False),
        (kind(Text(), ("b", ONE)), kind(Null(), ("b", TWO)), True),
        (kind(ONE), Text(), True),
    ],
)
def test_two_shapes_are_disjoint_by_type_value_or_a_property(left, right, expected):
    """A property that both require tells objects apart where its values are listed, and different."""
    definitions = {"one": ONE}

    assert disjoint(left, right, definitions) is expected
    assert disjoint(right, left, definitions) is expected
