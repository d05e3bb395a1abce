"""Shapes become JSON Schema again, in the keywords that engines agree on."""

from __future__ import annotations

from decimal import Decimal

import jsonschema
import pytest

from unrender.nodes import Literal
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
from unrender.schema.writer import Unwritable, shape_schema, write_schema

VALUES = [
    None,
    True,
    3,
    7.5,
    -3,
    "",
    "abc",
    "x-a",
    [],
    [1],
    ["a", None],
    {},
    {"a": 1},
    {"x-a": "s"},
    {"a": "x", "b": 2},
]
SCHEMAS = [
    {"type": ["string", "null"], "minLength": 1, "maxLength": 3},
    {"type": "integer", "minimum": -5, "multipleOf": 3},
    {"type": "number", "exclusiveMinimum": 0, "maximum": 7.5, "multipleOf": 0.1},
    {"type": "string", "pattern": "a"},
    {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "null"}, "minItems": 1, "maxItems": 2},
    {"type": "array", "items": [{"type": "integer"}], "additionalItems": False},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False},
    {"type": "object", "patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False},
    {"type": "object", "propertyNames": {"maxLength": 1}},
    {"type": "object", "minProperties": 1, "maxProperties": 1},
    {"enum": [3, "abc", None, {"a": 1}]},
    {"anyOf": [{"type": "boolean"}, {"allOf": [{"type": "array"}, {"maxItems": 1}]}]},
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_written_schema_admits_the_same_values(schema):
    """Reading and writing a schema changes nothing of what it admits."""
    again = write_schema(read_schema(schema))

    verdicts = [jsonschema.Draft202012Validator(again).is_valid(value) for value in VALUES]

    # The old list form of `items` is unknown to the newest draft.
    validator = jsonschema.Draft7Validator if isinstance(schema.get("items"), list) else jsonschema.Draft202012Validator
    assert verdicts == [validator(schema).is_valid(value) for value in VALUES]


def test_recursion_is_kept_in_definitions():
    """A reference leads to `$defs`."""
    written = write_schema(read_schema({"properties": {"next": {"$ref": "#"}}}))

    assert written["$ref"].removeprefix("#/$defs/") in written["$defs"]


def test_numbers_are_bounded_as_in_the_rules():
    """Where nothing bounds a whole number, the digits that rules generate do."""
    assert write_schema(read_schema({"type": "integer"})) == {
        "type": "integer",
        "minimum": -(10**18) + 1,
        "maximum": 10**18 - 1,
    }


NULL, TEXT, NOTHING = Null(), Text(), Nothing()
MOST = 10**18 - 1
EMPTY = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
A, MUST = Property("a", NULL), Property("a", NULL, True)
PATTERN = Text(pattern=Literal("k."))
WRITTEN = [
    (Anything(), {}),
    (NULL, {"type": "null"}),
    (Boolean(), {"type": "boolean"}),
    (Constant('{"a": [1]}'), {"const": {"a": [1]}}),
    (Union((Constant("1"), Constant('"a"'))), {"enum": [1, "a"]}),
    (Union((Constant("1"), NULL)), {"anyOf": [{"const": 1}, {"type": "null"}]}),
    (Reference("r"), {"$ref": "#/$defs/r"}),
    (Integer(), {"type": "integer", "minimum": -MOST, "maximum": MOST}),
    (Integer(minimum=0, maximum=5), {"type": "integer", "minimum": 0, "maximum": 5}),
    (Integer(minimum=-(10**30), maximum=10**30), {"type": "integer", "minimum": -MOST, "maximum": MOST}),
    (Integer(minimum=10**30), {"type": "integer", "minimum": 10**30, "maximum": 10**30}),
    (Integer(multiple=3), {"type": "integer", "multipleOf": 3}),
    (Integer(minimum=0, multiple=3), {"type": "integer", "minimum": 0, "multipleOf": 3}),
    (Integer(maximum=9, multiple=3), {"type": "integer", "maximum": 9, "multipleOf": 3}),
    (Number(), {"type": "number"}),
    (Number(minimum=Decimal(1), maximum=Decimal("2.5")), {"type": "number", "minimum": 1, "maximum": 2.5}),
    (
        Number(minimum=Decimal(0), maximum=Decimal("0.5"), exclusive_minimum=True, exclusive_maximum=True),
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5},
    ),
    (Number(places=2), {"type": "number", "multipleOf": 0.01}),
    (TEXT, {"type": "string"}),
    (Text(minimum=1, maximum=0), {"type": "string", "minLength": 1, "maxLength": 0}),
    (PATTERN, {"type": "string", "pattern": "^(?:k\\.)$"}),
    (Array(), {"type": "array", "items": {}}),
    (Array(items=NOTHING, maximum=0), {"type": "array", "items": False, "maxItems": 0}),
    (
        Array(prefix=(NULL,), items=TEXT, minimum=1, maximum=3),
        {"type": "array", "items": {"type": "string"}, "prefixItems": [{"type": "null"}], "minItems": 1, "maxItems": 3},
    ),
    (Object(), EMPTY),
    (Object(properties=(A,)), {**EMPTY, "properties": {"a": {"type": "null"}}}),
    (Object(properties=(MUST,)), {**EMPTY, "properties": {"a": {"type": "null"}}, "required": ["a"]}),
    (Object(extra=((TEXT, NULL),)), {**EMPTY, "additionalProperties": {"type": "null"}}),
    (
        Object(properties=(MUST,), extra=((Text(excluded=frozenset("acb")), NULL),), minimum=1, maximum=2),
        {
            **EMPTY,
            "properties": {"a": {"type": "null"}, "b": False, "c": False},
            "required": ["a"],
            "additionalProperties": {"type": "null"},
            "minProperties": 2,
            "maxProperties": 3,
        },
    ),
    (
        Object(properties=(A,), extra=((TEXT, NULL),), maximum=0),
        {
            **EMPTY,
            "properties": {"a": {"type": "null"}},
            "additionalProperties": {"type": "null"},
            "maxProperties": 0,
        },
    ),
    (
        Object(extra=((PATTERN, NULL), (Text(pattern=Literal("l"), excluded=frozenset()), TEXT))),
        {**EMPTY, "patternProperties": {"^(?:k\\.)$": {"type": "null"}, "^(?:l)$": {"type": "string"}}},
    ),
    (
        Object(extra=((Text(minimum=2), NULL), (Text(maximum=1), TEXT), (Text(minimum=3, maximum=4), NULL))),
        {
            **EMPTY,
            "patternProperties": {
                "^[\\s\\S]{2,}$": {"type": "null"},
                "^[\\s\\S]{0,1}$": {"type": "string"},
                "^[\\s\\S]{3,4}$": {"type": "null"},
            },
        },
    ),
]


@pytest.mark.parametrize(("shape", "schema"), WRITTEN)
def test_a_shape_is_written_in_few_keywords(shape, schema):
    """Types are given, objects are closed, and whole numbers have bounds."""
    assert shape_schema(shape) == schema


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        (Number(fractional=True), "a number that is not whole"),
        (Text(excluded=frozenset("a")), "a string that is not one of some words"),
        (Array(contained=Contained(NULL, TEXT, 1, None)), "a list that contains items"),
        (Object(properties=(Property("a", Number(fractional=True)),)), "a number that is not whole"),
    ],
)
def test_what_engines_do_not_say_is_not_written(shape, reason):
    """The rules of the grammar say it instead."""
    with pytest.raises(Unwritable, match=reason):
        shape_schema(shape)


def test_the_impossible_has_no_schema():
    """`Nothing` is left out before."""
    with pytest.raises(ValueError, match="no value has this shape"):
        shape_schema(NOTHING)


def test_definitions_are_written_where_there_are_any():
    """A schema that does not refer to itself has none."""
    assert write_schema(read_schema({"type": "null"})) == {"type": "null"}
    assert write_schema(read_schema({"type": "array", "items": {"$ref": "#"}})) == {
        "$ref": "#/$defs/recursive-1",
        "$defs": {"recursive-1": {"type": "array", "items": {"$ref": "#/$defs/recursive-1"}}},
    }
