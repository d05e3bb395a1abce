"""What breaks a schema is a list of schemas, keyword by keyword."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from unrender.grammar.admission import admits
from unrender.grammar.complements import complement
from unrender.grammar.json_schema import read_schema

VALUES = [
    None,
    True,
    0,
    3,
    7.5,
    -1,
    "",
    "abc",
    "abcd",
    [],
    [1],
    [1, 2],
    {},
    {"a": 1},
    {"a": "x"},
    {"b": 1},
    {"a": 1, "b": 2},
]
TYPES = ["object", "array", "string", "number", "boolean", "null"]
SCHEMAS = [
    True,
    False,
    {},
    {"type": "string"},
    {"type": ["string", "number"], "description": "either"},
    {"const": "abc"},
    {"enum": ["abc", None]},
    {"minimum": 1},
    {"exclusiveMaximum": 3},
    {"minimum": 0, "maximum": 3},
    {"minLength": 1},
    {"maxLength": 3},
    {"minLength": 0},
    {"maxItems": 1},
    {"required": ["a", "b"]},
    {"properties": {"a": {"type": "string"}}},
    {"properties": {"a": {"type": "string"}}, "required": ["a"]},
    {"anyOf": [{"type": "string"}, {"required": ["a"]}]},
    {"allOf": [{"type": "object"}, {"required": ["a"]}]},
    {"not": {"required": ["a"]}},
    {"not": {"not": {"minimum": 1}}},
]


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("word", ["not", "if"])
def test_a_complement_admits_what_its_schema_does_not(schema: Any, word: str) -> None:
    """`not`, and `if` with `then: false`, are exact wherever there is a complement."""
    whole = {"type": TYPES, **({"not": schema} if word == "not" else {"if": schema, "then": False})}
    expected = [value for value in VALUES if jsonschema.Draft202012Validator(whole).is_valid(value)]
    if not expected:
        return
    reading = read_schema(whole)

    assert [value for value in VALUES if admits(reading.shape, value, reading.definitions)] == expected
    assert reading.unsupported == ()


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "a"},
        {"minLength": 1, "format": "date"},
        {"properties": {"a": {"pattern": "a"}}},
        {"properties": 5},
        {"required": 5},
        {"minLength": True},
        {"minimum": True},
        {"allOf": 5},
        {"anyOf": [{"pattern": "a"}]},
        {"$ref": "#"},
        5,
    ],
)
def test_what_has_no_complement_is_none(schema: Any) -> None:
    """Patterns, references and what is not JSON Schema are left to the report."""
    assert complement(schema) is None


def test_a_deep_complement_is_given_up() -> None:
    """Nested schemas are broken to a bounded depth."""
    schema: Any = {"minimum": 1}
    for _ in range(50):
        schema = {"properties": {"a": schema}}

    assert complement(schema) is None
