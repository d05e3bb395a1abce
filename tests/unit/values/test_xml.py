"""Nested tags become JSON."""

from __future__ import annotations

import json

import pytest
from splitting import splits

from unrender.messages.wire import Tool
from unrender.values.coercion import ArgumentTypes
from unrender.values.scanner import Status
from unrender.values.xml import TagStyle, XmlScanner, read_tree

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
        ("text", "max", "max"),
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


def test_elements_may_be_empty() -> None:
    """Also where one begins the text; a tag of the same name inside is counted."""
    for text, value in (
        ("<a></a>", {"a": ""}),
        ("<a></a><b>1</b>", {"a": "", "b": 1}),
        ("<a><a></a></a>", {"a": {"a": ""}}),
        ("<a><a>1</a><a>2</a></a><b>3</b>", {"a": {"a": 2}, "b": 3}),
    ):
        assert json.loads(read_tree(text, STYLE, TYPES, None)) == value


@pytest.mark.parametrize(("depth", "read"), [(64, 64), (65, 64), (100, 64)])
def test_nesting_is_bounded(depth: int, read: int) -> None:
    """Deeper tags are text."""
    value = json.loads(read_tree("<a>" * depth + "1" + "</a>" * depth, STYLE, TYPES, None))
    levels = 0
    while isinstance(value, dict):
        value, levels = value["a"], levels + 1

    assert (levels, value) == (read, 1 if depth == read else "<a>" * (depth - read) + "1" + "</a>" * (depth - read))


def test_a_string_streams() -> None:
    """Where the schema says string, text is released before the closing tag."""
    scanner = XmlScanner(STYLE, "text", TYPES)

    assert scanner.scan("abc", 0, final=False) == (3, '"abc', Status.MORE)


@pytest.mark.parametrize(
    ("text", "final", "expected"),
    [
        ("a</te", False, (1, '"a', Status.MORE)),
        ("a</te", True, (5, '"a</te', Status.MORE)),
        ("a</text>", False, (1, '"a"', Status.DONE)),
        ("a<text>b</text>", False, (8, '"a<text>b"', Status.DONE)),
        ("", False, (0, '"', Status.MORE)),
    ],
)
def test_one_scan_of_text(text: str, final: bool, expected: tuple[int, str, Status]) -> None:
    """From any place of the buffer; a tag of the same name inside a string is text."""
    assert XmlScanner(STYLE, "text", TYPES).scan(text, 0, final=final) == expected
    at, piece, status = XmlScanner(STYLE, "text", TYPES).scan("~~" + text, 2, final=final)
    assert (at - 2, piece, status) == expected


def test_tags_of_the_same_name_are_counted() -> None:
    """Over several chunks; the outermost closes the value."""
    scanner = XmlScanner(STYLE, "other", TYPES)
    assert scanner.scan("<other>1</other><ot", 0, final=False) == (16, "", Status.MORE)
    assert scanner.depth == 0
    assert scanner.scan("<other>", 0, final=False) == (7, "", Status.MORE)
    copy = scanner.copy()
    assert scanner.depth == 1
    assert scanner.scan("</other></other>", 0, final=False) == (
        8,
        '{"other": 1, "other": ""}',
        Status.DONE,
    )
    assert (copy.depth, copy.held, copy.begun) == (1, ["<other>", "1</other>", "", "<other>", ""], False)


SPACED = TagStyle("<", "</", ">", "", space="\n ")


@pytest.mark.parametrize(
    ("text", "value"), [("a\n </text>", '"a"'), ("a </text>", '"a"'), ("a</text>", '"a"'), ("a\n\n </text>", '"a\\n"')]
)
def test_layout_before_the_closing_tag(text: str, value: str) -> None:
    """As much of it as is there is not part of the value."""
    assert XmlScanner(SPACED, "text", TYPES).scan(text, 0, final=False)[1] == value


@pytest.mark.parametrize(
    ("key", "inside", "json"),
    [
        ("list", "  ", "[]"),
        ("object", "", "{}"),
        ("both", "", "[]"),
        ("number", "", '""'),
        ("nothing", "", "null"),
        ("other", "", '""'),
        ("other", " ", '" "'),
        ("list", "<item>1</item> <item>x</item>\n", '[1, "x"]'),
        ("list", " <item>1</item>", "[1]"),
        ("object", "<a>1</a><a>2</a>", '{"a": 1, "a": 2}'),
        ("other", "<a><b>1</b></a>", '{"a": {"b": 1}}'),
        ("other", "<a>1</b>", '"<a>1</b>"'),
        ("other", "<a/>", '"<a/>"'),
        ("other", "<a></a>", '{"a": ""}'),
        ("other", "<a><a>1</a></a>", '{"a": {"a": 1}}'),
        ("other", "<a><a>1</a>", '"<a><a>1</a>"'),
        ("other", "<a>1</a>x<b>2</b>", '"<a>1</a>x<b>2</b>"'),
        ("other", '<é">1</é">', '{"é\\"": 1}'),
        ("other", "<item>1</item><b>2</b>", '{"item": 1, "b": 2}'),
    ],
)
def test_a_tree_of_tags(key: str, inside: str, json: str) -> None:
    """Typed at every level; what is not made of tags alone is one value."""
    schema = SCHEMA | {
        "properties": {
            **SCHEMA["properties"],  # type: ignore[dict-item]
            "both": {"type": ["array", "object"]},
            "number": {"type": "integer"},
            "nothing": {"type": ["integer", "null"]},
        }
    }
    types = ArgumentTypes(Tool(name="f", parameters=schema))

    assert read_tree(inside, STYLE, types, types.schema(key)) == json


def test_trees_are_read_to_a_bounded_depth() -> None:
    """Deeper tags are text."""
    deep = "<a>" * 70 + "1" + "</a>" * 70
    found = read_tree(deep, STYLE, TYPES, None)

    assert found.count('"a": ') == 64
    assert "<a><a><a><a><a><a>1" in found


def test_without_items_nothing_is_a_tree() -> None:
    """Where lists and objects are not written as tags."""
    assert read_tree("<a>1</a>", SPACED, TYPES, None) == '"<a>1</a>"'
