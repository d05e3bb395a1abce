"""Dynamic references resolve to the outermost anchor on the path, and additional documents are found."""

from __future__ import annotations

import pytest
from cases import cases
from recipes import ANALYSIS, rows_of
from schema_rows import read

from unrender import GrammarError
from unrender.grammar import bundled, conforms, unsupported_keywords

LIST = {
    "$id": "list",
    "items": {"$dynamicRef": "#item"},
    "$defs": {"any": {"$dynamicAnchor": "item"}},
}


def admitted(schema, value):
    assert unsupported_keywords(schema) == ()
    return conforms(value, schema)


def test_one_part_is_read_differently_on_different_ways():
    """The same list contains strings or numbers, depending on the referring schema."""

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
    """A tree that forbids other properties also forbids them in its children, which only the plain tree describes."""
    tree = {
        "$id": "tree",
        "$dynamicAnchor": "node",
        "type": "object",
        "properties": {"data": True, "children": {"type": "array", "items": {"$dynamicRef": "#node"}}},
        "additionalProperties": True,
    }
    strict = {"$id": "strict", "$dynamicAnchor": "node", "$ref": "tree", "maxProperties": 2, "$defs": {"tree": tree}}

    assert conforms({"data": 1, "children": [{"data": 2}]}, strict)
    assert not conforms({"children": [{"data": [], "children": 7}]}, strict)


def test_a_dynamic_reference_without_such_an_anchor_is_a_plain_one():
    """An outer `$anchor` of the same name has no effect."""
    schema = {
        "$id": "root",
        "$ref": "list",
        "$defs": {"list": LIST, "item": {"$anchor": "item", "type": "string"}},
    }

    assert admitted(schema, [1, "a"])


def test_many_ways_to_the_same_part_stay_within_the_budget():
    """Parts are read once for each set of relevant anchors, not once for each path."""
    depth = 40
    rooms = {
        f"r{at}": {
            "$id": f"r{at}",
            "anyOf": [{"$ref": f"r{at + 1}"}, {"properties": {"next": {"$ref": f"r{at + 1}"}}}],
        }
        for at in range(depth)
    }
    last = {f"r{depth}": {"$id": f"r{depth}", "$dynamicAnchor": "end", "type": "null"}}

    assert conforms(None, {"$ref": "r0", "$defs": rooms | last})


@cases
def test_documents_that_are_handed_in_are_followed(schema, documents):
    """Documents are found directly, through others, by pointers, by another name, and relative to the schema."""
    schema = bundled(schema, documents)

    assert admitted(schema, 7)
    assert not admitted(schema, "a")


def test_only_documents_that_are_referred_to_are_taken():
    """No document is added twice or needlessly, and the arguments aren't changed."""
    schema, documents = {"items": {"$ref": "a"}}, {"a": {"$ref": "a#/$defs/b", "$defs": {"b": {}}}, "c": {}}

    found = bundled(schema, documents)

    assert list(found["$defs"]) == ["a"]
    assert bundled(found, documents) is found
    assert bundled(True, documents) is True
    assert schema == {"items": {"$ref": "a"}}


def test_a_document_that_is_false_lets_nothing_pass():
    """A boolean is a valid JSON Schema. For any other value, the error names the document."""
    assert not admitted(bundled({"items": {"$ref": "no"}}, {"no": False}), [1])
    with pytest.raises(GrammarError, match=r"documents\['a'\]: expected a JSON Schema, found 7"):
        bundled({"$ref": "a"}, {"a": 7})  # type: ignore[dict-item]


@pytest.mark.parametrize("row", rows_of(ANALYSIS.with_name("documents.jsonl")))
def test_what_is_referred_to_is_put_into_definitions(row):
    """Each referenced document is added once under its URI. Data isn't searched for references."""
    found = bundled(row["schema"], row["documents"])

    assert found.get("$defs") == (row["defs"] or row["schema"].get("$defs"))
    assert (found is row["schema"]) == (row["defs"] is None)


DYNAMIC = {
    "$id": "http://h/root",
    "$dynamicAnchor": "t",
    "type": "array",
    "items": {"$ref": "list"},
    "$defs": {
        "list": {
            "$id": "list",
            "items": {"$dynamicRef": "#t"},
            "$defs": {"own": {"$dynamicAnchor": "t", "type": "null"}},
        },
    },
}


def test_the_outermost_anchor_on_the_way_counts():
    """From the root, the root's anchor applies; from the list alone, the list's own."""
    alone = DYNAMIC["$defs"]["list"]

    assert [conforms(value, DYNAMIC) for value in ([[[[]]]], [[None]])] == [True, False]
    assert [conforms(value, alone) for value in ([None], [[]])] == [True, False]


@pytest.mark.parametrize("word", ["$ref", "$dynamicRef"])
@cases
def test_a_reference_may_take_every_form(reference, line, word):
    """Anchors, pointers and URIs work. Without another anchor of the name, a dynamic reference is like a plain one."""
    listed = {
        "$id": "list",
        "items": {"type": "string"},
        "$defs": {"own": {"$dynamicAnchor": "t", "type": "null"}, "plain": {"$anchor": "p", "type": "boolean"}},
    }
    own = {"plain": {"$anchor": "plain", "type": "integer"}, "list": listed, "t": {"$anchor": "t", "type": "null"}}

    assert read({"schema": {"$id": "http://h/root", word: reference, "$defs": own}}) == {"shape": line}
