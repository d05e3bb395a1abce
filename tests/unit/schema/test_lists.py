"""Lists: contained items are counted, and short lists without duplicates are enumerated."""

from __future__ import annotations

import itertools

import jsonschema
from cases import cases
from schema_rows import read

from unrender.grammar import conforms, unsupported_keywords

VALUES = (0, 1, 2, "a", None)
LISTS = [list(found) for length in range(5) for found in itertools.product(VALUES, repeat=length)]
FLAG = {"type": "boolean"}


@cases
def test_a_list_is_admitted_exactly_when_its_schema_says_so(schema):
    """No keyword is unsupported, and the shape agrees with JSON Schema on every short list."""
    valid = jsonschema.Draft202012Validator(schema).is_valid

    assert unsupported_keywords(schema) == ()
    assert [found for found in LISTS if conforms(found, schema) != valid(found)] == []


@cases
def test_what_a_list_admits(schema, admitted, refused):
    """Counted items have the type that their keywords imply. The first items may have their own shapes."""
    assert [found for found in (*admitted, *refused) if conforms(found, schema)] == admitted


@cases
def test_a_list_is_read_as_a_line(schema, line, lost):
    """Beyond a few hundred items, `uniqueItems` is unsupported.

    If another document applies, other items may be anything.
    """
    found = read({"schema": schema})

    assert (found.get("shape"), found.get("lost", [])) == (line, lost)


def test_as_many_lists_as_are_written_out(monkeypatch):
    """The limit applies to the total number of items in all lists: here, two lists of one item and two of two."""
    schema = {"items": {"enum": ["a", "b"]}, "uniqueItems": True}
    monkeypatch.setattr("unrender.schema.containers.MAX_OPTIONS", 6)
    written = read({"schema": {**schema, "title": "enough"}})["shape"]
    assert written == '[] | ["a"] | ["b"] | ["a", "b"] | ["b", "a"]'
    monkeypatch.setattr("unrender.schema.containers.MAX_OPTIONS", 5)
    assert read({"schema": {**schema, "title": "too many"}})["shape"] == '[("a" | "b")*]'
