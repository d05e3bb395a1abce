"""References: dynamic ones lead to the outermost anchor on the way, and documents that are handed in are found."""

from __future__ import annotations

import pytest

from unrender.errors import GrammarError
from unrender.grammar import bundled
from unrender.grammar.admission import admits
from unrender.grammar.json_schema import read_schema

LIST = {
    "$id": "list",
    "items": {"$dynamicRef": "#item"},
    "$defs": {"any": {"$dynamicAnchor": "item"}},
}


def admitted(schema, value):
    reading = read_schema(schema)
    assert reading.unsupported == ()
    return admits(reading.shape, value, reading.definitions)


def test_one_part_is_read_differently_on_different_ways():
    """The same list holds strings where one schema refers to it, and numbers where another does."""

    def typed(name):
        return {"$id": name, "$ref": "list", "$defs": {"own": {"$dynamicAnchor": "item", "type": name}}}

    schema = {
        "$id": "root",
        "properties": {"texts": {"$ref": "string"}, "numbers": {"$ref": "number"}, "any": {"$ref": "list"}},
        "$defs": {"string": typed("string"), "number": typed("number"), "list": LIST},
    }

    assert admitted(schema, {"texts": ["a"], "numbers": [1], "any": ["a", 1, None]})
    assert not admitted(schema, {"texts": [1]})
    assert not admitted(schema, {"numbers": ["a"]})


def test_a_recursion_through_a_dynamic_anchor_keeps_what_was_extended():
    """A tree that forbids other properties forbids them in its children, which only the plain tree describes."""
    tree = {
        "$id": "tree",
        "$dynamicAnchor": "node",
        "type": "object",
        "properties": {"data": True, "children": {"type": "array", "items": {"$dynamicRef": "#node"}}},
        "additionalProperties": True,
    }
    strict = {"$id": "strict", "$dynamicAnchor": "node", "$ref": "tree", "maxProperties": 2, "$defs": {"tree": tree}}
    reading = read_schema(strict)

    assert admits(reading.shape, {"data": 1, "children": [{"data": 2}]}, reading.definitions)
    assert not admits(reading.shape, {"children": [{"data": [], "children": 7}]}, reading.definitions)


def test_a_dynamic_reference_without_such_an_anchor_is_a_plain_one():
    """An `$anchor` of the same name further out changes nothing."""
    schema = {
        "$id": "root",
        "$ref": "list",
        "$defs": {"list": LIST, "item": {"$anchor": "item", "type": "string"}},
    }

    assert admitted(schema, [1, "a"])


def test_many_ways_to_the_same_part_stay_within_the_budget():
    """Parts are read once for each set of anchors that decides, not once for each way."""
    depth = 40
    rooms = {
        f"r{at}": {
            "$id": f"r{at}",
            "anyOf": [{"$ref": f"r{at + 1}"}, {"properties": {"next": {"$ref": f"r{at + 1}"}}}],
        }
        for at in range(depth)
    }
    last = {f"r{depth}": {"$id": f"r{depth}", "$dynamicAnchor": "end", "type": "null"}}
    reading = read_schema({"$ref": "r0", "$defs": rooms | last})

    assert admits(reading.shape, None, reading.definitions)


@pytest.mark.parametrize(
    ("schema", "documents"),
    [
        ({"$ref": "a.json"}, {"a.json": {"type": "integer"}}),
        ({"$ref": "a.json"}, {"a.json": {"$ref": "b.json"}, "b.json": {"type": "integer"}}),
        ({"$ref": "x:a#/$defs/n"}, {"x:a": {"$defs": {"n": {"$ref": "#/$defs/m"}, "m": {"type": "integer"}}}}),
        ({"$ref": "http://h/a"}, {"http://h/a": {"$id": "http://h/own", "type": "integer"}}),
        (
            {"$id": "http://h/dir/root", "$ref": "a"},
            {"http://h/dir/a": {"$ref": "b"}, "http://h/dir/b": {"minimum": 0, "type": "integer"}},
        ),
    ],
)
def test_documents_that_are_handed_in_are_followed(schema, documents):
    """Directly, through others, by pointers, by another name, and relative to the schema."""
    schema = bundled(schema, documents)

    assert admitted(schema, 7)
    assert not admitted(schema, "a")


def test_only_documents_that_are_referred_to_are_taken():
    """Nothing is added twice or without need, and neither argument is changed."""
    schema, documents = {"items": {"$ref": "a"}}, {"a": {"$ref": "a#/$defs/b", "$defs": {"b": {}}}, "c": {}}

    found = bundled(schema, documents)

    assert list(found["$defs"]) == ["a"]
    assert bundled(found, documents) is found
    assert bundled(True, documents) is True
    assert schema == {"items": {"$ref": "a"}}


def test_a_document_that_is_false_lets_nothing_pass():
    """A boolean is a JSON Schema; what is not one is an error that names the document."""
    assert not admitted(bundled({"items": {"$ref": "no"}}, {"no": False}), [1])
    with pytest.raises(GrammarError, match=r"documents\['a'\]: expected a JSON Schema, found 7"):
        bundled({"$ref": "a"}, {"a": 7})  # type: ignore[dict-item]
