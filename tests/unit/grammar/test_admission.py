"""Shapes admit values, and are told apart."""

from __future__ import annotations

import jsonschema
import pytest

from unrender.grammar.admission import admits, canonical, disjoint
from unrender.grammar.json_schema import read_schema

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


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ({"type": "string"}, {"type": "integer"}, True),
        ({"type": "integer"}, {"type": "number"}, False),
        ({"const": "a"}, {"type": "string", "minLength": 2}, True),
        ({"const": "a"}, {"type": "string"}, False),
        ({}, {"type": "string"}, False),
        (
            {"properties": {"a": {"const": 1}}, "required": ["a"]},
            {"required": ["a"], "properties": {"a": {"const": 2}}},
            True,
        ),
        ({"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}, False),
        ({"properties": {"a": {}}}, {"properties": {"b": {}}}, False),
    ],
)
def test_shapes_are_disjoint_only_when_that_is_certain(left, right, expected):
    """Types, constants and required properties tell shapes apart; anything less does not."""
    assert disjoint(read_schema(left).shape, read_schema(right).shape, {}) is expected


def test_equal_numbers_have_one_text():
    """JSON knows one number: 1 and 1.0 are the same."""
    assert canonical(1.0) == canonical(1) == "1"
