"""Shapes become JSON Schema again, in the keywords that engines agree on."""

from __future__ import annotations

import jsonschema
import pytest

from unrender.grammar.json_schema import read_schema
from unrender.grammar.schema_writer import write_schema

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
