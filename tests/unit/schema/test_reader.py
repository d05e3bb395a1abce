"""JSON Schema becomes shapes: references followed, branches merged, losses reported."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from lines import shape_line

from unrender.errors import GrammarError
from unrender.schema import shapes
from unrender.schema.reader import read_schema
from unrender.schema.shapes import Anything, Constant, Property, Reference, Text, Union

STRING, INTEGER = shapes.Text(), shapes.Integer()


def shape(schema):
    return read_schema(schema).shape


def reported(schema, **limits):
    return [(item.path, item.keyword) for item in read_schema(schema, **limits).unsupported]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (True, Anything()),
        ({}, Anything()),
        ({"description": "anything", "default": 3}, Anything()),
        ({"type": "null"}, shapes.Null()),
        ({"type": "boolean"}, shapes.Boolean()),
        ({"type": "string"}, STRING),
        ({"type": ["string", "null"]}, Union((STRING, shapes.Null()))),
        ({"type": "string", "nullable": True}, Union((STRING, shapes.Null()))),
        ({"type": ["number", "integer"]}, shapes.Number()),
        ({"minLength": 2}, Text(minimum=2)),
        ({"type": "integer", "minimum": 1.5, "exclusiveMaximum": 4}, shapes.Integer(minimum=2, maximum=3)),
        ({"type": "integer", "minimum": 3, "exclusiveMinimum": True}, shapes.Integer(minimum=4)),
        ({"type": "number", "multipleOf": 0.01, "maximum": 1}, shapes.Number(maximum=Decimal(1), places=2)),
        ({"type": "number", "multipleOf": 1}, INTEGER),
        ({"type": "integer", "multipleOf": 4, "allOf": [{"multipleOf": 6}]}, shapes.Integer(multiple=12)),
        ({"const": 1.0}, Constant("1")),
        ({"enum": ["a", None, ["b"]]}, Union((Constant('"a"'), Constant("null"), Constant('["b"]')))),
        ({"enum": ["a", 1], "type": "string"}, Constant('"a"')),
        ({"enum": ["a", "b"], "not": {"const": "a"}}, Constant('"b"')),
        ({"type": "boolean", "not": {"const": True}}, Constant("false")),
        ({"type": ["string", "null"], "not": {"type": "null"}}, STRING),
        ({"type": "string", "not": {"enum": ["a"]}}, Text(excluded=frozenset("a"))),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}], "minLength": 3}, Union((Text(minimum=3), INTEGER))),
        ({"anyOf": [{"type": "string"}, {"type": "string"}]}, STRING),
        ({"anyOf": [{"type": "string"}, False]}, STRING),
        ({"type": "string", "allOf": [{"minLength": 1}, {"minLength": 3, "maxLength": 9}]}, Text(minimum=3, maximum=9)),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "string"}}}, STRING),
        ({"$ref": "#/anyOf/1", "anyOf": [{"type": "null"}, {"type": "string"}]}, STRING),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "string"}}}, STRING),
    ],
)
def test_a_schema_becomes_its_shape(schema, expected):
    """Keywords of all conjuncts are merged into one shape."""
    assert shape(schema) == expected
    assert reported(schema) == []


def test_naming_every_type_is_no_reason_to_forget_the_rest():
    """A schema of all types still holds for the strings among its values."""
    types = ["object", "array", "string", "number", "boolean", "null"]

    assert Text(minimum=3) in shape({"type": types, "minLength": 3}).options
    assert shape({"type": types}) == Anything()


def test_arrays_have_a_prefix_and_items():
    """`prefixItems`, and `items` as a list, describe the first items one by one."""
    new = {"prefixItems": [{"type": "string"}], "items": {"type": "integer"}, "minItems": 1}
    old = {"items": [{"type": "string"}], "additionalItems": False}

    assert shape(new) == shapes.Array(prefix=(STRING,), items=INTEGER, minimum=1)
    assert shape(old) == shapes.Array(prefix=(STRING,), items=shapes.Nothing(), maximum=1)


def test_objects_with_properties_are_closed():
    """Where properties are declared, no others are generated unless the schema asks for them."""
    closed = shape({"properties": {"a": {"type": "string"}}, "required": ["a", "b"]})
    open_ = shape({"properties": {"a": {}}, "additionalProperties": {"type": "integer"}})

    declared = (Property("a", STRING, True), Property("b", Anything(), True))
    assert closed == shapes.Object(properties=declared, others=Anything())
    assert open_ == shapes.Object(
        properties=(Property("a", Anything()),), extra=((Text(excluded=frozenset("a")), INTEGER),)
    )


def test_objects_without_properties_are_open():
    """`{"type": "object"}` takes anything; declaring no property at all takes nothing."""
    assert shape({"type": "object"}) == shapes.Object(extra=((Text(), Anything()),))
    assert shape({"type": "object", "properties": {}}) == shapes.Object(others=Anything())


def test_the_properties_of_all_conjuncts_are_merged():
    """`allOf` adds properties and requirements, in order; a property in two places obeys both."""
    schema = {
        "properties": {"a": {"type": "string"}},
        "allOf": [{"properties": {"a": {"minLength": 2}, "b": {"type": "integer"}}, "required": ["b"]}],
    }

    found = shape(schema)

    assert [(item.name, item.shape, item.required) for item in found.properties] == [
        ("a", Text(minimum=2), False),
        ("b", INTEGER, True),
    ]


def test_patterns_describe_other_keys():
    """`patternProperties` and `propertyNames` say which other keys there may be; a declared one obeys the pattern, too."""
    by_pattern = shape(
        {"properties": {"x-a": {}}, "patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False}
    )
    named = shape({"propertyNames": {"maxLength": 3}, "additionalProperties": {"type": "integer"}})

    assert by_pattern.properties == (Property("x-a", STRING),)
    assert [value for _, value in by_pattern.extra] == [STRING]
    assert named.extra == ((Text(maximum=3), INTEGER),)


def test_maps_are_counted():
    """The number of properties holds where all declared ones are required."""
    found = shape(
        {
            "properties": {"a": {}},
            "required": ["a"],
            "additionalProperties": True,
            "minProperties": 2,
            "maxProperties": 4,
        }
    )

    assert (found.minimum, found.maximum) == (1, 3)


def test_a_recursion_becomes_a_reference():
    """A schema that contains itself is defined once and referred to."""
    reading = read_schema({"type": "object", "properties": {"next": {"$ref": "#"}}, "required": []})

    assert isinstance(reading.shape, Reference)
    assert reading.definitions[reading.shape.name].properties[0].shape == reading.shape


def test_a_recursion_that_never_ends_is_left_out():
    """An optional property that needs itself for ever cannot be written, and a required one is an error."""
    endless = {"required": ["e"], "properties": {"e": {"$ref": "#/$defs/endless"}}}
    schema = {"properties": {"a": {"type": "null"}, "e": {"$ref": "#/$defs/endless"}}, "$defs": {"endless": endless}}

    assert [item.name for item in shape(schema).properties] == ["a"]
    with pytest.raises(GrammarError, match="no value can satisfy it"):
        shape({**schema, "required": ["e"]})


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"properties": {"a": {"pattern": "^(?=x)"}}}, [("#/properties/a", "pattern")]),
        ({"type": "string", "format": "isbn"}, [("#", "format")]),
        ({"type": "string", "pattern": "^[ab]*c$", "maxLength": 3}, [("#", "maxLength")]),
        ({"type": "string", "pattern": "^a", "format": "date"}, [("#", "format")]),
        ({"uniqueItems": True, "contains": {"type": "null"}}, [("#", "uniqueItems")]),
        ({"contains": {"pattern": "^a"}}, [("#", "contains")]),
        ({"contains": {"type": "null"}, "maxItems": 3}, [("#", "contains")]),
        ({"type": "string", "if": {"pattern": "a"}, "then": {"minLength": 3}}, [("#", "if")]),
        ({"properties": {"a": {}}, "minProperties": 1}, [("#", "minProperties")]),
        ({"type": "object", "minProperties": 2}, [("#", "minProperties")]),
        ({"patternProperties": {"^a": {}}}, [("#", "additionalProperties")]),
        ({"oneOf": [{"properties": {"a": {}}}, {"type": "object", "minProperties": 0}]}, [("#", "oneOf")]),
        ({"oneOf": [{"pattern": "^a"}, {"type": "string"}]}, [("#", "oneOf")]),
        ({"type": "number", "minimum": 1, "not": {"type": "integer"}}, [("#", "not")]),
        ({"minimum": 1, "not": {"type": "integer"}}, [("#", "not")]),
        ({"type": "number", "multipleOf": 0.3}, [("#", "multipleOf")]),
        ({"type": "integer", "not": {"enum": list(range(40))}}, [("#", "not")]),
        ({"type": "string", "not": {"pattern": "a"}}, [("#", "not")]),
        ({"$ref": "https://example.com/schema"}, [("#", "$ref")]),
        ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, [("#", "$ref")]),
    ],
)
def test_what_cannot_be_said_is_reported_with_its_path(schema, expected):
    """Nothing is dropped in silence, and nothing of it is fatal."""
    assert sorted(reported(schema)) == expected


def test_branches_that_exclude_each_other_are_no_loss():
    """`oneOf` is `anyOf` where types or constants tell the branches apart."""
    kinds = [{"properties": {"kind": {"const": name}}, "required": ["kind"]} for name in ("cat", "dog")]

    assert reported({"oneOf": kinds}) == []
    assert reported({"oneOf": [{"type": "string"}, {"type": "integer"}]}) == []


def test_lengths_merge_into_a_repeated_class():
    """A pattern that repeats one class takes the length's bounds."""
    schema = {"pattern": "^[a-z]+$", "maxLength": 5}

    assert reported(schema) == []
    assert (shape(schema).pattern.minimum, shape(schema).pattern.maximum) == (1, 5)


def test_large_lengths_are_not_counted():
    """Beyond the given limit a length is wider, and reported."""
    reading = read_schema({"type": "string", "maxLength": 10_000}, longest=1000)

    assert reading.shape == STRING
    assert [item.keyword for item in reading.unsupported] == ["maxLength"]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"properties": {"a": {"pattern": "^(a$"}}}, r"#/properties/a/pattern: pattern .* expected '\)'"),
        ({"$ref": "#/$defs/missing"}, "#/[$]ref: .* leads nowhere: '[$]defs' is missing"),
        ({"type": "text"}, "#/type: expected one of"),
        ({"anyOf": {"type": "string"}}, "#/anyOf: expected a list"),
        ({"properties": ["a"]}, "#/properties: expected an object"),
        ({"items": 3}, "#/items: expected a JSON Schema"),
        ({"minimum": "3"}, "#/minimum: expected a number"),
        ({"enum": "abc"}, "#/enum: expected a list"),
        ({"required": "a", "type": "object"}, "#/required: expected a list"),
        ({"enum": ["a"], "type": "integer"}, "no value can satisfy it"),
        (False, "no value can satisfy it"),
    ],
)
def test_what_is_no_schema_is_an_error_that_names_the_place(schema, message):
    """A mistake of the caller raises, with the path and what was expected."""
    with pytest.raises(GrammarError, match=message):
        read_schema(schema)


def test_a_schema_that_explodes_is_cut_off(monkeypatch):
    """Nested alternatives do not blow up: the rest may be anything, and that is reported."""
    monkeypatch.setattr("unrender.schema.reader.MAX_CONJUNCTS_READ", 50)
    branches = [{"anyOf": [{"minLength": n}, {"maxLength": n}]} for n in range(12)]

    assert "schema" in {keyword for _, keyword in reported({"type": "string", "allOf": branches})}


@pytest.mark.parametrize(
    ("schema", "line"),
    [
        ({"type": "array", "items": {"not": {}}}, "[]{0,0}"),
        ({"type": "array", "items": {"type": "null"}}, "[null*]"),
        (
            {"type": "object", "properties": {"a": {"not": {}}, "b": {"type": "null"}}, "required": ["b"]},
            "{b: null, ...any}",
        ),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": False}, "{a?: any}"),
        ({"anyOf": [{"type": "null"}, {"enum": ["a", "b"]}]}, 'null | "a" | "b"'),
        ({"enum": ["a", 1, None], "allOf": [{"enum": [None, "a"]}, {"const": "a"}]}, '"a"'),
        ({"oneOf": [{"minimum": 2}, {"minimum": 5}]}, "number 2..<5"),
        ({"oneOf": [{"const": "a"}, {"const": "a"}, {"const": "b"}]}, '"b"'),
        (
            {"anyOf": [{"minLength": 1}, {"type": "null"}], "oneOf": [{"maxLength": 3}, {"type": "null"}]},
            "string{1,3} | null",
        ),
        ({"type": "string", "allOf": [True, {"minLength": 1}, {"minLength": 1}]}, "string{1,}"),
    ],
)
def test_a_schema_is_read_to_a_line(schema, line):
    """Plain parts at once, branches one by one, values as all lists have them."""
    assert shape_line(shape(schema)) == line
    assert reported(schema) == []


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
