"""Example values: readable, and allowed by the schema."""

from __future__ import annotations

import pytest

from unrender.examples import example_value
from unrender.grammar import conforms

CITY = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "question", "value"),
    [
        ({"const": [1]}, "", [1]),
        ({"enum": ["celsius", "fahrenheit"]}, "", "celsius"),
        ({"enum": ["celsius", "fahrenheit"]}, "In Fahrenheit, please", "fahrenheit"),
        ({"type": "string", "examples": ["Lima"]}, "", "Lima"),
        ({"type": "string", "default": "Oslo"}, "", "Oslo"),
        ({"type": "string", "format": "date"}, "", "2026-01-15"),
        ({"type": ["null", "string"]}, "", "example"),
        ({"type": "integer", "minimum": 10, "multipleOf": 4}, "", 12),
        ({"type": "number", "exclusiveMaximum": -1}, "", -2),
        ({"type": "integer"}, "For 5 days", 5),
        ({"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"}, "", "AB-123"),
        ({"type": "string", "maxLength": 3}, "", "exa"),
        ({"type": "array", "items": {"type": "boolean"}, "minItems": 2}, "", [True, True]),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, "", 3),
        ({"properties": {"city": CITY, "days": {"type": "integer"}}, "required": ["city"]}, "", {"city": "Paris"}),
        ({"properties": {"city": CITY}}, "Will it rain in New York?", {"city": "New York"}),
        ({"properties": {"query": CITY}}, "Who was Ada?", {"query": "Who was Ada?"}),
        ({"properties": {"userEmail": CITY}}, "", {"userEmail": "ada@example.com"}),
        (
            {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"year": {"type": "integer"}}}}},
            "",
            {"year": 2026},
        ),
    ],
)
def test_an_example(schema, question, value):
    """The schema's own words come first, then the question's, then those of the property's name."""
    assert example_value(schema, question=question) == value


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^(ab){7}$"},
        {"type": "integer", "minimum": 10**6, "multipleOf": 7},
        {"type": "array", "items": {"type": "integer"}, "minItems": 2, "uniqueItems": True},
        {"not": {"type": ["string", "object"]}},
        {"type": "object", "minProperties": 3},
        {
            "$ref": "#/$defs/n",
            "$defs": {"n": {"type": "object", "properties": {"n": {"items": {"$ref": "#/$defs/n"}}}}},
        },
        True,
    ],
    ids=str,
)
def test_what_cannot_be_guessed_is_drawn(schema):
    """Every value is one that the schema allows."""
    assert conforms(example_value(schema), schema)
