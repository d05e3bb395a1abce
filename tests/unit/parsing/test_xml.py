"""Nested tags become JSON."""

from __future__ import annotations

import json

import pytest
from splitting import splits

from unrender.messages import Tool
from unrender.parsing.coercion import ArgumentTypes
from unrender.parsing.values import Status
from unrender.parsing.xml import TagStyle, XmlScanner

STYLE = TagStyle("<", "</", ">", "item")
SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "list": {"type": "array", "items": {"type": "integer"}},
        "object": {"type": "object", "properties": {"zip": {"type": "string"}, "item": {"type": "integer"}}},
    },
}
TYPES = ArgumentTypes(Tool(name="f", parameters=SCHEMA))


def scanned(key: str, inside: str) -> object:
    """Scan the inside of an argument's tag at every chunking; returns the value, which must not differ."""
    results = {_scan(key, chunks) for chunks in splits(f"{inside}</{key}>")}
    assert len(results) == 1, results
    return json.loads(results.pop())


def _scan(key: str, chunks: list[str]) -> str:
    scanner, buffer, result, status = XmlScanner(STYLE, key, TYPES), "", "", Status.MORE
    for chunk in chunks:
        buffer += chunk
        if status is Status.MORE:
            scanner = scanner.copy()
            end, piece, status = scanner.scan(buffer, 0, final=False)
            buffer, result = buffer[end:], result + piece
    assert status is Status.DONE
    return result


@pytest.mark.parametrize(
    ("key", "inside", "expected"),
    [
        ("text", "a <b> & c", "a <b> & c"),
        ("text", "", ""),
        ("list", "<item>1</item><item>2</item>", [1, 2]),
        ("list", "", []),
        ("object", "<zip>02134</zip>\n<n><item>1</item></n>", {"zip": "02134", "n": [1]}),
        ("object", "<item>1</item>", {"item": 1}),
        ("object", "<object><object>1</object></object>", {"object": {"object": 1}}),
        ("object", "", {}),
        ("other", "7", 7),
        ("other", "<open>no end", "<open>no end"),
        ("other", "<a>1</a> and text", "<a>1</a> and text"),
    ],
)
def test_tags_become_lists_and_objects(key: str, inside: str, expected: object) -> None:
    """Items are a list, other tags an object, anything else text, typed by the schema at every level."""
    assert scanned(key, inside) == expected


def test_a_string_streams() -> None:
    """Where the schema says string, text is released before the closing tag."""
    scanner = XmlScanner(STYLE, "text", TYPES)

    assert scanner.scan("abc", 0, final=False) == (3, '"abc', Status.MORE)
