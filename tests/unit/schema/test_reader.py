"""What bounds the reading of a schema, and what has no JSON of its own. What schemas mean is in `tests/corpus/schemas.jsonl`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cases import cases
from lines import shape_line

from unrender import GrammarError
from unrender.schema import reader as json_schema
from unrender.schema.admission import canonical
from unrender.schema.reader import read_schema


def shape(schema):
    return read_schema(schema).shape


def reported(schema):
    return [(item.path, item.keyword) for item in read_schema(schema).unsupported]


def test_a_recursion_that_never_ends_is_left_out():
    """An optional property that needs itself for ever cannot be written, and a required one is an error."""
    endless = {"required": ["e"], "properties": {"e": {"$ref": "#/$defs/endless"}}}
    schema = {"properties": {"a": {"type": "null"}, "e": {"$ref": "#/$defs/endless"}}, "$defs": {"endless": endless}}

    assert [item.name for item in shape(schema).properties] == ["a"]
    with pytest.raises(GrammarError, match="no value can satisfy it"):
        shape({**schema, "required": ["e"]})


def test_a_schema_that_explodes_is_cut_off(monkeypatch):
    """Nested alternatives do not blow up: the rest may be anything, and that is reported."""
    monkeypatch.setattr("unrender.schema.reader.MAX_SCHEMA_PARTS", 50)
    branches = [{"anyOf": [{"minLength": n}, {"maxLength": n}]} for n in range(12)]

    assert "schema" in {keyword for _, keyword in reported({"type": "string", "allOf": branches})}


def test_a_deep_value_is_not_listed():
    """The report says how deep is too deep; what else the schema says holds."""
    deep: Any = "x"
    for _ in range(60):
        deep = [deep]
    reading = read_schema({"type": "array", "maxItems": 1, "enum": [deep]})

    assert shape_line(reading.shape) == "[any*]{0,1}"
    assert [(item.keyword, item.reason) for item in reading.unsupported] == [
        ("enum", "a value is nested deeper than 48 levels")
    ]


def test_an_unsupported_keyword_is_told_in_a_sentence():
    """The report names path, keyword and reason."""
    found = read_schema({"type": "array", "uniqueItems": True}).unsupported[0]

    assert str(found) == "#: uniqueItems is not enforced: earlier items are not remembered"


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


@pytest.mark.parametrize(("count", "losses"), [(64, []), (65, ["patternProperties"])])
def test_so_many_patterns_are_read(count, losses):
    """64 patterns of one object are read; a property that a later one describes may be anything."""
    patterns = {f"^k{at:02}$": {"type": "null"} for at in range(count)}
    schema = {"properties": {"k63": {}, "k64": {}}, "patternProperties": patterns, "additionalProperties": False}
    reading = read_schema(schema)

    assert [item.keyword for item in reading.unsupported] == losses
    assert len(reading.shape.extra) == 64
    assert [shape_line(item.shape) for item in reading.shape.properties] == ["null", "any"]
    reasons = [item.reason for item in reading.unsupported]
    assert reasons == (["more than 64 patterns are not read"] if losses else [])


def chain(length: int) -> dict[str, Any]:
    """Return a schema of so many subschemas that hold for the same value."""
    return {"allOf": [{"minLength": at} for at in range(length)]}


@pytest.mark.parametrize(("count", "line", "losses"), [(199, "string{198,}", []), (200, "string{198,}", ["schema"])])
def test_so_many_subschemas_hold_for_one_value(count, line, losses):
    """200 are read, with the one around them; what comes after them is reported and left out."""
    reading = read_schema(chain(count))

    assert shape_line(reading.shape) == line
    assert [item.keyword for item in reading.unsupported] == losses
    assert {item.reason for item in reading.unsupported} <= {"more than 200 subschemas hold for the same value"}


def test_what_is_too_deep_may_be_anything():
    """48 levels are read."""
    schema: Any = {"type": "string"}
    for _ in range(48):
        schema = {"minItems": 1, "items": schema}
    reading = read_schema(schema)
    shape = reading.shape
    while hasattr(shape, "items"):
        shape = shape.items

    assert [(item.path, item.keyword, item.reason) for item in reading.unsupported] == []
    assert shape_line(shape) == "string"


def test_one_level_more_may_be_anything():
    """The place that is too deep is named."""
    schema: Any = {"minLength": 1}
    for _ in range(49):
        schema = {"minItems": 1, "items": schema}
    reading = read_schema(schema)

    assert [(item.path, item.reason) for item in reading.unsupported] == [
        ("#" + "/items" * 49, "it is nested deeper than 48 levels")
    ]


@pytest.mark.parametrize(("steps", "losses"), [(4, []), (3, ["the whole schema unfolds into more than 3 parts"])])
def test_the_parts_of_a_schema_are_counted(monkeypatch, steps, losses):
    """Each place that is read counts, scalars too; beyond the budget it may be anything."""
    monkeypatch.setattr("unrender.schema.reader.MAX_SCHEMA_PARTS", steps)
    properties = {"a": {"type": "string"}, "b": {"minLength": 1}, "c": {"minLength": 2}}
    schema = {"type": "object", "properties": properties, "title": f"{steps} steps"}

    assert [item.reason for item in read_schema(schema).unsupported] == losses


def test_listed_values_are_counted(monkeypatch):
    """Ten values cost as much as reading one place."""
    monkeypatch.setattr("unrender.schema.reader.MAX_SCHEMA_PARTS", 14)
    few, many = ({"properties": {"a": {"enum": list(range(n))}, "b": {"minLength": 1}}} for n in (109, 111))

    assert read_schema(few).unsupported == ()
    assert [item.path for item in read_schema(many).unsupported] == ["#/properties/b"]


def test_a_part_of_a_schema_is_read_alone():
    """`at` names the part; its references are those of the whole."""
    schema = {"$defs": {"a": {"type": "null"}, "b": {"items": {"$ref": "#/$defs/a"}}}, "type": "string"}

    assert shape_line(read_schema(schema, at="#/$defs/b").shape) == "[null*]"
    with pytest.raises(GrammarError, match="'c' is missing"):
        read_schema(schema, at="#/$defs/c")


def test_a_loss_is_told_with_its_tool():
    """The sentence begins with the tool, if it is one's."""
    loss = json_schema.Unsupported(path="#/a", keyword="not", reason="why", tool="f")

    assert str(loss) == "tool 'f': #/a: not is not enforced: why"
    assert str(json_schema.Unsupported(path="#", keyword="not", reason="why")) == "#: not is not enforced: why"


@pytest.mark.parametrize(("first", "second"), [(16, 16), (16, 17)])
def test_branches_are_multiplied_up_to_a_bound(first, second):
    """256 combinations are read; more are reported."""
    places = [
        {"anyOf": [{word: at} for at in range(size)]} for word, size in (("minLength", first), ("maxLength", second))
    ]
    losses = [item.keyword for item in read_schema({"type": "string", "allOf": places}).unsupported]

    assert losses == (["anyOf"] if first * second > 256 else [])


LEAVES = (
    *(
        {"type": "string"},
        {"type": "integer", "minimum": 1},
        {"enum": ["a", "b", "a"]},
        {"enum": [1, "a"]},
        {"enum": []},
    ),
    *(
        {"type": "string", "enum": ["a", 1]},
        {"const": 5},
        {},
        {"title": "t"},
        True,
        False,
        {"type": "object"},
        {"type": "array"},
    ),
    *(
        {"type": "string", "format": "of nobody"},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"$ref": "#/$defs/a"},
    ),
)


@pytest.mark.parametrize("leaf", LEAVES, ids=str)
@pytest.mark.parametrize("times", [1, 14, 46])
def test_plain_schemas_are_read_as_all_others(leaf, times):
    """The short way, of what is written in the most common keywords, gives what the long way gives, at any depth."""

    def inside(depth: int, **more: Any) -> dict[str, Any]:
        """Return the leaf in lists and objects; `more` keywords, which say nothing, send the reader the long way."""
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
    """A size that asks for nothing is one keyword more, and changes nothing."""
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


def test_an_alternative_that_is_too_much_leaves_the_rest_exact():
    """Only the place where branches multiply is wider; its neighbour keeps its type."""
    branches = [{"anyOf": [{"properties": {f"p{i}{j}": {}}} for j in range(4)]} for i in range(10)]
    found = read_schema({"properties": {"a": {"allOf": branches}, "b": {"type": "integer", "maximum": 3}}})

    assert all(item.path.startswith("#/properties/a") for item in found.unsupported)
    assert found.shape.properties[1].shape.maximum == 3
