"""Dynamic references resolve to the outermost anchor on the path, and additional documents are found."""

from __future__ import annotations

import pytest
from cases import cases
from recipes import ANALYSIS, rows_of
from schema_rows import read

from unrender import GrammarError
from unrender.grammar import bundled, conforms, unsupported_keywords


def admitted(schema, value):
    assert unsupported_keywords(schema) == ()
    return conforms(value, schema)


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
