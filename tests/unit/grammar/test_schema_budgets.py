"""Hostile schemas are read within budgets, and nothing but a `GrammarError` comes of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from unrender import GrammarError
from unrender.dialects.gbnf import gbnf_of
from unrender.dialects.lark import lark_of
from unrender.grammar import Grammar
from unrender.grammar.expansion import Values, expand
from unrender.nodes import JsonValue
from unrender.schema.admission import canonical
from unrender.schema.reader import read_schema

NAN, INFINITY = float("nan"), float("inf")


def nested(depth: int, wrap: Any, leaf: Any = True) -> Any:
    for _ in range(depth):
        leaf = wrap(leaf)
    return leaf


def cyclic() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["properties"]["a"] = schema
    return schema


BRANCHES = [{"anyOf": [{"properties": {f"p{i}{j}": {}}} for j in range(4)]} for i in range(10)]
WIDER = {
    "branches multiplied": ({"allOf": BRANCHES}, "anyOf"),
    "branches of lengths": ({"allOf": [{"anyOf": [{"minLength": j} for j in range(4)]} for _ in range(10)]}, "anyOf"),
    "a long repetition": ({"pattern": "^[a-z]{1000000000}$"}, "pattern"),
    "repetitions multiplied": ({"pattern": "(((a{1,100}){1,100}){1,100}){1,100}"}, "pattern"),
    "5000 groups": ({"pattern": "(" * 5000 + "a" + ")" * 5000}, "pattern"),
    "a long pattern": ({"pattern": "a" * 200_000}, "pattern"),
    "a surrogate": ({"pattern": "[\ud800-\udfff]"}, "pattern"),
    "a surrogate alone": ({"pattern": "\ud800"}, "pattern"),
    "a deep value": ({"enum": [nested(200, lambda value: [value])]}, "enum"),
    "deep objects": (nested(200, lambda schema: {"properties": {"a": schema}}), "schema"),
    "deep lists": (nested(5000, lambda schema: {"type": "array", "items": schema}), "schema"),
    "deep choices": (nested(5000, lambda schema: {"anyOf": [{"type": "null"}, schema]}), "schema"),
    "a cycle of Python objects": (cyclic(), "schema"),
    "a long bound": ({"type": "integer", "maximum": 10**400}, "maximum"),
    "a long fraction": ({"type": "number", "minimum": -(10**400)}, "minimum"),
    "a long forbidden word": ({"type": "string", "not": {"const": "a" * 5000}}, "not"),
}
NO_SCHEMA = {
    "minLength NaN": ({"minLength": NAN}, "#/minLength: expected a whole number"),
    "maxLength Infinity": ({"maxLength": INFINITY}, "#/maxLength: expected a whole number"),
    "minimum NaN": ({"type": "number", "minimum": NAN}, "#/minimum: expected a number"),
    "minimum Infinity": ({"type": "integer", "minimum": INFINITY}, "#/minimum: expected a number"),
    "multipleOf 0": ({"type": "integer", "multipleOf": 0}, "#/multipleOf: expected a positive number"),
    "multipleOf negative": ({"type": "number", "multipleOf": -1e-300}, "#/multipleOf: expected a positive number"),
    "key 5": ({"properties": {5: {}}}, "#/properties: expected names that are strings, found 5"),
    "properties 5": ({"anyOf": [{"properties": 5}]}, "#/anyOf/0/properties: expected an object, found 5"),
    "index ²": ({"$ref": "#/anyOf/²", "anyOf": [{}]}, "leads nowhere: '²' is missing"),
    "5000 digits": ({"$ref": "#/anyOf/" + "1" * 5000, "anyOf": [{}]}, "leads nowhere"),
    "a number of 5000 digits": ({"const": 10**5000}, "#/const: expected JSON"),
    "a number as type": ({"type": 10**5000}, "#/type: expected one of"),
    "a set": ({"enum": [{1}]}, "#/enum: expected JSON"),
    "a high bound below": ({"type": "integer", "minimum": 10**5000}, "#/minimum: expected a number"),
}


def spelled(schema: Any) -> Any:
    return expand(Grammar(JsonValue(schema)), Values.SPELLED)


@pytest.mark.parametrize(("schema", "keyword"), WIDER.values(), ids=WIDER)
def test_what_is_over_a_budget_is_wider_and_reported(schema: Any, keyword: str) -> None:
    """A part that costs too much may be anything, and the report names the keyword."""
    assert keyword in {item.keyword for item in spelled(schema).unsupported}


@pytest.mark.parametrize(("schema", "message"), NO_SCHEMA.values(), ids=NO_SCHEMA)
def test_what_is_no_schema_is_named_with_its_place(schema: Any, message: str) -> None:
    """A keyword with a value that JSON Schema does not know is a `GrammarError` that names the path."""
    with pytest.raises(GrammarError) as caught:
        spelled(schema)

    assert message in str(caught.value)


@pytest.mark.parametrize("write", [gbnf_of, lark_of])
def test_many_values_are_written(write: Any) -> None:
    """Ten thousand values of an enum are all there, in a grammar that grows as they do."""
    sizes = [len(write(Grammar(JsonValue({"enum": [f"v{i}" for i in range(count)]})))) for count in (5000, 10_000)]

    assert sizes[1] < 2.5 * sizes[0]


def test_many_properties_are_written() -> None:
    """A thousand properties are spelled out one after the other."""
    schema = {"properties": {f"p{i}": {"type": "string"} for i in range(1000)}}

    assert "p999" in gbnf_of(Grammar(JsonValue(schema)))


def test_reading_costs_as_much_as_there_is_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as many values are canonicalised twice as often, however they are listed."""
    counted = 0

    def counting(value: Any) -> str:
        nonlocal counted
        counted += 1
        return canonical(value)

    monkeypatch.setattr("unrender.schema.reader.canonical", counting)
    costs = []
    for count in (500, 1000):
        counted = 0
        values = [f"v{i}" for i in range(count)]
        read_schema({"allOf": [{"enum": values}, {"enum": values}], "type": "string"})
        costs.append(counted)

    assert costs[1] <= 2 * costs[0] <= 2 * 1000


def test_an_alternative_that_is_too_much_leaves_the_rest_exact() -> None:
    """Only the place where branches multiply is wider; its neighbour keeps its type."""
    found = read_schema({"properties": {"a": {"allOf": BRANCHES}, "b": {"type": "integer", "maximum": 3}}})

    assert json.dumps([item.path for item in found.unsupported]).count("#/properties/a") == len(found.unsupported)
    assert found.shape.properties[1].shape.maximum == 3
