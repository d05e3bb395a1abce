"""JSON Schema becomes rules of JSON text."""

from __future__ import annotations

import json

import jsonschema
import pytest

from unrender.dialects.sample import sample_text
from unrender.grammar import Grammar
from unrender.grammar.spelling import schema_grammar
from unrender.nodes import Chars, Ref, walk

SCHEMAS = [
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}, "c": {}}, "required": ["b"]},
    {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "integer"}},
    {"type": "object", "patternProperties": {"^x-[a-z]+$": {"type": "boolean"}}, "additionalProperties": False},
    {"type": "object", "minProperties": 1, "maxProperties": 3},
    {"type": "array", "items": {"type": "number", "minimum": -2.5, "maximum": 9}, "minItems": 2, "maxItems": 4},
    {
        "type": "array",
        "prefixItems": [{"type": "string"}, {"type": "null"}],
        "items": {"type": "boolean"},
        "minItems": 1,
    },
    {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
    {"type": "string", "minLength": 2, "maxLength": 5},
    {"type": "string", "pattern": '^["\\\\\\n]{3}$'},
    {"type": "string", "not": {"enum": ["a", "ab", ""]}},
    {"enum": ["red", None, 42, ["foo", {"a": "ü"}]]},
    {"anyOf": [{"type": "integer", "multipleOf": 5}, {"type": "number", "exclusiveMaximum": 0.5}]},
    {
        "$ref": "#/$defs/tree",
        "$defs": {"tree": {"properties": {"of": {"items": {"$ref": "#/$defs/tree"}}}, "required": ["of"]}},
    },
    {
        "allOf": [
            {"properties": {"a": {"type": "string"}}},
            {"properties": {"b": {"type": "integer"}}, "required": ["a", "b"]},
        ]
    },
    {"type": "string", "format": "date-time"},
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:50])
def test_what_is_generated_obeys_the_schema(schema):
    """Every text of the rules is JSON, and valid."""
    rules = schema_grammar(schema)
    grammar = Grammar(rules.node, rules.rules)

    texts = [sample_text(grammar, seed) for seed in range(60)]

    for text in texts:
        jsonschema.validate(json.loads(text), schema)
    assert rules.unsupported == ()


def test_equal_parts_share_a_rule():
    """A schema that is in many places is written once."""
    point = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}}
    one = schema_grammar({"type": "object", "properties": {"p0": point}})
    many = schema_grammar({"type": "object", "properties": {f"p{n}": point for n in range(20)}})

    assert len(many.rules) - len(one.rules) < 4 * 20


def test_rules_grow_linearly_with_optional_properties():
    """Leaving properties out does not multiply the rules."""
    sizes = {}
    for count in (10, 20, 40):
        rules = schema_grammar({"type": "object", "properties": {f"p{n}": {"type": "boolean"} for n in range(count)}})
        sizes[count] = sum(1 for node in rules.rules.values() for _ in walk(node))

    assert sizes[40] - sizes[20] <= 2.2 * (sizes[20] - sizes[10])


def test_every_rule_that_is_referred_to_is_defined():
    """The rules are complete."""
    rules = schema_grammar(SCHEMAS[12])

    referred = {
        node.rule for body in (rules.node, *rules.rules.values()) for node in walk(body) if isinstance(node, Ref)
    }

    assert referred <= rules.rules.keys()


def test_white_space_between_tokens_is_bounded():
    """A model cannot run on in white space for ever."""
    space = schema_grammar({"type": "array"}).rules["json-space"]

    assert isinstance(space, Chars)
    assert space.maximum == 32
