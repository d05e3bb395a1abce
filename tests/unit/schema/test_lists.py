"""Lists: what they contain is counted, and lists without doubles are written out where they are few."""

from __future__ import annotations

import itertools
import json

import jsonschema
import pytest
from lines import shape_line

from unrender.schema import containers as list_keywords
from unrender.schema import shapes
from unrender.schema.admission import admits
from unrender.schema.reader import read_schema
from unrender.schema.shapes import Array

VALUES = (0, 1, 2, "a", None)
LISTS = [list(found) for length in range(5) for found in itertools.product(VALUES, repeat=length)]


@pytest.mark.parametrize(
    "schema",
    [
        {"contains": {"const": 1}},
        {"contains": {"type": "integer", "minimum": 1}, "minContains": 2},
        {"contains": {"type": "string"}, "minContains": 0, "maxContains": 1},
        {"contains": {"enum": [1, "a"]}, "minContains": 1, "maxContains": 2},
        {"items": {"type": ["integer", "null"]}, "contains": {"type": "null"}, "maxContains": 0, "minContains": 0},
        {"items": {"type": "integer"}, "contains": {"type": "integer"}, "maxContains": 3},
        {"contains": True, "minContains": 2, "maxContains": 3},
        {"prefixItems": [True], "contains": {"type": "string"}, "unevaluatedItems": False, "minContains": 0},
        {"items": {"enum": [0, 1, None]}, "uniqueItems": True},
        {"items": {"type": "integer", "minimum": 0, "maximum": 2}, "uniqueItems": True, "minItems": 1, "maxItems": 2},
        {"prefixItems": [{"enum": [0, 1]}, {"enum": ["a", 1]}], "items": False, "uniqueItems": True},
        {"not": {"prefixItems": [{"const": 1}, {"const": "a"}]}, "type": "array"},
        {"items": {"not": {"enum": [1, "a"]}}},
    ],
)
def test_a_list_is_admitted_exactly_when_its_schema_says_so(schema):
    """Nothing is reported, and the shape agrees with JSON Schema on every short list."""
    reading = read_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)

    assert reading.unsupported == ()
    wrong = [found for found in LISTS if admits(reading.shape, found, {}) != validator.is_valid(found)]
    assert wrong == []


def test_what_is_contained_has_the_type_that_its_keywords_imply():
    """A `minimum` wants numbers; values of other types are beside them and do not count."""
    reading = read_schema({"contains": {"minimum": 1}, "maxContains": 1})

    assert all(admits(reading.shape, found, {}) for found in ([1], ["a", 2, None], [0, 1, 0]))
    assert not any(admits(reading.shape, found, {}) for found in ([], ["a"], [0], [1, 2]))


def test_too_many_lists_without_doubles_are_not_written_out():
    """Beyond a few hundred items the keyword is reported, so that the grammar stays linear."""
    reading = read_schema({"items": {"enum": list("abcdef")}, "uniqueItems": True})

    assert [item.keyword for item in reading.unsupported] == ["uniqueItems"]
    assert isinstance(reading.shape, Array)


def test_the_first_items_are_told_apart_even_where_the_others_are_not():
    """Booleans at the head of a list have few arrangements; what follows them is reported."""
    flag = {"type": "boolean"}
    reading = read_schema({"prefixItems": [flag, flag], "uniqueItems": True})

    assert [item.keyword for item in reading.unsupported] == ["uniqueItems"]
    assert not admits(reading.shape, [True, True], {})
    assert all(admits(reading.shape, found, {}) for found in ([], [True], [False, True], [True, False, 1, 1]))


def test_equal_numbers_are_one_value():
    """1 and 1.0 are the same item, true and 1 are not."""
    reading = read_schema({"items": {"enum": [1, 1.0, True]}, "uniqueItems": True})

    assert sorted(option.json for option in reading.shape.options) == ["[1, true]", "[1]", "[]", "[true, 1]", "[true]"]


def test_a_list_that_may_have_one_item_is_unique():
    """Nothing is reported of a list that cannot hold two items."""
    assert read_schema({"uniqueItems": True, "maxItems": 1}).unsupported == ()


def test_a_list_that_must_contain_the_impossible_is_impossible():
    """A property whose list cannot be written is left out."""
    reading = read_schema({"properties": {"a": {"items": {"type": "string"}, "contains": {"type": "null"}}}})

    assert json.loads("{}") == {}
    assert reading.shape == shapes.Object(others=shapes.Anything())


def test_eight_values_are_few():
    """Pairs of eight values are written out, in order."""
    shape = read_schema({"items": {"enum": list(range(8))}, "uniqueItems": True, "minItems": 2, "maxItems": 2}).shape

    assert [option.value for option in shape.options] == [[a, b] for a in range(8) for b in range(8) if a != b]


def test_as_many_lists_as_are_written_out(monkeypatch):
    """The limit counts the items of all lists together: here 2 of one item each, and 2 of two."""
    schema = {"items": {"enum": ["a", "b"]}, "uniqueItems": True}
    monkeypatch.setattr(list_keywords, "MAX_OPTIONS", 6)
    assert len(read_schema({**schema, "title": "enough"}).shape.options) == 5
    monkeypatch.setattr(list_keywords, "MAX_OPTIONS", 5)
    assert shape_line(read_schema({**schema, "title": "too many"}).shape) == '[("a" | "b")*]'


def test_what_another_document_contains_decides_which_items_are_left():
    """Its schema cannot be put beside another's, so that other items may be anything."""
    other = {"$id": "other", "contains": {"type": "null"}, "minContains": 0}
    schema = {
        "contains": {"type": "string"},
        "minContains": 0,
        "unevaluatedItems": False,
        "allOf": [{"$ref": "other"}],
        "$defs": {"other": other},
    }
    reading = read_schema(schema)

    assert shape_line(reading.shape) == "[any*]"
    assert [(item.keyword, item.reason) for item in reading.unsupported] == [
        ("unevaluatedItems", "contains of another document decides which items are evaluated")
    ]
