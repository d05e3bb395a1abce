"""Tests of the rules for JSON Schema."""

from __future__ import annotations

import json
from itertools import islice

import jsonschema
from cases import cases
from remainders import turn_of

from unrender import grammar as c


def size(**properties: object) -> int:
    """Return the size of an object's GBNF in characters."""
    return len(turn_of(c.schema({"type": "object", "properties": properties})).constraint("llama.cpp").grammar)


@cases
def test_what_is_generated_obeys_the_schema(schema: object) -> None:
    """Every generated text is valid JSON for the schema."""
    for text in islice(turn_of(c.schema(schema))._samples(), 60):
        jsonschema.validate(json.loads(text), schema)

    assert c.unsupported_keywords(schema) == ()


def test_equal_parts_share_a_rule() -> None:
    """A repeated schema is written once."""
    point = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}}

    assert size(**{f"p{n}": point for n in range(20)}) - size(p0=point) < 20 * 150


def test_white_space_between_tokens_is_bounded() -> None:
    """A model can't generate endless whitespace."""
    assert "{0,32}" in turn_of(c.schema({"type": "array"})).constraint("llama.cpp").grammar
