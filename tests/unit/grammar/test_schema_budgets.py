"""Hostile schemas are processed within limits, and raise only `GrammarError`."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from remainders import turn_of, written

from unrender import GrammarError
from unrender import grammar as c
from unrender.errors import SchemaWarning

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
    "a number as key": ({"enum": [{1: 2}]}, "#/enum: expected JSON, found {1: 2}"),
    "enum NaN": ({"enum": [NAN]}, "#/enum: expected JSON, found nan"),
    "const Infinity": ({"const": INFINITY}, "#/const: expected JSON, found inf"),
    "patternProperties 5": ({"patternProperties": {5: {}}}, "#/patternProperties: expected names that are strings"),
    "dependentRequired 5": ({"dependentRequired": {5: ["b"]}}, "#/dependentRequired: expected names that are strings"),
    "minLength NaN": ({"minLength": NAN}, "#/minLength: expected a whole number"),
    "maxLength Infinity": ({"maxLength": INFINITY}, "#/maxLength: expected a whole number"),
    "minimum NaN": ({"type": "number", "minimum": NAN}, "#/minimum: expected a number"),
    "minimum Infinity": ({"type": "integer", "minimum": INFINITY}, "#/minimum: expected a number, found inf"),
    "key 5": ({"properties": {5: {}}}, "#/properties: expected names that are strings, found 5"),
    "5000 digits": ({"$ref": "#/anyOf/" + "1" * 5000, "anyOf": [{}]}, "has no target"),
    "a number of 5000 digits": ({"const": 10**5000}, "#/const: expected JSON"),
    "a number as type": ({"type": 10**5000}, "#/type: expected one of"),
    "a set": ({"enum": [{1}]}, "#/enum: expected JSON"),
    "a high bound below": ({"type": "integer", "minimum": 10**5000}, "#/minimum: expected a number"),
}


def written_with_losses(schema: Any) -> list[str]:
    """Return the warnings about keywords that aren't enforced."""
    with warnings.catch_warnings(record=True, action="always") as lost:
        turn_of(c.schema(schema)).constraint("llama.cpp")
    assert {item.category for item in lost} <= {SchemaWarning}
    return [str(item.message) for item in lost]


@pytest.mark.parametrize(("schema", "keyword"), WIDER.values(), ids=WIDER)
def test_what_is_over_a_budget_is_wider_and_reported(schema: Any, keyword: str) -> None:
    """A part that exceeds a limit accepts any value, and the warning names the keyword."""
    assert any(f": {keyword} is not enforced" in lost for lost in written_with_losses(schema))


@pytest.mark.parametrize(("schema", "message"), NO_SCHEMA.values(), ids=NO_SCHEMA)
def test_what_is_no_schema_is_named_with_its_place(schema: Any, message: str) -> None:
    """An invalid keyword value is a `GrammarError` that names the path."""
    with pytest.raises(GrammarError) as caught:
        written_with_losses(schema)

    assert message in str(caught.value)


@pytest.mark.parametrize("dialect", ["gbnf", "lark"])
def test_many_values_are_written(dialect: str) -> None:
    """All ten thousand values of an enum are written, and the grammar's size is linear."""
    few, many = (len(written(c.schema({"enum": [f"v{i}" for i in range(count)]}), dialect)) for count in (5000, 10_000))

    assert many < 2.5 * few
