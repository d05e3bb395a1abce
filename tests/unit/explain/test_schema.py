"""Arguments are held against their schema, at every depth."""

from __future__ import annotations

from typing import Any

import pytest
from cases import cases

from unrender import Tool
from unrender.explain.hints import complaints
from unrender.limits import MAX_SHOWN_ITEMS

SCHEMA = {
    "type": "object",
    "$defs": {
        "point": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x"]}
    },
    "properties": {
        "at": {"$ref": "#/$defs/point"},
        "days": {"type": "integer", "minimum": 1, "maximum": 7},
        "name": {"type": "string", "minLength": 2},
        "code": {"type": "string", "pattern": "^[A-Z]+$"},
        "path": {"type": "array", "items": {"$ref": "#/$defs/point"}, "maxItems": 2},
        "unit": {"enum": ["C", "F"]},
        "when": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "both": {"allOf": [{"type": ["string", "integer"]}, {"type": "string"}]},
        "free": {"type": "object", "additionalProperties": {"type": "boolean"}},
        "ratio": {"type": "number", "exclusiveMaximum": 1, "multipleOf": 0.1},
        "word": {"type": "string", "not": {"const": "no"}},
    },
}


def said(arguments: Any, schema: Any = SCHEMA) -> list[str]:
    return list(complaints(arguments, Tool(name="f", parameters=schema)))


@cases
def test_what_does_not_fit_is_named_with_its_path(arguments: dict[str, Any], expected: str) -> None:
    """The sentence says where, what was wanted, and what was found."""
    (sentence,) = said(arguments)

    assert sentence.startswith(expected)


def test_what_the_schema_admits_is_fine() -> None:
    """Nothing is said of values that obey, whole numbers written as fractions included."""
    fine = {"at": {"x": 1}, "days": 2.0, "name": "ab", "path": [], "unit": "C", "when": None, "free": {"a": True}}

    assert said(fine) == []


@pytest.mark.parametrize(
    "schema", [True, False, {"properties": 5}, {"type": "object"}, {"properties": {}}, {"$ref": "x"}]
)
def test_a_schema_that_says_nothing_is_no_reason_to_complain(schema: Any) -> None:
    """What is not understood is not complained about."""
    assert said({"a": 1}, schema) == []


def test_there_are_never_too_many_sentences() -> None:
    """A call that is all wrong is told in a bounded number of sentences."""
    wrong = {f"a{i}": 1 for i in range(1000)}

    assert len(said(wrong)) == MAX_SHOWN_ITEMS


def test_deep_arguments_end() -> None:
    """Neither arguments nor schemas that are nested deep are followed for ever."""
    deep: Any = {"x": 1}
    for _ in range(200):
        deep = {"next": deep}
    schema = {"type": "object", "properties": {"next": {"$ref": "#"}, "x": {"type": "string"}}}

    assert said(deep, schema) == []
