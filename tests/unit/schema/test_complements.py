"""What breaks a schema is a list of schemas, keyword by keyword."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from unrender.schema.admission import admits
from unrender.schema.conjuncts import ABSENT, ITEMS, MEMBERS, excluded_schemas, is_listing
from unrender.schema.reader import read_schema

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
    assert excluded_schemas(schema) is None


def test_a_deep_complement_is_given_up() -> None:
    """Nested schemas are broken to a bounded depth."""
    schema: Any = {"minimum": 1}
    for _ in range(50):
        schema = {"properties": {"a": schema}}

    assert excluded_schemas(schema) is None


BROKEN: list[tuple[Any, Any]] = [
    (True, []),
    (False, [True]),
    ({}, []),
    ({"title": "t"}, []),
    (5, None),
    (None, None),
    ([], None),
    ({"type": "string"}, [{"not": {"type": "string"}}]),
    ({"enum": [1], "title": "t"}, [{"not": {"enum": [1], "title": "t"}}]),
    ({"const": 1}, [{"not": {"const": 1}}]),
    ({"type": "string", "const": "a"}, [{"not": {"type": "string", "const": "a"}}]),
    ({"minimum": 3}, [{"type": "number", "exclusiveMaximum": 3}]),
    ({"maximum": 3}, [{"type": "number", "exclusiveMinimum": 3}]),
    ({"exclusiveMinimum": 3}, [{"type": "number", "maximum": 3}]),
    ({"exclusiveMaximum": 3}, [{"type": "number", "minimum": 3}]),
    (
        {"minimum": 1, "maximum": 2},
        [{"type": "number", "exclusiveMaximum": 1}, {"type": "number", "exclusiveMinimum": 2}],
    ),
    ({"minimum": True}, None),
    ({"minLength": 3}, [{"type": "string", "maxLength": 2}]),
    ({"minLength": 1}, [{"type": "string", "maxLength": 0}]),
    ({"minLength": 0}, []),
    ({"maxLength": 3}, [{"type": "string", "minLength": 4}]),
    ({"maxLength": 0}, [{"type": "string", "minLength": 1}]),
    ({"minItems": 2}, [{"type": "array", "maxItems": 1}]),
    ({"minItems": 0}, []),
    ({"maxItems": 2}, [{"type": "array", "minItems": 3}]),
    ({"minLength": 2.5}, None),
    ({"minLength": True}, None),
    ({"maxLength": -1}, [{"type": "string", "minLength": 0}]),
    ({"maxLength": -2}, []),
    ({"required": ["a", "b"]}, [{"type": "object", ABSENT: ["a"]}, {"type": "object", ABSENT: ["b"]}]),
    ({"required": []}, []),
    ({"required": ("a",)}, [{"type": "object", ABSENT: ["a"]}]),
    ({"required": [1]}, None),
    ({"required": "ab"}, None),
    (
        {"properties": {"a": {"minimum": 1}, "b": {"type": "null"}}},
        [
            {"type": "object", MEMBERS: {"a": {"type": "number", "exclusiveMaximum": 1}}},
            {"type": "object", MEMBERS: {"b": {"not": {"type": "null"}}}},
        ],
    ),
    ({"properties": {"a": True}}, []),
    ({"properties": {"a": False}}, [{"type": "object", MEMBERS: {"a": True}}]),
    ({"properties": {}}, []),
    ({"properties": 5}, None),
    ({"properties": {"a": {"pattern": "x"}}}, None),
    (
        {"prefixItems": [{"minimum": 1}, {"maxLength": 2}]},
        [
            {"type": "array", "minItems": 1, ITEMS: [{"type": "number", "exclusiveMaximum": 1}]},
            {"type": "array", "minItems": 2, ITEMS: [True, {"type": "string", "minLength": 3}]},
        ],
    ),
    ({"prefixItems": 5}, None),
    ({"prefixItems": [{"pattern": "x"}]}, None),
    ({"prefixItems": (True, False)}, [{"type": "array", "minItems": 2, ITEMS: [True, True]}]),
    (
        {"allOf": [{"minimum": 1}, {"maximum": 2}]},
        [{"type": "number", "exclusiveMaximum": 1}, {"type": "number", "exclusiveMinimum": 2}],
    ),
    ({"allOf": []}, []),
    ({"allOf": 5}, None),
    ({"allOf": [{"pattern": "x"}]}, None),
    (
        {"anyOf": [{"minimum": 1}, {"maximum": 2}]},
        [
            {
                "allOf": [
                    {"anyOf": [{"type": "number", "exclusiveMaximum": 1}]},
                    {"anyOf": [{"type": "number", "exclusiveMinimum": 2}]},
                ]
            }
        ],
    ),
    ({"anyOf": [True, {"minimum": 1}]}, [{"allOf": [False, {"anyOf": [{"type": "number", "exclusiveMaximum": 1}]}]}]),
    ({"anyOf": []}, [{"allOf": []}]),
    ({"anyOf": 5}, None),
    ({"anyOf": [{"pattern": "x"}, {"minimum": 1}]}, None),
    ({"not": {"minimum": 1}}, [{"minimum": 1}]),
    ({"type": "string", "minLength": 1}, [{"not": {"type": "string"}}, {"type": "string", "maxLength": 0}]),
    ({"pattern": "x"}, None),
    ({"minimum": 1, "pattern": "x"}, None),
    ({"minimum": 1, "title": "t", "$comment": "c"}, [{"type": "number", "exclusiveMaximum": 1}]),
    ({"allOf": ({"minimum": 1},)}, [{"type": "number", "exclusiveMaximum": 1}]),
    ({"const": 1, "minimum": 1}, [{"not": {"const": 1}}, {"type": "number", "exclusiveMaximum": 1}]),
    ({"enum": [1], "minimum": 1}, [{"not": {"enum": [1]}}, {"type": "number", "exclusiveMaximum": 1}]),
]
"""A schema, and the schemas of which one holds where it does not."""


@pytest.mark.parametrize(("schema", "expected"), BROKEN)
def test_each_keyword_is_broken_in_its_way(schema: Any, expected: Any) -> None:
    """What breaks a keyword says its type; sizes move by one; nothing breaks what forbids nothing."""
    assert excluded_schemas(schema) == expected


WRAPPED: list[Any] = [
    lambda schema: {"properties": {"a": schema}},
    lambda schema: {"prefixItems": [schema]},
    lambda schema: {"allOf": [schema]},
    lambda schema: {"anyOf": [schema]},
]


@pytest.mark.parametrize("wrap", WRAPPED)
def test_sixteen_levels_are_broken(wrap: Any) -> None:
    """Each keyword that holds schemas is one level."""
    schema: Any = {"minimum": 1}
    for _ in range(16):
        schema = wrap(schema)

    assert excluded_schemas(schema) is not None
    assert excluded_schemas(wrap(schema)) is None


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, False),
        ({"title": "t"}, False),
        ({"type": "null"}, True),
        ({"enum": [], "const": 1, "type": "null", "title": "t"}, True),
        ({"type": "string", "minLength": 1}, False),
    ],
)
def test_a_listing_says_types_and_values_alone(schema: Any, expected: bool) -> None:
    """Annotations say nothing; any other keyword says more."""
    assert is_listing(schema) is expected
