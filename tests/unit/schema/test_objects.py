"""Objects: which properties there are, which others may come, and how many, on one line for each schema."""

from __future__ import annotations

import pytest
from lines import shape_line

from unrender.errors import GrammarError
from unrender.schema.reader import read_schema

READ = [
    ({"type": "object"}, None, "{(string): any}", []),
    ({"type": "object", "properties": {}}, None, "{...any}", []),
    ({"type": "object", "required": []}, None, "{...any}", []),
    ({"properties": {"a": {"type": "string"}, "b": {}}, "required": ["b"]}, None, "{a?: string, b: any, ...any}", []),
    ({"required": ["a", "b"]}, None, "{a: any, b: any, ...any}", []),
    ({"required": True, "type": "object"}, None, "{...any}", []),
    ({"required": [5, "a"], "type": "object"}, None, "{a: any, ...any}", []),
    ({"properties": {"a": False}}, None, "{...any}", []),
    ({"properties": {"a": False, "b": {}}}, None, "{b?: any, ...any}", []),
    ({"type": ["object", "null"], "properties": {"a": False}, "required": ["a"]}, None, "null", []),
    ({"properties": {"a": {}}, "additionalProperties": True}, None, '{a?: any, (string but "a"): any}', []),
    (
        {"properties": {"a": {}}, "additionalProperties": {"type": "integer"}},
        None,
        '{a?: any, (string but "a"): integer}',
        [],
    ),
    ({"properties": {"a": {}}, "additionalProperties": False}, None, "{a?: any}", []),
    (
        {"properties": {"a": {}}, "required": ["b"], "additionalProperties": {"type": "integer"}},
        None,
        '{a?: any, b: integer, (string but "a" "b"): integer}',
        [],
    ),
    ({"additionalProperties": False}, None, "{}", []),
    ({"additionalProperties": {"type": "null"}}, None, "{(string): null}", []),
    (
        {
            "properties": {"a": {"type": "string"}},
            "allOf": [{"properties": {"a": {"minLength": 1}, "b": {}}, "required": ["a"]}],
        },
        None,
        "{a: string{1,}, b?: any, ...any}",
        [],
    ),
    (
        {"properties": {"a": {}}, "additionalProperties": False, "allOf": [{"properties": {"b": {"type": "null"}}}]},
        None,
        "{a?: any}",
        [],
    ),
    (
        {
            "properties": {"a": {}},
            "additionalProperties": {"type": "string"},
            "allOf": [{"properties": {"b": {"minLength": 1}}}],
        },
        None,
        '{a?: any, b?: string{1,}, (string but "a" "b"): string}',
        [],
    ),
    (
        {"patternProperties": {"^a": {"type": "null"}}, "additionalProperties": False},
        None,
        "{(string /a(?:[\\s\\S])*/): null}",
        [],
    ),
    (
        {"patternProperties": {"^a": {"type": "null"}}, "additionalProperties": {"type": "string"}},
        None,
        "{(string /a(?:[\\s\\S])*/): null, ...string}",
        ["# additionalProperties: keys that match no pattern are not generated"],
    ),
    (
        {"patternProperties": {"^a": {"type": "null"}}},
        None,
        "{(string /a(?:[\\s\\S])*/): null, ...any}",
        ["# additionalProperties: keys that match no pattern are not generated"],
    ),
    ({"patternProperties": {"^a": False}, "additionalProperties": False}, None, "{}", []),
    (
        {
            "properties": {"ab": {}, "b": {}},
            "patternProperties": {"^a": {"type": "null"}},
            "additionalProperties": False,
        },
        None,
        "{ab?: null, b?: any, (string /a(?:[\\s\\S])*/): null}",
        [],
    ),
    (
        {
            "properties": {"ab": {"type": "string"}},
            "required": ["ab"],
            "patternProperties": {"^a": {"minLength": 2}},
            "additionalProperties": False,
        },
        None,
        "{ab: string{2,}, (string /a(?:[\\s\\S])*/): string{2,}}",
        [],
    ),
    (
        {"patternProperties": {"^a": {"type": "null"}, "^b": {"type": "string"}}, "additionalProperties": False},
        None,
        "{(string /a(?:[\\s\\S])*/): null, (string /b(?:[\\s\\S])*/): string}",
        [],
    ),
    (
        {"patternProperties": {"^a": {"type": "null"}, "^ab": {"type": "string"}}, "additionalProperties": False},
        None,
        "{(string /a(?:[\\s\\S])*|ab(?:[\\s\\S])*/): null | string}",
        ["# patternProperties: a key may match several patterns; its value obeys one of them"],
    ),
    (
        {"patternProperties": {"^ab": {"type": "null"}, "^a": {"type": "string"}}, "additionalProperties": False},
        None,
        "{(string /ab(?:[\\s\\S])*|a(?:[\\s\\S])*/): null | string}",
        ["# patternProperties: a key may match several patterns; its value obeys one of them"],
    ),
    (
        {"patternProperties": {"^a": {"type": "null"}, "^ab": {"type": "null"}}, "additionalProperties": False},
        None,
        "{(string /a(?:[\\s\\S])*|ab(?:[\\s\\S])*/): null}",
        [],
    ),
    (
        {"patternProperties": {"a": {"type": "null"}, "b": {"type": "string"}}, "additionalProperties": False},
        None,
        "{(string /(?:[\\s\\S])*a(?:[\\s\\S])*|(?:[\\s\\S])*b(?:[\\s\\S])*/): null | string}",
        ["# patternProperties: a key may match several patterns; its value obeys one of them"],
    ),
    (
        {
            "patternProperties": {"^a[0-9]$": {"type": "null"}, "^a[a-z]$": {"type": "string"}},
            "additionalProperties": False,
        },
        None,
        "{(string /a[0-9]|a[a-z]/): null | string}",
        ["# patternProperties: a key may match several patterns; its value obeys one of them"],
    ),
    (
        {"patternProperties": {"^ab$": {"type": "null"}, "^ac$": {"type": "string"}}, "additionalProperties": False},
        None,
        "{(string /ab/): null, (string /ac/): string}",
        [],
    ),
    (
        {"patternProperties": {"(?=a)": {"type": "null"}}, "additionalProperties": False},
        None,
        "{(string): null}",
        ["#/patternProperties pattern: a lookaround cannot be written in a grammar"],
    ),
    (
        {"patternProperties": {"(?=a)": {"type": "null"}, "^b": {"type": "string"}}, "additionalProperties": False},
        None,
        "{(string): null | string}",
        [
            "#/patternProperties pattern: a lookaround cannot be written in a grammar",
            "# patternProperties: a key may match several patterns; its value obeys one of them",
        ],
    ),
    (
        {"properties": {"ab": {}}, "patternProperties": {"(?=a)": {"type": "null"}}, "additionalProperties": False},
        None,
        "{ab?: any, (string): null}",
        ["#/patternProperties pattern: a lookaround cannot be written in a grammar"],
    ),
    (
        {
            "patternProperties": {"^a": {"type": ["null", "string"]}},
            "additionalProperties": False,
            "allOf": [{"additionalProperties": {"type": "string"}}],
        },
        None,
        "{(string /a(?:[\\s\\S])*/): string}",
        [],
    ),
    (
        {
            "patternProperties": {"^a": {"type": ["null", "string"]}},
            "additionalProperties": False,
            "allOf": [{"patternProperties": {"^b": {}}, "additionalProperties": {"type": "string"}}],
        },
        None,
        "{(string /a(?:[\\s\\S])*/): string | null, (string /b(?:[\\s\\S])*/): any}",
        [
            "#/allOf/0 additionalProperties: its patterns are not compared with others'",
            "# additionalProperties: its patterns are not compared with others'",
        ],
    ),
    (
        {
            "patternProperties": {"^a": {"type": ["null", "string"]}},
            "additionalProperties": False,
            "allOf": [{"patternProperties": {"^a": {"minLength": 1}}, "additionalProperties": False}],
        },
        None,
        "{(string /a(?:[\\s\\S])*|a(?:[\\s\\S])*/): string | null | string{1,}}",
        ["# patternProperties: a key may match several patterns; its value obeys one of them"],
    ),
    ({"propertyNames": {"maxLength": 3}}, None, "{(string{0,3}): any}", []),
    ({"propertyNames": {"pattern": "^a$"}}, None, "{(string /a/): any}", []),
    ({"propertyNames": {"enum": ["a", "b"]}}, None, "{(string /a|b/): any}", []),
    (
        {
            "propertyNames": {"enum": ["a", "b"]},
            "properties": {"a": {"type": "null"}, "c": {}},
            "additionalProperties": {"type": "integer"},
        },
        None,
        "{a?: null, (string /b/): integer}",
        [],
    ),
    ({"propertyNames": {"enum": ["a"]}, "required": ["c"], "type": ["object", "null"]}, None, "null", []),
    ({"propertyNames": {"const": "a"}}, None, "{(string /a/): any}", []),
    ({"propertyNames": False}, None, "{}", []),
    ({"propertyNames": True}, None, "{(string): any}", []),
    ({"propertyNames": {"type": "integer"}}, None, "{}", []),
    ({"propertyNames": False, "properties": {"a": {}}}, None, "{...any}", []),
    (
        {"propertyNames": {"maxLength": 3}, "properties": {"abcd": {}, "ab": {}}, "additionalProperties": True},
        None,
        '{ab?: any, (string{0,3} but "ab" "abcd"): any}',
        [],
    ),
    (
        {"propertyNames": {"maxLength": 3}, "allOf": [{"propertyNames": {"minLength": 2}}]},
        None,
        "{(string{2,3}): any}",
        [],
    ),
    (
        {"propertyNames": {"anyOf": [{"maxLength": 3}, {"const": "abcdef"}]}},
        None,
        "{(string): any}",
        ["# propertyNames: only a pattern, a length or a list of names holds for keys"],
    ),
    (
        {"propertyNames": {"pattern": "^a"}, "patternProperties": {"^ab": {}}, "additionalProperties": False},
        None,
        "{(string /ab(?:[\\s\\S])*/): any}",
        ["# propertyNames: a pattern holds for the same keys"],
    ),
    (
        {
            "propertyNames": {"pattern": "^a"},
            "properties": {"ab": {}, "b": {}},
            "additionalProperties": {"type": "null"},
        },
        None,
        "{ab?: any, (string /a(?:[\\s\\S])*/): null}",
        [],
    ),
    (
        {"propertyNames": {"not": {"const": "x"}}, "properties": {"a": {}, "x": {}}, "additionalProperties": True},
        None,
        '{a?: any, (string but "a" "x"): any}',
        [],
    ),
    (
        {
            "properties": {"k" * 100: {}},
            "additionalProperties": {"type": "null"},
            "maxProperties": 5,
            "required": ["k" * 100],
        },
        None,
        '{kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk: any, (string but "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"): null}{0,4}',
        [],
    ),
    (
        {
            "properties": {"k" * 101: {}},
            "additionalProperties": {"type": "null"},
            "maxProperties": 5,
            "required": ["k" * 101],
        },
        None,
        '{kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk: any, (string but "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"): null}{0,4}',
        ["# additionalProperties: names of more than 100 characters may be repeated"],
    ),
    ({"type": "object", "minProperties": 1}, None, "{(string): any}{1,}", []),
    (
        {"type": "object", "minProperties": 2},
        None,
        "{(string): any}{2,}",
        ["# minProperties: keys that are not declared may repeat"],
    ),
    ({"type": "object", "minProperties": 0}, None, "{(string): any}", []),
    ({"type": "object", "maxProperties": 2}, None, "{(string): any}{0,2}", []),
    ({"type": "object", "maxProperties": 0}, None, "{}{0,0}", []),
    ({"type": ["object", "null"], "minProperties": 1, "maxProperties": 0}, None, "null", []),
    ({"properties": {"a": {}}, "required": ["a"], "minProperties": 1}, None, "{a: any, ...any}", []),
    (
        {"properties": {"a": {}}, "required": ["a"], "minProperties": 2},
        None,
        "{a: any, ...any}",
        ["# minProperties: optional properties are not counted"],
    ),
    (
        {"properties": {"a": {}}, "required": ["a"], "minProperties": 2, "additionalProperties": True},
        None,
        '{a: any, (string but "a"): any}{1,}',
        [],
    ),
    (
        {"properties": {"a": {}}, "required": ["a"], "minProperties": 3, "additionalProperties": True},
        None,
        '{a: any, (string but "a"): any}{2,}',
        ["# minProperties: keys that are not declared may repeat"],
    ),
    (
        {"properties": {"a": {}}, "required": ["a"], "maxProperties": 1, "additionalProperties": True},
        None,
        "{a: any}{0,0}",
        [],
    ),
    ({"properties": {"a": {}}, "required": ["a"], "maxProperties": 0, "type": ["object", "null"]}, None, "null", []),
    ({"properties": {"a": {}, "b": {}}, "required": ["a"], "maxProperties": 2}, None, "{a: any, b?: any}", []),
    (
        {"properties": {"a": {}, "b": {}}, "required": ["a"], "maxProperties": 1},
        None,
        "{a: any, b?: any}",
        ["# maxProperties: optional properties are not counted"],
    ),
    (
        {"properties": {"a": {}, "b": {}}, "required": ["a"], "minProperties": 1, "maxProperties": 2},
        None,
        "{a: any, b?: any}",
        [],
    ),
    (
        {"properties": {"a": {}, "b": {}}, "required": ["a"], "minProperties": 2},
        None,
        "{a: any, b?: any, ...any}",
        ["# minProperties: optional properties are not counted"],
    ),
    (
        {
            "properties": {"a": {}, "b": {}},
            "required": ["a"],
            "maxProperties": 2,
            "additionalProperties": {"type": "null"},
        },
        None,
        '{a: any, b?: any, (string but "a" "b"): null}',
        ["# maxProperties: optional properties are not counted"],
    ),
    (
        {"properties": {"a": {}, "b": {}}, "minProperties": 2, "allOf": [{"maxProperties": 2}]},
        None,
        "{a?: any, b?: any}",
        [
            "# minProperties: keys that are not declared may repeat",
            "#/allOf/0 maxProperties: optional properties are not counted",
        ],
    ),
    (
        {"properties": {"a": {}, "b": {}}, "required": ["a", "b"], "minProperties": 2, "maxProperties": 2},
        None,
        "{a: any, b: any}",
        [],
    ),
    (
        {
            "properties": {"a": {}},
            "required": ["a"],
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": {"type": "null"},
        },
        None,
        "{a: any}{0,0}",
        [],
    ),
    (
        {"type": "object", "maxProperties": 2000},
        1000,
        "{(string): any}",
        ["# maxProperties: no more than 1000 repetitions are counted"],
    ),
    ({"properties": {"a": {}}, "unevaluatedProperties": False}, None, "{a?: any}", []),
    (
        {"properties": {"a": {}}, "unevaluatedProperties": {"type": "null"}},
        None,
        '{a?: any, (string but "a"): null}',
        [],
    ),
    ({"properties": {"a": {}}, "unevaluatedProperties": True}, None, '{a?: any, (string but "a"): any}', []),
    ({"unevaluatedProperties": False}, None, "{}", []),
    ({"unevaluatedProperties": {"type": "null"}}, None, "{(string): null}", []),
    ({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, None, "{a?: any}", []),
    (
        {"allOf": [{"properties": {"a": {}}}], "properties": {"b": {}}, "unevaluatedProperties": {"type": "null"}},
        None,
        '{b?: any, a?: any, (string but "a" "b"): null}',
        [],
    ),
    (
        {"allOf": [{"properties": {"a": {}}, "unevaluatedProperties": False}], "properties": {"b": {}}},
        None,
        "{a?: any}",
        [],
    ),
    (
        {"allOf": [{"patternProperties": {"^a": {"type": "string"}}}], "unevaluatedProperties": False},
        None,
        "{(string /a(?:[\\s\\S])*/): string}",
        [],
    ),
    (
        {"patternProperties": {"^a": {"type": "string"}}, "unevaluatedProperties": False},
        None,
        "{(string /a(?:[\\s\\S])*/): string}",
        [],
    ),
    (
        {
            "allOf": [{"properties": {"a": {}}, "additionalProperties": {"type": "null"}}],
            "unevaluatedProperties": False,
        },
        None,
        '{a?: any, (string but "a"): null}',
        [],
    ),
    (
        {"allOf": [{"unevaluatedProperties": {"type": "null"}}], "unevaluatedProperties": False},
        None,
        "{(string): null}",
        [],
    ),
    (
        {"properties": {"a": {}}, "additionalProperties": {"type": "null"}, "unevaluatedProperties": False},
        None,
        '{a?: any, (string but "a"): null}',
        [],
    ),
    (
        {"if": {"properties": {"a": {"pattern": "x"}}}, "then": {"required": ["b"]}, "unevaluatedProperties": False},
        None,
        "{(string): any}",
        [
            "# if: conditions cannot be decided while the value is written",
            "# unevaluatedProperties: if decides which properties are evaluated",
        ],
    ),
    (
        {"if": {"properties": {"a": {"pattern": "x"}}}, "then": {"required": ["b"]}, "unevaluatedProperties": True},
        None,
        "{(string): any}",
        ["# if: conditions cannot be decided while the value is written"],
    ),
    (
        {
            "allOf": [{"if": {"properties": {"a": {"pattern": "x"}}}, "then": {"required": ["b"]}}],
            "unevaluatedProperties": False,
        },
        None,
        "{(string): any}",
        [
            "#/allOf/0 if: conditions cannot be decided while the value is written",
            "# unevaluatedProperties: if decides which properties are evaluated",
        ],
    ),
    (
        {
            "anyOf": [
                {"properties": {"a": {"type": "null"}}, "required": ["a"]},
                {"properties": {"b": {"type": "null"}}, "required": ["b"]},
            ],
            "unevaluatedProperties": False,
        },
        None,
        "{a: null} | {b: null}",
        [],
    ),
    ({"not": {"required": ["a"]}, "type": "object"}, None, '{(string but "a"): any}', []),
    ({"not": {"required": ["a"]}, "properties": {"a": {}, "b": {}}}, None, "{b?: any, ...any}", []),
    (
        {"not": {"properties": {"a": {"type": "string"}}}, "type": "object"},
        None,
        '{a: {(string): any} | [any*] | number | boolean | null, (string but "a"): any}',
        [],
    ),
    (
        {"not": {"properties": {"a": {"type": "string"}}}, "properties": {"a": {"type": ["string", "null"]}}},
        None,
        "{a: null, ...any}",
        [],
    ),
    ({"not": {"required": ["a"]}, "additionalProperties": {"type": "null"}}, None, '{(string but "a"): null}', []),
    (
        {"dependentRequired": {"a": ["b"]}, "properties": {"a": {}, "b": {}}},
        None,
        "{b?: any, ...any} | {a: any, b: any, ...any}",
        [],
    ),
    (
        {"dependentRequired": {"a": ["b"]}, "properties": {"a": {}, "b": {}}, "required": ["a"]},
        None,
        "{a: any, b: any, ...any}",
        [],
    ),
    (
        {
            "dependentSchemas": {"a": {"properties": {"b": {"type": "null"}}}},
            "properties": {"a": {}},
            "required": ["a"],
        },
        None,
        "{a: any, b?: null, ...any}",
        [],
    ),
    ({"dependentSchemas": {"a": False}, "properties": {"a": {}, "b": {}}}, None, "{b?: any, ...any}", []),
    (
        {"dependencies": {"a": ["b"], "c": {"required": ["d"]}}, "required": ["a", "c"]},
        None,
        "{a: any, c: any, b: any, d: any, ...any}",
        [],
    ),
    (
        {
            "properties": {"a": {}},
            "required": ["a"],
            "maxProperties": 2,
            "additionalProperties": True,
            "minProperties": 2,
        },
        None,
        '{a: any, (string but "a"): any}{1,1}',
        [],
    ),
    (
        {
            "properties": {"a": {}},
            "required": ["a"],
            "maxProperties": 2,
            "additionalProperties": True,
            "minProperties": 3,
            "type": ["object", "null"],
        },
        None,
        "null",
        ["# minProperties: keys that are not declared may repeat"],
    ),
    (
        {
            "properties": {"a": {}},
            "required": ["a"],
            "maxProperties": 0,
            "type": ["object", "null"],
            "additionalProperties": True,
        },
        None,
        "null",
        [],
    ),
    (
        {
            "patternProperties": {"^a": {"type": "null"}},
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 3,
        },
        None,
        "{(string /a(?:[\\s\\S])*/): null}{1,3}",
        [],
    ),
    (
        {"propertyNames": {"type": "string"}, "properties": {"a": {}}, "additionalProperties": {}},
        None,
        '{a?: any, (string but "a"): any}',
        [],
    ),
    (
        {
            "propertyNames": {"maxLength": 1},
            "patternProperties": {"^b": {}},
            "additionalProperties": False,
            "allOf": [{"title": "t", "type": "object"}],
        },
        None,
        "{(string /b(?:[\\s\\S])*/): any}",
        ["# propertyNames: a pattern holds for the same keys"],
    ),
]
"""A schema, up to which length objects are counted, its shape, and what is not enforced."""
ERRORS = [
    ({"required": "a", "type": "object"}, "#/required: expected a list, found 'a'"),
    ({"required": {}, "type": "object"}, "#/required: expected a list, found {}"),
    ({"properties": 5}, "#/properties: expected an object, found 5"),
    ({"properties": {"a": 5}}, "#/properties/a: expected a JSON Schema, found 5"),
    ({"properties": {"a": {}}, "required": ["b"], "additionalProperties": False}, "schema: no value can satisfy it"),
    ({"additionalProperties": 5}, "#/additionalProperties: expected a JSON Schema, found 5"),
    (
        {"patternProperties": {"(": {"type": "null"}}, "additionalProperties": False},
        "#/patternProperties/pattern: pattern '(': expected ')' at character 1",
    ),
    ({"patternProperties": 5}, "#/patternProperties: expected an object, found 5"),
    ({"patternProperties": {5: {}}}, "#/patternProperties: expected names that are strings, found 5"),
    ({"properties": {5: {}}}, "#/properties: expected names that are strings, found 5"),
    ({"type": "object", "minProperties": 3, "maxProperties": 2}, "schema: no value can satisfy it"),
    ({"type": "object", "minProperties": "1"}, "#/minProperties: expected a whole number, found '1'"),
    ({"not": {"required": ["a"]}, "required": ["a"], "type": ["object", "null"]}, "schema: no value can satisfy it"),
    ({"dependentRequired": {"a": "b"}}, "#/dependentRequired/a: expected a list or a JSON Schema, found 'b'"),
    ({"dependentRequired": {5: ["b"]}}, "#/dependentRequired: expected names that are strings, found 5"),
    ({"dependentRequired": []}, "#/dependentRequired: expected an object, found []"),
    ({"dependentSchemas": {"a": 5}}, "#/dependentSchemas/a: expected a list or a JSON Schema, found 5"),
]


@pytest.mark.parametrize(("schema", "longest", "line", "losses"), READ)
def test_keywords_of_objects_become_a_shape(schema, longest, line, losses):
    """`...` is what may come under other keys and is not generated; what cannot be said is reported."""
    reading = read_schema(schema, longest=longest)

    assert shape_line(reading.shape) == line
    assert [f"{item.path} {item.keyword}: {item.reason}" for item in reading.unsupported] == losses


@pytest.mark.parametrize(("schema", "message"), ERRORS)
def test_a_wrong_object_is_an_error(schema, message):
    """The error names the place, or says that there is no value."""
    with pytest.raises(GrammarError) as caught:
        read_schema(schema)

    assert str(caught.value) == message


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


def test_a_pattern_is_matched_with_the_patterns_of_all_places():
    """A property that is declared in one place obeys the pattern of another."""
    schema = {
        "properties": {"ab": {"type": ["string", "null"]}},
        "allOf": [{"patternProperties": {"^a": {"type": "string"}}, "additionalProperties": False}],
    }

    assert shape_line(read_schema(schema).shape) == "{ab?: string, (string /a(?:[\\s\\S])*/): string}"


def test_patterns_beside_properties_leave_an_object_open():
    """Keys of the pattern are generated; all others may come, and are reported."""
    reading = read_schema({"properties": {"a": {}}, "patternProperties": {"^b$": {"type": "null"}}})

    assert shape_line(reading.shape) == "{a?: any, (string /b/): null, ...any}"
    assert [item.keyword for item in reading.unsupported] == ["additionalProperties"]
