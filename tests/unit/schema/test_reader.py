"""Limits of reading a schema, and schemas that no JSON row can hold. For meanings, see `tests/corpus/schemas.jsonl`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cases import cases
from lines import shape_line

from unrender import GrammarError
from unrender.schema import Unsupported
from unrender.schema import reader as json_schema
from unrender.schema.admission import canonical
from unrender.schema.reader import read_schema


def reported(schema):
    return [(item.path, item.keyword) for item in read_schema(schema).unsupported]


def test_a_schema_that_explodes_is_cut_off(monkeypatch):
    """If nested alternatives grow too large, the rest may be anything, and this is reported."""
    monkeypatch.setattr("unrender.schema.reader.MAX_SCHEMA_PARTS", 50)
    branches = [{"anyOf": [{"minLength": n}, {"maxLength": n}]} for n in range(12)]

    assert "schema" in {keyword for _, keyword in reported({"type": "string", "allOf": branches})}


def test_a_reading_is_kept_and_serves_longer_limits_when_it_lost_nothing() -> None:
    """Equal schemas are read once, whatever the maximum length."""
    once, again = (json.loads('{"type": "object", "properties": {"kept": {"type": "string"}}}') for _ in range(2))
    found = read_schema(once, longest=1000)
    assert read_schema(again, longest=1000) is found
    assert read_schema(again) is found


def test_a_reading_with_losses_serves_its_own_limit_alone() -> None:
    """A length that one dialect can't count may be supported by another."""
    schema = {"type": "string", "maxLength": 2000}
    assert read_schema(schema, longest=1000).unsupported
    assert not read_schema(schema).unsupported


def test_equal_numbers_of_other_types_are_other_schemas() -> None:
    """Python's 1 and True are equal, but not in JSON Schema."""
    assert read_schema({"const": 1}) is not read_schema({"const": True})


@pytest.mark.parametrize(("steps", "losses"), [(4, []), (3, ["the schema expands into more than 3 parts"])])
def test_the_parts_of_a_schema_are_counted(monkeypatch, steps, losses):
    """Each place counts, even scalars. Beyond the limit, the rest may be anything."""
    monkeypatch.setattr("unrender.schema.reader.MAX_SCHEMA_PARTS", steps)
    properties = {"a": {"type": "string"}, "b": {"minLength": 1}, "c": {"minLength": 2}}
    schema = {"type": "object", "properties": properties, "title": f"{steps} steps"}

    assert [item.reason for item in read_schema(schema).unsupported] == losses


def test_listed_values_are_counted(monkeypatch):
    """Ten listed values cost as much as one place."""
    monkeypatch.setattr("unrender.schema.reader.MAX_SCHEMA_PARTS", 14)
    few, many = ({"properties": {"a": {"enum": list(range(n))}, "b": {"minLength": 1}}} for n in (109, 111))

    assert read_schema(few).unsupported == ()
    assert [item.path for item in read_schema(many).unsupported] == ["#/properties/b"]


def test_a_part_of_a_schema_is_read_alone():
    """`at` selects the part, whose references refer to the whole schema."""
    schema = {"$defs": {"a": {"type": "null"}, "b": {"items": {"$ref": "#/$defs/a"}}}, "type": "string"}

    assert shape_line(read_schema(schema, at="#/$defs/b").shape) == "[null*]"
    with pytest.raises(GrammarError, match="'c' is missing"):
        read_schema(schema, at="#/$defs/c")


def test_a_loss_is_told_with_its_tool():
    """The message starts with the tool, if there is one."""
    loss = Unsupported(path="#/a", keyword="not", reason="why", tool="f")

    assert str(loss) == "tool 'f': #/a: not is not enforced: why"
    assert str(Unsupported(path="#", keyword="not", reason="why")) == "#: not is not enforced: why"


@pytest.mark.parametrize("times", [1, 14, 46])
@cases
def test_plain_schemas_are_read_as_all_others(leaf, times):
    """The fast path for common keywords gives the same result as the full reader at any depth."""

    def inside(depth: int, **more: Any) -> dict[str, Any]:
        """Return the leaf inside lists and objects. `more` adds keywords without effect, which need the full reader."""
        inner = inside(depth - 1, **more) if depth else leaf
        here = {f"min{kind}": 0 for kind in more}
        if depth % 2:
            return {"type": "array", "items": inner, **here}
        return {"type": "object", "properties": {"x": inner, "y": leaf}, "required": ["y"] * (depth % 4), **here}

    short, long = (
        _read_or_error({**inside(times, **more), "$defs": {"a": {"type": "null"}}})
        for more in ({}, {"Items": 0, "Properties": 0})
    )

    assert short == long


def _read_or_error(schema: dict[str, Any]) -> object:
    try:
        found = read_schema(schema)
    except GrammarError as error:
        return str(error)
    return found.shape, found.unsupported, found.weight


@cases
def test_objects_are_read_alike_whatever_is_beside_them(schema):
    """A keyword without effect, such as `minProperties: 0`, doesn't change the result."""
    assert _read_or_error(schema) == _read_or_error({**schema, "minProperties": 0})


def test_reading_costs_as_much_as_there_is_to_read(monkeypatch):
    """Twice as many values are canonicalised twice as often, however they are listed."""
    counted: list[Any] = []
    costs = []

    def counting(value: Any) -> str:
        counted.append(value)
        return canonical(value)

    monkeypatch.setattr(json_schema, "canonical", counting)
    for count in (500, 1000):
        counted.clear()
        values = [f"v{i}" for i in range(count)]
        read_schema({"allOf": [{"enum": values}, {"enum": values}], "type": "string"})
        costs.append(len(counted))

    assert costs[1] <= 2 * costs[0] <= 2 * 1000
