r"""What breaks a schema is a list of schemas, keyword by keyword: `tests/corpus/complements.jsonl`. Keys with `\0` are ours."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from recipes import ANALYSIS, rows_of

from unrender.schema.admission import admits
from unrender.schema.conjuncts import excluded_schemas
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


def test_each_keyword_is_broken_in_its_way() -> None:
    """What breaks a keyword says its type; sizes move by one; patterns and references have no complement."""
    rows = rows_of(ANALYSIS.with_name("complements.jsonl"))

    assert [{**row, "broken": excluded_schemas(row["schema"])} for row in rows] == rows


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
