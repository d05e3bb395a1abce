"""Plain schemas are read at once, and mean what they mean keyword by keyword."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from lines import shape_line

from unrender.errors import GrammarError
from unrender.schema import reader as json_schema
from unrender.schema.plain import plain_kind, plain_scalar
from unrender.schema.reader import Reading, read_schema

RECURSIVE = {
    "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "tag": {"enum": ["a"]}}}},
    "type": "array",
    "items": {"$ref": "#/$defs/node"},
}
KINDS = [
    ({"type": "object", "properties": {"a": {}}, "required": ["a"], "title": "T"}, "object"),
    ({"type": "object", "properties": {}, "additionalProperties": False}, "object"),
    ({"type": "array", "items": {"type": "string"}}, "array"),
    ({"type": "string", "enum": ["a", "b"]}, "enum"),
    ({"enum": ["a"], "description": "d"}, "enum"),
    ({"anyOf": [{"type": "null"}], "default": None}, "anyOf"),
    ({"type": "object"}, ""),
    ({"type": "object", "properties": {"a": {}}, "additionalProperties": True}, ""),
    ({"type": "object", "properties": {"a": {}}, "additionalProperties": {}}, ""),
    ({"type": "object", "properties": {"a": {}}, "required": ["b"]}, ""),
    ({"type": "object", "properties": {"a": {}}, "required": True}, ""),
    ({"type": "object", "properties": {"a": {}}, "required": [1]}, ""),
    ({"type": "object", "properties": {1: {}}}, ""),
    ({"type": "object", "properties": {"a": {}}, "minProperties": 1}, ""),
    ({"type": "object", "properties": {"a": {}}, "nullable": True}, ""),
    ({"type": ["object"], "properties": {"a": {}}}, ""),
    ({"type": "array", "items": [{}]}, ""),
    ({"type": "array", "items": True}, ""),
    ({"type": "array", "items": {}, "uniqueItems": True}, ""),
    ({"type": "integer", "enum": ["a"]}, ""),
    ({"enum": ["a", 1]}, ""),
    ({"enum": []}, ""),
    ({"enum": ["a"], "maxLength": 0}, ""),
    ({"type": "object", "anyOf": [{}]}, ""),
    ({"anyOf": {}}, ""),
    (True, ""),
    (None, ""),
]


@pytest.mark.parametrize(("schema", "kind"), KINDS)
def test_only_what_says_nothing_else_is_plain(schema: Any, kind: str) -> None:
    """One keyword more, or a value of another kind, and a schema is read keyword by keyword."""
    assert plain_kind(schema) == kind
    assert plain_scalar(schema) is None


@pytest.mark.parametrize(
    "schema", [{"type": "string", "minLength": 1}, {"type": "date"}, {"type": ["string"]}, {"type": {}}, {}]
)
def test_a_scalar_that_says_more_is_not_plain(schema: Any) -> None:
    """A type with a bound, an unknown one and a list of types are not plain."""
    assert plain_scalar(schema) is None


def made(random_: random.Random, depth: int) -> Any:
    """Return a schema of mostly plain parts."""
    kinds = ["string", "integer", "number", "boolean", "null", "enum", "bounded", "false", "true", "ref", "nothing"]
    match random_.choice(kinds if depth == 0 else [*kinds, *["object", "array", "anyOf"] * 6]):
        case "object":
            names = random_.sample("abcd", random_.randint(0, 3))
            schema: dict[str, Any] = {"type": "object", "properties": {n: made(random_, depth - 1) for n in names}}
            if random_.random() < 0.6:
                schema["required"] = random_.sample([*names, "e"], random_.randint(0, len(names)))
            if random_.random() < 0.4:
                schema["additionalProperties"] = random_.choice([False, False, True, {"type": "null"}])
            return schema
        case "array":
            return {"type": "array", "items": made(random_, depth - 1)}
        case "anyOf":
            return {"anyOf": [made(random_, depth - 1) for _ in range(random_.randint(1, 3))], "title": "t"}
        case "enum":
            return {"type": "string", "enum": random_.choices(["x", "yé", "z", ""], k=random_.randint(1, 4))}
        case "bounded":
            return {"type": "string", "maxLength": random_.choice([3, 2000])}
        case "false":
            return False
        case "true":
            return True
        case "ref":
            return {"$ref": "#"}
        case "nothing":
            return {}
        case kind:
            return {"type": kind}


def read(schema: Any, longest: int) -> Reading | str:
    json_schema._readings.clear()
    try:
        return read_schema(schema, longest=longest)
    except GrammarError as error:
        return str(error)


@pytest.mark.parametrize("seed", range(8))
def test_plain_schemas_mean_what_they_mean_keyword_by_keyword(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random schemas of plain and other parts give the same shapes and losses both ways."""
    random_ = random.Random(seed)
    schemas = [RECURSIVE, *(made(random_, 4) for _ in range(40))]
    at_once = [read(schema, 1000) for schema in schemas]
    monkeypatch.setattr(json_schema, "plain_kind", lambda _: "")
    monkeypatch.setattr(json_schema, "plain_scalar", lambda _: None)
    by_keyword = [read(schema, 1000) for schema in schemas]
    assert [_named(found) for found in at_once] == [_named(found) for found in by_keyword]


def _named(found: Reading | str) -> object:
    """Return a reading without the numbers in the names of its recursive shapes: they count steps."""
    if isinstance(found, str):
        return found
    text = f"{found.shape} {list(found.definitions.values())} {found.unsupported}"
    for number, name in enumerate(found.definitions):
        text = text.replace(f"'{name}'", f"'recursive {number}'")
    return text


def test_a_reading_is_kept_and_serves_longer_limits_when_it_lost_nothing() -> None:
    """Equal schemas are read once, whatever lengths are counted."""
    once, again = (json.loads('{"type": "object", "properties": {"kept": {"type": "string"}}}') for _ in range(2))
    found = read_schema(once, longest=1000)
    assert read_schema(again, longest=1000) is found
    assert read_schema(again) is found


def test_a_reading_with_losses_serves_its_own_limit_alone() -> None:
    """A length that one dialect cannot count is counted for another."""
    schema = {"type": "string", "maxLength": 2000}
    assert read_schema(schema, longest=1000).unsupported
    assert not read_schema(schema).unsupported


def test_equal_numbers_of_other_types_are_other_schemas() -> None:
    """Python calls 1 and True equal; a schema does not."""
    assert read_schema({"const": 1}) is not read_schema({"const": True})


@pytest.mark.parametrize("kind", ["string", "integer", "number", "boolean", "null"])
def test_a_scalar_type_alone_is_plain(kind: str) -> None:
    """With whatever annotations."""
    shape = plain_scalar({"type": kind, "title": "t", "description": "d"})

    assert shape is not None
    assert shape_line(shape) == kind
