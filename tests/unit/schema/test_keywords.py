"""What the keywords of one place say together: types, values, branches, conditions and references, on one line each."""

from __future__ import annotations

from typing import Any

import pytest
from lines import shape_line

from unrender.errors import GrammarError
from unrender.schema import reader as json_schema
from unrender.schema.reader import read_schema

NAN, INFINITY = float("nan"), float("inf")
READ: list[tuple[Any, None, str, list[str], dict[str, str]]] = [
    ({"type": ["string", "integer"]}, None, "string | integer", [], {}),
    ({"type": ["object", "array", "string", "number", "integer", "boolean", "null"]}, None, "any", [], {}),
    ({"type": ["object", "array", "string", "number", "boolean", "null"]}, None, "any", [], {}),
    (
        {"type": ["object", "array", "string", "number", "boolean"]},
        None,
        "{(string): any} | [any*] | string | number | boolean",
        [],
        {},
    ),
    ({"type": ["integer", "number"], "minimum": 1}, None, "number 1..", [], {}),
    ({"type": None}, None, "any", [], {}),
    ({"type": "string", "nullable": True}, None, "string | null", [], {}),
    ({"type": "string", "nullable": "yes"}, None, "string", [], {}),
    ({"nullable": True}, None, "any", [], {}),
    ({"nullable": True, "minLength": 1}, None, "string{1,}", [], {}),
    ({"type": "string", "allOf": [{"type": ["string", "null"]}]}, None, "string", [], {}),
    ({"type": "number", "allOf": [{"type": "integer"}]}, None, "integer", [], {}),
    ({"type": "integer", "allOf": [{"type": "number", "maximum": 4}]}, None, "integer ..4", [], {}),
    ({"minLength": 1, "allOf": [{"minimum": 2}]}, None, "string{1,} | number 2..", [], {}),
    ({"minLength": 1, "allOf": [{"type": ["string", "null"]}]}, None, "string{1,} | null", [], {}),
    ({"minItems": 1}, None, "[any*]{1,}", [], {}),
    ({"minProperties": 1, "minLength": 2}, None, "{(string): any}{1,} | string{2,}", [], {}),
    ({"multipleOf": 2}, None, "integer of 2", [], {}),
    (
        {"contains": {"type": "null"}, "type": ["array", "string"]},
        None,
        "[any*]{1,} with 1.. null among ({(string): any} | [any*] | string | number | boolean) | string",
        [],
        {},
    ),
    ({"x-unknown": 5}, None, "any", [], {}),
    ({"x-unknown": 5, "type": "null"}, None, "null", [], {}),
    (
        {
            "title": "t",
            "description": "d",
            "default": 1,
            "examples": [],
            "deprecated": True,
            "readOnly": True,
            "writeOnly": True,
            "$comment": "c",
        },
        None,
        "any",
        [],
        {},
    ),
    ({"type": "string", "not": {"type": "null"}}, None, "string", [], {}),
    ({"not": {"type": "null"}}, None, "{(string): any} | [any*] | string | number | boolean", [], {}),
    ({"not": {"type": ["null", "string"]}}, None, "{(string): any} | [any*] | number | boolean", [], {}),
    ({"not": {"type": "number"}}, None, "{(string): any} | [any*] | string | boolean | null", [], {}),
    ({"not": {"type": "integer"}}, None, "{(string): any} | [any*] | string | fraction | boolean | null", [], {}),
    ({"type": ["number", "null"], "not": {"type": "number"}}, None, "null", [], {}),
    ({"type": ["integer", "null"], "not": {"type": "integer"}}, None, "null", [], {}),
    ({"type": ["string", "null"], "not": {"type": "string", "description": "d"}}, None, "null", [], {}),
    (
        {"type": ["string", "null"], "not": {"type": "string", "nullable": True}},
        None,
        "string | null",
        ["# not: only types and single values can be excluded"],
        {},
    ),
    ({"type": ["string", "null"], "not": {"enum": ["a", None]}}, None, 'string but "a"', [], {}),
    ({"type": ["string", "null"], "not": {"const": "a"}}, None, 'string but "a" | null', [], {}),
    (
        {"type": ["string", "null"], "not": {"enum": ["a", None], "type": "string"}},
        None,
        'string but "a" | null',
        [],
        {},
    ),
    (
        {"type": ["number", "string"], "not": {"enum": [1, 2.5, "a"], "type": "number"}},
        None,
        "string | number ..<1 | number >1..<2.5 | number >2.5..",
        [],
        {},
    ),
    (
        {"type": ["number", "string"], "not": {"enum": [1, "a"], "type": "integer"}},
        None,
        "string | number ..<1 | number >1..",
        [],
        {},
    ),
    (
        {"type": ["number", "string"], "not": {"enum": [1, "a"], "type": ["integer", "string"]}},
        None,
        'string but "a" | number ..<1 | number >1..',
        [],
        {},
    ),
    ({"type": ["string", "null"], "not": {"enum": ["a", "b"], "const": "a"}}, None, 'string but "a" | null', [], {}),
    ({"type": ["string", "null"], "not": {"enum": ["a", "b"], "const": "c"}}, None, "string | null", [], {}),
    (
        {"type": ["string", "array"], "not": {"const": ["a"]}},
        None,
        "[any*] | string",
        ["# not: single lists and objects cannot be excluded"],
        {},
    ),
    (
        {"type": ["string", "object"], "not": {"const": {"a": 1}}},
        None,
        "{(string): any} | string",
        ["# not: single lists and objects cannot be excluded"],
        {},
    ),
    ({"type": "string", "not": {"enum": [["a"], {"a": 1}]}}, None, "string", [], {}),
    ({"type": "string", "not": {"enum": ["a"], "minLength": 1}}, None, 'string but "a" | string{0,0}', [], {}),
    ({"type": "string", "not": {"minLength": 3}}, None, "string{0,2}", [], {}),
    ({"type": "string", "not": {"maxLength": 3}}, None, "string{4,}", [], {}),
    ({"type": "string", "not": {"minLength": 3, "maxLength": 5}}, None, "string{0,2} | string{6,}", [], {}),
    (
        {"type": "string", "not": {"pattern": "a"}},
        None,
        "string",
        ["# not: only types and single values can be excluded"],
        {},
    ),
    ({"type": ["integer", "null"], "not": {"minimum": 3}}, None, "integer ..2", [], {}),
    ({"type": "string", "not": {"not": {"minLength": 3}}}, None, "string{3,}", [], {}),
    ({"not": False}, None, "any", [], {}),
    (
        {"type": "string", "allOf": [{"not": {"const": "a"}}, {"not": {"const": "b"}}]},
        None,
        'string but "a" "b"',
        [],
        {},
    ),
    (
        {"type": ["string", "null", "integer"], "allOf": [{"not": {"type": "null"}}, {"not": {"const": "b"}}]},
        None,
        'string but "b" | integer',
        [],
        {},
    ),
    ({"type": "string", "not": {"anyOf": [{"const": "a"}, {"minLength": 3}]}}, None, 'string{0,2} but "a"', [], {}),
    (
        {"type": "string", "not": {"allOf": [{"maxLength": 5}, {"minLength": 3}]}},
        None,
        "string{6,} | string{0,2}",
        [],
        {},
    ),
    ({"const": "a"}, None, '"a"', [], {}),
    ({"const": None}, None, "null", [], {}),
    ({"const": 1.0}, None, "1", [], {}),
    ({"const": {"b": 1, "a": [True]}}, None, '{"b": 1, "a": [true]}', [], {}),
    ({"enum": ["a", "a", 1, 1.0, True]}, None, '"a" | 1 | true', [], {}),
    ({"enum": ["a", 1], "type": "integer"}, None, "1", [], {}),
    ({"enum": ["a", 1, None], "const": 1}, None, "1", [], {}),
    ({"enum": ["a", 1, None], "allOf": [{"enum": [None, "a"]}]}, None, '"a" | null', [], {}),
    ({"enum": ["aa", "b"], "minLength": 2}, None, '"aa"', [], {}),
    ({"enum": [1, 2, 3], "minimum": 2, "not": {"const": 3}}, None, "2", [], {}),
    ({"enum": [{"a": 1}, {"a": "x"}], "properties": {"a": {"type": "string"}}}, None, '{"a": "x"}', [], {}),
    ({"enum": [1.5, 2], "type": "integer"}, None, "2", [], {}),
    ({"enum": ["a", None], "anyOf": [{"type": "null"}, {"type": "integer"}]}, None, "null", [], {}),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None, "string | null", [], {}),
    ({"anyOf": [{"type": "string"}, {"type": "null"}], "type": "string"}, None, "string", [], {}),
    ({"anyOf": [{"type": "string"}, {"type": "string"}]}, None, "string", [], {}),
    (
        {"anyOf": [{"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "integer"}]},
        None,
        "string | null | integer",
        [],
        {},
    ),
    ({"anyOf": [{"minLength": 1}, {"maxLength": 3}], "type": "string"}, None, "string{1,} | string{0,3}", [], {}),
    (
        {
            "anyOf": [{"type": "string"}, {"type": "null"}],
            "oneOf": [{"minLength": 1, "type": "string"}, {"type": "integer"}],
        },
        None,
        "string{1,}",
        [],
        {},
    ),
    (
        {
            "anyOf": [{"type": "string"}, {"type": "null"}],
            "allOf": [{"anyOf": [{"type": "integer"}, {"type": "null"}]}],
        },
        None,
        "null",
        [],
        {},
    ),
    ({"anyOf": [True]}, None, "any", [], {}),
    ({"oneOf": [{"type": "string"}, {"type": "null"}]}, None, "string | null", [], {}),
    ({"oneOf": [{"type": "string"}, {"type": ["null", "string"]}]}, None, "null", [], {}),
    ({"oneOf": [{"type": "number"}, {"type": "integer"}]}, None, "fraction", [], {}),
    (
        {"oneOf": [{"type": "string", "maxLength": 3}, {"type": "string", "minLength": 2}]},
        None,
        "string{0,1} | string{4,}",
        [],
        {},
    ),
    ({"oneOf": [{"minLength": 2}, {"minimum": 3}]}, None, "string{2,} | number 3..", [], {}),
    ({"oneOf": [{"minimum": 2}, {"minimum": 5}]}, None, "number 2..<5", [], {}),
    ({"oneOf": [{"const": "a"}, {"const": "b"}]}, None, '"a" | "b"', [], {}),
    ({"oneOf": [{"const": "a"}, {"const": "a"}, {"const": "b"}]}, None, '"b"', [], {}),
    (
        {"oneOf": [{"pattern": "a"}, {"type": "string"}]},
        None,
        "string /(?:[\\s\\S])*a(?:[\\s\\S])*/ | string",
        ["# oneOf: its branches may overlap; it is read as anyOf"],
        {},
    ),
    (
        {"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"},
        None,
        "{a: any, ...any} | {b: any, ...any}",
        ["# oneOf: its branches may overlap; it is read as anyOf"],
        {},
    ),
    (
        {
            "oneOf": [
                {"properties": {"k": {"const": "a"}}, "required": ["k"]},
                {"properties": {"k": {"const": "b"}}, "required": ["k"]},
            ]
        },
        None,
        '{k: "a", ...any} | {k: "b", ...any}',
        [],
        {},
    ),
    ({"oneOf": [{"type": "string", "maxLength": n} for n in range(1, 9)]}, None, "string{8,8}", [], {}),
    (
        {"oneOf": [{"type": "string", "maxLength": n} for n in range(1, 10)]},
        None,
        "string{0,1} | string{0,2} | string{0,3} | string{0,4} | string{0,5} | string{0,6} | string{0,7} | string{0,8} | string{0,9}",
        ["# oneOf: its branches may overlap; it is read as anyOf"],
        {},
    ),
    ({"oneOf": [{"type": "string"}, True]}, None, "{(string): any} | [any*] | number | boolean | null", [], {}),
    (
        {
            "allOf": [
                {"anyOf": [{"minLength": i} for i in range(16)]},
                {"anyOf": [{"maxLength": i} for i in range(17)]},
            ],
            "type": "string",
        },
        None,
        "string | string{1,} | string{2,} | string{3,} | string{4,} | string{5,} | string{6,} | string{7,} | string{8,} | string{9,} | string{10,} | string{11,} | string{12,} | string{13,} | string{14,} | string{15,}",
        ["#/allOf/1 anyOf: with others it makes more than 256 combinations"],
        {},
    ),
    ({"if": True, "then": {"type": "string"}, "else": {"type": "null"}}, None, "string", [], {}),
    ({"if": False, "then": {"type": "string"}, "else": {"type": "null"}}, None, "null", [], {}),
    ({"if": {}, "then": {"type": "string"}, "else": {"type": "null"}}, None, "string", [], {}),
    ({"if": False, "then": {"type": "string"}}, None, "any", [], {}),
    ({"if": {"type": "string"}, "then": {"minLength": 1}, "else": {"type": "null"}}, None, "string{1,} | null", [], {}),
    (
        {"type": ["string", "null"], "if": {"type": "string"}, "then": {"minLength": 1}},
        None,
        "string{1,} | null",
        [],
        {},
    ),
    ({"type": ["string", "null"], "if": {"type": "string"}, "else": False}, None, "string", [], {}),
    ({"type": ["string", "null"], "if": {"type": "string"}}, None, "string | null", [], {}),
    (
        {"type": "string", "if": {"pattern": "a"}, "then": {"minLength": 2}},
        None,
        "string",
        ["# if: conditions cannot be decided while the value is written"],
        {},
    ),
    ({"type": "string", "if": {"pattern": "a"}}, None, "string", [], {}),
    (
        {"type": "string", "if": {"pattern": "a"}, "else": {"minLength": 2}},
        None,
        "string",
        ["# if: conditions cannot be decided while the value is written"],
        {},
    ),
    ({"type": "string", "then": {"minLength": 2}}, None, "string", [], {}),
    (
        {
            "type": "object",
            "properties": {"k": {"enum": ["a", "b"]}, "v": {}},
            "required": ["k"],
            "if": {"properties": {"k": {"const": "a"}}},
            "then": {"properties": {"v": {"type": "null"}}},
            "else": {"required": ["v"]},
        },
        None,
        '{k: "a", v?: null, ...any} | {k: "b", v: any, ...any}',
        [],
        {},
    ),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}, None, "string", [], {}),
    ({"$ref": "#/$defs/a", "maxLength": 3, "$defs": {"a": {"minLength": 1}}}, None, "string{1,3}", [], {}),
    (
        {"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"type": "null"}}},
        None,
        "null",
        [],
        {},
    ),
    ({"$ref": "#"}, None, "any", [], {}),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, None, "any", [], {}),
    ({"$ref": 5}, None, "any", ["# $ref: only references within the schema are followed, found 5"], {}),
    (
        {"$ref": "other.json"},
        None,
        "any",
        ["# $ref: only references within the schema are followed, found 'other.json'"],
        {},
    ),
    ({"$ref": "#/$defs/a/0", "$defs": {"a": [{"type": "null"}]}}, None, "null", [], {}),
    ({"$ref": "#/$defs/a/00", "$defs": {"a": [{"type": "null"}]}}, None, "null", [], {}),
    ({"$ref": "#/$defs/a%20b~1c~0d", "$defs": {"a b/c~d": {"type": "null"}}}, None, "null", [], {}),
    ({"$ref": "#/$defs/", "$defs": {"": {"type": "null"}}}, None, "null", [], {}),
    ({"$ref": "#//$defs/a", "$defs": {"a": {"type": "null"}}}, None, "null", [], {}),
    ({"$ref": "#/"}, None, "any", [], {}),
    ({"$ref": "#named", "$defs": {"a": {"$anchor": "named", "type": "null"}}}, None, "null", [], {}),
    ({"$ref": "#na%6ded", "$defs": {"a": {"$anchor": "named", "type": "null"}}}, None, "null", [], {}),
    ({"$ref": "item", "$defs": {"a": {"$id": "item", "type": "null"}}}, None, "null", [], {}),
    (
        {"$ref": "item#/$defs/x", "$defs": {"a": {"$id": "item", "$defs": {"x": {"type": "null"}}}}},
        None,
        "null",
        [],
        {},
    ),
    (
        {"$ref": "item#there", "$defs": {"a": {"$id": "item", "$defs": {"x": {"$anchor": "there", "type": "null"}}}}},
        None,
        "null",
        [],
        {},
    ),
    (
        {"$id": "http://h/root", "$ref": "item", "$defs": {"a": {"$id": "http://h/item", "type": "null"}}},
        None,
        "null",
        [],
        {},
    ),
    (
        {"$id": "http://h/root", "$ref": "http://h/root#/$defs/a", "$defs": {"a": {"type": "null"}}},
        None,
        "null",
        [],
        {},
    ),
    (
        {"$id": "http://h/d/root", "$ref": "../item", "$defs": {"a": {"$id": "http://h/item", "type": "null"}}},
        None,
        "null",
        [],
        {},
    ),
    (
        {"$ref": "http://[bad", "type": "null"},
        None,
        "null",
        ["# $ref: only references within the schema are followed, found 'http://[bad'"],
        {},
    ),
    ({"$id": "http://[bad", "$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}}, None, "null", [], {}),
    (
        {"$ref": "item", "enum": [{"$id": "item"}]},
        None,
        '{"$id": "item"}',
        ["# $ref: only references within the schema are followed, found 'item'"],
        {},
    ),
    (
        {"$ref": "item", "const": {"$id": "item"}, "$defs": [{"$id": "item", "type": "object"}]},
        None,
        '{"$id": "item"}',
        [],
        {},
    ),
    ({"$dynamicRef": "#x", "$defs": {"a": {"$dynamicAnchor": "x", "type": "null"}}}, None, "null", [], {}),
    ({"$dynamicRef": "#x", "$defs": {"a": {"$anchor": "x", "type": "null"}}}, None, "null", [], {}),
    ({"$dynamicRef": "#/$defs/a", "$defs": {"a": {"$dynamicAnchor": "x", "type": "null"}}}, None, "null", [], {}),
    (
        {"$dynamicRef": "other"},
        None,
        "any",
        ["# $dynamicRef: only references within the schema are followed, found 'other'"],
        {},
    ),
    ({"$dynamicRef": 5}, None, "any", ["# $dynamicRef: only references within the schema are followed, found 5"], {}),
    (
        {"$recursiveRef": "#", "type": "object"},
        None,
        "{(string): any}",
        ["# $recursiveRef: where it leads depends on how it is reached"],
        {},
    ),
    (
        {"type": "object", "properties": {"next": {"$ref": "#"}}},
        None,
        "$recursive-1",
        [],
        {"recursive-1": "{next?: $recursive-1, ...any}"},
    ),
    (
        {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, "required": ["next"]},
        None,
        "$recursive-1",
        [],
        {"recursive-1": "{next: $recursive-1 | null, ...any}"},
    ),
    ({"type": "array", "items": {"$ref": "#"}}, None, "$recursive-1", [], {"recursive-1": "[$recursive-1*]"}),
    ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, None, "null", ["# $ref: it refers to itself and nothing else"], {}),
    (
        {"anyOf": [{"type": "array", "items": {"$ref": "#"}}, {"type": "null"}]},
        None,
        "$recursive-1",
        [],
        {"recursive-1": "[$recursive-1*] | null"},
    ),
    (
        {
            "$ref": "#/$defs/a",
            "$defs": {"a": {"items": {"$ref": "#/$defs/b"}}, "b": {"properties": {"x": {"$ref": "#/$defs/a"}}}},
        },
        None,
        "$recursive-1",
        [],
        {"recursive-1": "[{x?: $recursive-1, ...any}*]"},
    ),
    (
        {
            "enum": [{"n": None}, {"n": {"n": 1}}],
            "$ref": "#/$defs/a",
            "$defs": {
                "a": {"type": "object", "properties": {"n": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}}}
            },
        },
        None,
        '{"n": null}',
        [],
        {"recursive-3": "{n?: $recursive-3 | null, ...any}"},
    ),
    ({"allOf": [True, {"type": "string"}, {}]}, None, "string", [], {}),
    ({"allOf": [{"allOf": [{"minLength": 1}]}, {"$ref": "#/allOf/0"}]}, None, "string{1,}", [], {}),
    (True, None, "any", [], {}),
]
"""A schema, its limit, its shape, what is not enforced, and the shapes that refer to themselves."""
ERRORS = [
    (
        {"type": "text"},
        "#/type: expected one of ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'], found 'text'",
    ),
    (
        {"type": ["string", "text"]},
        "#/type: expected one of ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'], found ['string', 'text']",
    ),
    (
        {"type": [5]},
        "#/type: expected one of ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'], found [5]",
    ),
    ({"type": []}, "schema: no value can satisfy it"),
    ({"type": "string", "allOf": [{"type": "null"}]}, "schema: no value can satisfy it"),
    (
        {"not": {"type": "text"}},
        "#/not/type: expected one of ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'], found 'text'",
    ),
    ({"type": ["string", "null"], "not": {"minLength": 0}}, "schema: no value can satisfy it"),
    ({"not": {}}, "schema: no value can satisfy it"),
    ({"not": True}, "schema: no value can satisfy it"),
    ({"type": "string", "not": {"enum": 5}}, "#/not/enum: expected a list, found 5"),
    ({"type": "string", "not": 5}, "#/not: expected a JSON Schema, found 5"),
    ({"enum": []}, "schema: no value can satisfy it"),
    ({"enum": "a"}, "#/enum: expected a list, found 'a'"),
    ({"enum": [{1: 2}]}, "#/enum: expected JSON, found {1: 2}"),
    ({"enum": [NAN]}, "#/enum: expected JSON, found nan"),
    ({"const": INFINITY}, "#/const: expected JSON, found inf"),
    ({"anyOf": []}, "schema: no value can satisfy it"),
    ({"anyOf": [False]}, "schema: no value can satisfy it"),
    ({"anyOf": [{"type": "string"}, 5]}, "#/anyOf/1: expected a JSON Schema, found 5"),
    ({"anyOf": 5}, "#/anyOf: expected a list, found 5"),
    ({"type": "string", "if": None, "then": {"minLength": 2}}, "#/if: expected a JSON Schema, found None"),
    ({"$ref": "#/$defs/b", "$defs": {"a": {}}}, "#/$ref: '#/$defs/b' leads nowhere: 'b' is missing"),
    (
        {"$ref": "#/$defs/a/1", "$defs": {"a": [{"type": "null"}]}},
        "#/$ref: '#/$defs/a/1' leads nowhere: '1' is missing",
    ),
    (
        {"$ref": "#/$defs/a/x", "$defs": {"a": [{"type": "null"}]}},
        "#/$ref: '#/$defs/a/x' leads nowhere: 'x' is missing",
    ),
    ({"$ref": "#/$defs/a/b", "$defs": {"a": "text"}}, "#/$ref: '#/$defs/a/b' leads nowhere: 'b' is missing"),
    ({"$ref": "#/$defs/a", "$defs": {"a": "text"}}, "#/$defs/a: expected a JSON Schema, found 'text'"),
    (
        {"$ref": "#missing", "$defs": {"a": {"$anchor": "named", "type": "null"}}},
        "#/$ref: '#missing' leads nowhere: 'missing' is missing",
    ),
    (
        {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]},
        "schema: no value can satisfy it",
    ),
    ({"type": "array", "items": {"$ref": "#"}, "minItems": 1}, "schema: no value can satisfy it"),
    ({"allOf": [False]}, "schema: no value can satisfy it"),
    ({"allOf": 5}, "#/allOf: expected a list, found 5"),
    ({"allOf": [5]}, "#/allOf/0: expected a JSON Schema, found 5"),
    (False, "schema: no value can satisfy it"),
]


@pytest.mark.parametrize(("schema", "longest", "line", "losses", "definitions"), READ)
def test_keywords_become_a_shape(schema, longest, line, losses, definitions):
    """Types are those that all places allow, branches are tried one by one, references are followed."""
    reading = read_schema(schema, longest=longest)

    assert shape_line(reading.shape) == line
    assert [f"{item.path} {item.keyword}: {item.reason}" for item in reading.unsupported] == losses
    assert {name: shape_line(shape) for name, shape in reading.definitions.items()} == definitions


@pytest.mark.parametrize(("schema", "message"), ERRORS)
def test_a_wrong_keyword_is_an_error(schema, message):
    """The error names the place, what was expected and what was found."""
    with pytest.raises(GrammarError) as caught:
        read_schema(schema)

    assert str(caught.value) == message


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
    """48 levels around a value are read."""
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
    monkeypatch.setattr(json_schema, "MAX_CONJUNCTS_READ", steps)
    properties = {"a": {"type": "string"}, "b": {"minLength": 1}, "c": {"minLength": 2}}
    schema = {"type": "object", "properties": properties, "title": f"{steps} steps"}

    assert [item.reason for item in read_schema(schema).unsupported] == losses


def test_listed_values_are_counted(monkeypatch):
    """Ten values cost as much as reading one place."""
    monkeypatch.setattr(json_schema, "MAX_CONJUNCTS_READ", 14)
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
