"""Arguments are held against their schema, at every depth."""

from __future__ import annotations

from typing import Any

import pytest

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


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"at": {"y": 1}}, "the required property 'x' of argument 'at' is missing"),
        ({"at": {"x": "1"}}, "argument 'at.x' should be number, found '1'"),
        ({"at": {"x": 1, "z": 1}}, "argument 'at' has no property 'z'; known are ['x', 'y']"),
        ({"at": 5}, "argument 'at' should be object, found 5"),
        ({"days": 9}, "argument 'days' should be integer from 1 up to 7, found 9"),
        ({"days": 1.5}, "argument 'days' should be integer from 1 up to 7, found 1.5"),
        ({"name": "a"}, "argument 'name' should be string of at least 2 characters, found 'a'"),
        ({"code": "a"}, "argument 'code' should be string of another form (pattern or format), found 'a'"),
        ({"path": [{"x": 1}, {"x": None}]}, "argument 'path[1].x' should be number, found None"),
        ({"path": [{"x": 1}] * 3}, "argument 'path' should have at most 2 items, found 3"),
        ({"unit": "K"}, "argument 'unit' should be one of ['C', 'F'], found 'K'"),
        ({"when": "now"}, "argument 'when' should be integer or null, found 'now'"),
        ({"both": 7}, "argument 'both' should be string, found 7"),
        ({"free": {"a": 1}}, "argument 'free.a' should be boolean, found 1"),
        ({"ratio": 2}, "argument 'ratio' should be number up to 0.9 with digits after the point up to 1, found 2"),
        ({"word": "no"}, "argument 'word' should be string but none of ['no'], found 'no'"),
        ({"town": 1}, "no argument is called 'town'; known are"),
    ],
)
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
