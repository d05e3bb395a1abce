"""Shapes become JSON Schema again, in the keywords that engines agree on."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from decimal import Decimal

import jsonschema
import pytest
from schema_rows import schema_rows

from unrender.nodes import Literal
from unrender.schema.reader import read_schema
from unrender.schema.shapes import Array, Contained, Integer, Nothing, Null, Number, Object, Property, Text
from unrender.schema.writer import Unwritable, shape_schema, write_schema

NULL, TEXT, NOTHING = Null(), Text(), Nothing()
ROWS = [row for row in schema_rows() if "error" not in row]


def test_the_written_schema_admits_the_same_values():
    """Another judge comes to the verdicts of the rows; numbers in floating point are left out, which it rounds."""
    for row in ROWS:
        with suppress(Unwritable):
            validator = jsonschema.Draft202012Validator(write_schema(read_schema(row["schema"])))
            for field in ("accepts", "rejects"):
                values = [value for value in row.get(field, ()) if not re.search(r"[0-9][.e]", json.dumps(value))]
                assert [value for value in values if validator.is_valid(value) != (field == "accepts")] == [], row


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


MOST = 10**18 - 1
WRITTEN = [
    (Integer(minimum=-(10**30), maximum=10**30), {"type": "integer", "minimum": -MOST, "maximum": MOST}),
    (Integer(minimum=10**30), {"type": "integer", "minimum": 10**30, "maximum": 10**30}),
    (Integer(multiple=3), {"type": "integer", "multipleOf": 3}),
    (Number(minimum=Decimal(1), maximum=Decimal("2.5")), {"type": "number", "minimum": 1, "maximum": 2.5}),
    (
        Number(minimum=Decimal("0.5"), exclusive_minimum=True),
        {"type": "number", "exclusiveMinimum": 0.5},
    ),
    (Number(places=2), {"type": "number", "multipleOf": 0.01}),
    (Text(pattern=Literal("k.")), {"type": "string", "pattern": "^(?:k\\.)$"}),
    (
        Array(prefix=(NULL,), items=TEXT, minimum=1, maximum=3),
        {"type": "array", "items": {"type": "string"}, "prefixItems": [{"type": "null"}], "minItems": 1, "maxItems": 3},
    ),
    (
        Object(
            properties=(Property("a", NULL, True),),
            extra=(
                (Text(excluded=frozenset("acb")), NULL),
                (Text(minimum=3, maximum=4), TEXT),
                (Text(minimum=2), NULL),
            ),
            minimum=1,
            maximum=2,
        ),
        {
            "type": "object",
            "properties": {"a": {"type": "null"}, "b": False, "c": False},
            "required": ["a"],
            "additionalProperties": {"type": "null"},
            "patternProperties": {"^[\\s\\S]{3,4}$": {"type": "string"}, "^[\\s\\S]{2,}$": {"type": "null"}},
            "minProperties": 2,
            "maxProperties": 3,
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
        (Number(minimum=Decimal(0), maximum=Decimal(1), exclusive_maximum=True), "an open bound beside another"),
        (Number(minimum=Decimal(1), maximum=Decimal(2), exclusive_minimum=True), "an open bound beside another"),
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
