"""Lists: what they contain is counted, and lists without doubles are written out where they are few."""

from __future__ import annotations

import itertools
import json

import jsonschema
import pytest
from lines import shape_line

from unrender.errors import GrammarError
from unrender.schema import lists as list_keywords
from unrender.schema import shapes
from unrender.schema.admission import admits
from unrender.schema.reader import read_schema
from unrender.schema.shapes import Array

VALUES = (0, 1, 2, "a", None)
LISTS = [list(found) for length in range(5) for found in itertools.product(VALUES, repeat=length)]


@pytest.mark.parametrize(
    "schema",
    [
        {"contains": {"const": 1}},
        {"contains": {"type": "integer", "minimum": 1}, "minContains": 2},
        {"contains": {"type": "string"}, "minContains": 0, "maxContains": 1},
        {"contains": {"enum": [1, "a"]}, "minContains": 1, "maxContains": 2},
        {"items": {"type": ["integer", "null"]}, "contains": {"type": "null"}, "maxContains": 0, "minContains": 0},
        {"items": {"type": "integer"}, "contains": {"type": "integer"}, "maxContains": 3},
        {"contains": True, "minContains": 2, "maxContains": 3},
        {"prefixItems": [True], "contains": {"type": "string"}, "unevaluatedItems": False, "minContains": 0},
        {"items": {"enum": [0, 1, None]}, "uniqueItems": True},
        {"items": {"type": "integer", "minimum": 0, "maximum": 2}, "uniqueItems": True, "minItems": 1, "maxItems": 2},
        {"prefixItems": [{"enum": [0, 1]}, {"enum": ["a", 1]}], "items": False, "uniqueItems": True},
        {"not": {"prefixItems": [{"const": 1}, {"const": "a"}]}, "type": "array"},
        {"items": {"not": {"enum": [1, "a"]}}},
    ],
)
def test_a_list_is_admitted_exactly_when_its_schema_says_so(schema):
    """Nothing is reported, and the shape agrees with JSON Schema on every short list."""
    reading = read_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)

    assert reading.unsupported == ()
    wrong = [found for found in LISTS if admits(reading.shape, found, {}) != validator.is_valid(found)]
    assert wrong == []


def test_what_is_contained_has_the_type_that_its_keywords_imply():
    """A `minimum` wants numbers; values of other types are beside them and do not count."""
    reading = read_schema({"contains": {"minimum": 1}, "maxContains": 1})

    assert all(admits(reading.shape, found, {}) for found in ([1], ["a", 2, None], [0, 1, 0]))
    assert not any(admits(reading.shape, found, {}) for found in ([], ["a"], [0], [1, 2]))


def test_too_many_lists_without_doubles_are_not_written_out():
    """Beyond a few hundred items the keyword is reported, so that the grammar stays linear."""
    reading = read_schema({"items": {"enum": list("abcdef")}, "uniqueItems": True})

    assert [item.keyword for item in reading.unsupported] == ["uniqueItems"]
    assert isinstance(reading.shape, Array)


def test_the_first_items_are_told_apart_even_where_the_others_are_not():
    """Booleans at the head of a list have few arrangements; what follows them is reported."""
    flag = {"type": "boolean"}
    reading = read_schema({"prefixItems": [flag, flag], "uniqueItems": True})

    assert [item.keyword for item in reading.unsupported] == ["uniqueItems"]
    assert not admits(reading.shape, [True, True], {})
    assert all(admits(reading.shape, found, {}) for found in ([], [True], [False, True], [True, False, 1, 1]))


def test_equal_numbers_are_one_value():
    """1 and 1.0 are the same item, true and 1 are not."""
    reading = read_schema({"items": {"enum": [1, 1.0, True]}, "uniqueItems": True})

    assert sorted(option.json for option in reading.shape.options) == ["[1, true]", "[1]", "[]", "[true, 1]", "[true]"]


def test_a_list_that_may_have_one_item_is_unique():
    """Nothing is reported of a list that cannot hold two items."""
    assert read_schema({"uniqueItems": True, "maxItems": 1}).unsupported == ()


def test_a_list_that_must_contain_the_impossible_is_impossible():
    """A property whose list cannot be written is left out."""
    reading = read_schema({"properties": {"a": {"items": {"type": "string"}, "contains": {"type": "null"}}}})

    assert json.loads("{}") == {}
    assert reading.shape == shapes.Object(others=shapes.Anything())


READ = [
    ({"type": "array"}, None, "[any*]", []),
    ({"items": {"type": "string"}, "minItems": 1, "maxItems": 3}, None, "[string*]{1,3}", []),
    ({"type": ["array", "null"], "minItems": 3, "maxItems": 2}, None, "null", []),
    ({"items": False}, None, "[]{0,0}", []),
    ({"items": False, "maxItems": 3}, None, "[]{0,0}", []),
    ({"type": ["array", "null"], "items": False, "minItems": 1}, None, "null", []),
    ({"prefixItems": [{"type": "string"}, {"type": "null"}]}, None, "[string, null, any*]", []),
    ({"prefixItems": [{"type": "string"}, {"type": "null"}], "maxItems": 1}, None, "[string, any*]{0,1}", []),
    ({"prefixItems": [{"type": "string"}, {"type": "null"}], "maxItems": 0}, None, "[any*]{0,0}", []),
    (
        {"prefixItems": [{"type": "string"}, {"type": "null"}], "items": {"type": "integer"}, "minItems": 3},
        None,
        "[string, null, integer*]{3,}",
        [],
    ),
    (
        {"prefixItems": [{"type": "string"}, False, {"type": "null"}], "items": {"type": "integer"}},
        None,
        "[string]{0,1}",
        [],
    ),
    ({"prefixItems": [{"type": "string"}, False], "maxItems": 5}, None, "[string]{0,1}", []),
    ({"type": ["array", "null"], "prefixItems": [{"type": "string"}, False], "minItems": 2}, None, "null", []),
    ({"prefixItems": [{"type": "string"}, False], "minItems": 1}, None, "[string]{1,1}", []),
    ({"items": [{"type": "string"}], "additionalItems": {"type": "null"}}, None, "[string, null*]", []),
    ({"items": [{"type": "string"}], "additionalItems": False, "minItems": 1}, None, "[string]{1,1}", []),
    ({"items": [{"type": "string"}]}, None, "[string, any*]", []),
    ({"items": {"type": "string"}, "additionalItems": False}, None, "[string*]", []),
    (
        {"prefixItems": [{"type": "null"}], "items": {"type": "string"}, "additionalItems": False},
        None,
        "[null, string*]",
        [],
    ),
    (
        {"prefixItems": 5, "items": {"type": "string"}},
        None,
        "[string*]",
        ["# prefixItems: a list is expected, found 5"],
    ),
    ({"prefixItems": {"type": "null"}}, None, "[any*]", ["# prefixItems: a list is expected, found {'type': 'null'}"]),
    (
        {
            "prefixItems": [{"minLength": 1}],
            "allOf": [{"items": {"type": "string"}}, {"prefixItems": [True, {"maxLength": 5}]}],
        },
        None,
        "[string{1,}, string{0,5}, string*]",
        [],
    ),
    (
        {
            "prefixItems": [{"type": "string"}],
            "allOf": [{"prefixItems": [{"type": "string"}, {"type": "null"}], "items": {"type": "null"}}],
        },
        None,
        "[string, null, null*]",
        [],
    ),
    ({"items": {"type": "integer"}, "allOf": [{"items": {"type": "string"}}]}, None, "[]{0,0}", []),
    ({"minItems": 1, "maxItems": 9, "allOf": [{"minItems": 2, "maxItems": 8}]}, None, "[any*]{2,8}", []),
    ({"type": "array", "maxItems": 2000}, 1000, "[any*]", ["# maxItems: no more than 1000 repetitions are counted"]),
    ({"type": "array", "minItems": 2000}, 1000, "[any*]", ["# minItems: no more than 1000 repetitions are counted"]),
    (
        {"contains": {"type": "string"}},
        None,
        "[any*]{1,} with 1.. string among ({(string): any} | [any*] | number | boolean | null)",
        [],
    ),
    (
        {"contains": {"type": "string"}, "minContains": 2, "maxContains": 3},
        None,
        "[any*]{2,} with 2..3 string among ({(string): any} | [any*] | number | boolean | null)",
        [],
    ),
    ({"contains": {"type": "string"}, "minContains": 0}, None, "[any*]", []),
    (
        {"contains": {"type": "string"}, "minContains": 0, "maxContains": 2},
        None,
        "[any*] with 0..2 string among ({(string): any} | [any*] | number | boolean | null)",
        [],
    ),
    (
        {"contains": {"type": "string"}, "maxContains": 0, "minContains": 0},
        None,
        "[({(string): any} | [any*] | number | boolean | null)*]",
        [],
    ),
    ({"type": ["array", "null"], "contains": {"type": "string"}, "maxContains": 0}, None, "null", []),
    ({"type": ["array", "null"], "contains": {"type": "string"}, "minContains": 3, "maxContains": 2}, None, "null", []),
    ({"contains": True}, None, "[any*]{1,}", []),
    ({"contains": {}, "minContains": 2, "maxContains": 3}, None, "[any*]{2,3}", []),
    ({"contains": {}, "minItems": 3, "maxItems": 4, "maxContains": 9}, None, "[any*]{3,4}", []),
    ({"contains": True, "maxItems": 4, "maxContains": 3}, None, "[any*]{1,3}", []),
    ({"contains": True, "minContains": 0}, None, "[any*]", []),
    ({"contains": True, "maxItems": 3}, None, "[any*]{1,3}", []),
    ({"type": ["array", "null"], "contains": True, "maxItems": 0}, None, "null", []),
    ({"prefixItems": [{"type": "null"}], "contains": True, "maxContains": 4}, None, "[null, any*]{1,4}", []),
    ({"contains": False, "minContains": 0}, None, "[any*]", []),
    ({"contains": False, "minContains": 0, "maxContains": 4}, None, "[any*]", []),
    ({"type": ["array", "null"], "contains": False}, None, "null", []),
    (
        {"contains": {"minimum": 1}},
        None,
        "[any*]{1,} with 1.. number 1.. among (number ..<1 | {(string): any} | [any*] | string | boolean | null)",
        [],
    ),
    (
        {"contains": {"minLength": 1}},
        None,
        "[any*]{1,} with 1.. string{1,} among (string{0,0} | {(string): any} | [any*] | number | boolean | null)",
        [],
    ),
    (
        {"contains": {"minimum": 1, "type": "number"}},
        None,
        "[any*]{1,} with 1.. number 1.. among (number ..<1 | {(string): any} | [any*] | string | boolean | null)",
        [],
    ),
    (
        {"contains": {"const": 1}, "items": {"type": "integer"}},
        None,
        "[integer*]{1,} with 1.. 1 among (integer ..0 | integer 2..)",
        [],
    ),
    ({"contains": {"enum": [1, 2]}, "items": {"enum": [1, 2]}}, None, "[(1 | 2)*]{1,}", []),
    (
        {"contains": {"enum": [1, 2]}, "items": {"enum": [1, 2]}, "minContains": 2, "maxContains": 3},
        None,
        "[(1 | 2)*]{2,3}",
        [],
    ),
    ({"contains": {"enum": [1, 2]}, "items": {"enum": [3]}, "minContains": 0, "maxContains": 3}, None, "[3*]", []),
    ({"type": ["array", "null"], "contains": {"enum": [1, 2]}, "items": {"enum": [3]}}, None, "null", []),
    ({"contains": {"enum": [1, 2]}, "items": {"enum": [1, 3]}, "minContains": 0, "maxContains": 0}, None, "[3*]", []),
    (
        {"contains": {"pattern": "a"}},
        None,
        "[any*]{1,}",
        ["# contains: only a schema that can be negated is counted, in lists without a length and first items"],
    ),
    (
        {"contains": {"pattern": "a"}, "minContains": 2},
        None,
        "[any*]{2,}",
        ["# contains: only a schema that can be negated is counted, in lists without a length and first items"],
    ),
    (
        {"contains": {"pattern": "a"}, "maxItems": 0, "type": ["array", "null"]},
        None,
        "null",
        ["# contains: only a schema that can be negated is counted, in lists without a length and first items"],
    ),
    (
        {"contains": {"type": "string"}, "prefixItems": [{"type": "null"}]},
        None,
        "[null, any*]{1,}",
        ["# contains: only a schema that can be negated is counted, in lists without a length and first items"],
    ),
    (
        {"contains": {"type": "string"}, "maxItems": 3},
        None,
        "[any*]{1,3}",
        ["# contains: only a schema that can be negated is counted, in lists without a length and first items"],
    ),
    (
        {"contains": {"type": "string"}, "minItems": 1},
        None,
        "[any*]{1,} with 1.. string among ({(string): any} | [any*] | number | boolean | null)",
        [],
    ),
    (
        {"contains": {"type": "string"}, "minItems": 2},
        None,
        "[any*]{2,}",
        ["# contains: only a schema that can be negated is counted, in lists without a length and first items"],
    ),
    (
        {"contains": {"type": "string"}, "minItems": 2, "minContains": 2},
        None,
        "[any*]{2,} with 2.. string among ({(string): any} | [any*] | number | boolean | null)",
        [],
    ),
    (
        {"contains": {"type": "string"}, "minItems": 1, "minContains": 4, "maxItems": 3, "type": ["array", "null"]},
        None,
        "null",
        ["# contains: only a schema that can be negated is counted, in lists without a length and first items"],
    ),
    (
        {"contains": {"type": "string"}, "allOf": [{"contains": {"type": "null"}}]},
        None,
        "[any*]{1,} with 1.. string among ({(string): any} | [any*] | number | boolean | null)",
        ["#/allOf/0 contains: only a schema that can be negated is counted, in lists without a length and first items"],
    ),
    (
        {"contains": {"type": ["string", "null"]}, "items": {"type": "string"}, "maxContains": 4},
        None,
        "[string*]{1,4}",
        [],
    ),
    (
        {"contains": {"required": ["a"]}},
        None,
        '[any*]{1,} with 1.. {a: any, ...any} among ({(string but "a"): any} | [any*] | string | number | boolean | null)',
        [],
    ),
    ({"type": "array", "uniqueItems": True}, None, "[any*]", ["# uniqueItems: earlier items are not remembered"]),
    ({"type": "array", "uniqueItems": False}, None, "[any*]", []),
    ({"type": "array", "uniqueItems": None}, None, "[any*]", []),
    ({"type": "array", "uniqueItems": True, "maxItems": 1}, None, "[any*]{0,1}", []),
    ({"type": "array", "uniqueItems": True, "maxItems": 0}, None, "[any*]{0,0}", []),
    ({"items": {"enum": ["a", "b"]}, "uniqueItems": True}, None, '[] | ["a"] | ["b"] | ["a", "b"] | ["b", "a"]', []),
    ({"items": {"enum": ["a", "b"]}, "uniqueItems": True, "minItems": 2}, None, '["a", "b"] | ["b", "a"]', []),
    (
        {"items": {"enum": ["a", "b"]}, "uniqueItems": True, "minItems": 1, "maxItems": 1},
        None,
        '[("a" | "b")*]{1,1}',
        [],
    ),
    (
        {"items": {"enum": ["a", "b", 1]}, "uniqueItems": True, "maxItems": 2},
        None,
        '[] | ["a"] | ["b"] | [1] | ["a", "b"] | ["a", 1] | ["b", "a"] | ["b", 1] | [1, "a"] | [1, "b"]',
        [],
    ),
    ({"items": {"enum": ["a", "b"]}, "uniqueItems": True, "minItems": 3, "type": ["array", "null"]}, None, "null", []),
    (
        {"items": {"type": "boolean"}, "uniqueItems": True},
        None,
        "[] | [true] | [false] | [true, false] | [false, true]",
        [],
    ),
    (
        {"items": {"type": ["null", "boolean"]}, "uniqueItems": True, "minItems": 2},
        None,
        "[true, false] | [true, null] | [false, true] | [false, null] | [null, true] | [null, false] | [true, false, null] | [true, null, false] | [false, true, null] | [false, null, true] | [null, true, false] | [null, false, true]",
        [],
    ),
    (
        {"items": {"type": "integer", "minimum": 1, "maximum": 2}, "uniqueItems": True},
        None,
        "[] | [1] | [2] | [1, 2] | [2, 1]",
        [],
    ),
    (
        {"items": {"type": "integer", "minimum": 1, "maximum": 8, "multipleOf": 4}, "uniqueItems": True},
        None,
        "[] | [4] | [8] | [4, 8] | [8, 4]",
        [],
    ),
    (
        {"items": {"type": "integer", "minimum": 1, "maximum": 9, "multipleOf": 4}, "uniqueItems": True},
        None,
        "[integer 1..9 of 4*]",
        ["# uniqueItems: earlier items are not remembered"],
    ),
    (
        {"items": {"type": "integer", "minimum": 1}, "uniqueItems": True, "maxItems": 2},
        None,
        "[integer 1..*]{0,2}",
        ["# uniqueItems: earlier items are not remembered"],
    ),
    (
        {"items": {"enum": list("abcdefghi")}, "uniqueItems": True, "maxItems": 2},
        None,
        '[("a" | "b" | "c" | "d" | "e" | "f" | "g" | "h" | "i")*]{0,2}',
        ["# uniqueItems: earlier items are not remembered"],
    ),
    (
        {"items": {"enum": [1, 2, 3, 4]}, "uniqueItems": True, "minItems": 4},
        None,
        "[1, 2, 3, 4] | [1, 2, 4, 3] | [1, 3, 2, 4] | [1, 3, 4, 2] | [1, 4, 2, 3] | [1, 4, 3, 2] | [2, 1, 3, 4] | [2, 1, 4, 3] | [2, 3, 1, 4] | [2, 3, 4, 1] | [2, 4, 1, 3] | [2, 4, 3, 1] | [3, 1, 2, 4] | [3, 1, 4, 2] | [3, 2, 1, 4] | [3, 2, 4, 1] | [3, 4, 1, 2] | [3, 4, 2, 1] | [4, 1, 2, 3] | [4, 1, 3, 2] | [4, 2, 1, 3] | [4, 2, 3, 1] | [4, 3, 1, 2] | [4, 3, 2, 1]",
        [],
    ),
    (
        {"items": {"enum": [1, 2, 3, 4, 5]}, "uniqueItems": True},
        None,
        "[(1 | 2 | 3 | 4 | 5)*]",
        ["# uniqueItems: earlier items are not remembered"],
    ),
    (
        {"prefixItems": [{"enum": [1, 2]}, {"enum": [1, 3]}], "items": False, "uniqueItems": True},
        None,
        "[] | [1] | [2] | [1, 3] | [2, 1] | [2, 3]",
        [],
    ),
    (
        {"prefixItems": [{"enum": [1, 2]}, {"enum": [1, 3]}], "items": False, "uniqueItems": True, "minItems": 2},
        None,
        "[1, 3] | [2, 1] | [2, 3]",
        [],
    ),
    (
        {"prefixItems": [{"enum": [1, 2]}], "items": {"enum": [1, 2]}, "uniqueItems": True},
        None,
        "[] | [1] | [2] | [1, 2] | [2, 1]",
        [],
    ),
    (
        {"prefixItems": [{"enum": [1, 2]}, {"enum": [1, 2]}], "uniqueItems": True},
        None,
        "[] | [1] | [2] | [1, 2, any*]{2,} | [2, 1, any*]{2,}",
        ["# uniqueItems: earlier items are not remembered"],
    ),
    (
        {"prefixItems": [{"enum": [1, 2]}, {"enum": [1, 2]}], "uniqueItems": True, "minItems": 2},
        None,
        "[1, 2, any*]{2,} | [2, 1, any*]{2,}",
        ["# uniqueItems: earlier items are not remembered"],
    ),
    (
        {"prefixItems": [{"enum": [1, 2]}, {"enum": [1, 2]}], "uniqueItems": True, "minItems": 4},
        None,
        "[1, 2, any*]{4,} | [2, 1, any*]{4,}",
        ["# uniqueItems: earlier items are not remembered"],
    ),
    (
        {"prefixItems": [{"enum": [1, 2]}, {"enum": [1, 2]}], "uniqueItems": True, "minItems": 1, "maxItems": 4},
        None,
        "[1] | [2] | [1, 2, any*]{2,4} | [2, 1, any*]{2,4}",
        ["# uniqueItems: earlier items are not remembered"],
    ),
    (
        {"prefixItems": [{"type": "string"}], "items": {"enum": [1, 2]}, "uniqueItems": True},
        None,
        "[string, (1 | 2)*]",
        ["# uniqueItems: earlier items are not remembered"],
    ),
    (
        {"contains": {"enum": [1]}, "items": {"enum": [1, 2]}, "uniqueItems": True, "maxContains": 1},
        None,
        "[(1 | 2)*]{1,} with 1..1 1 among 2",
        ["# uniqueItems: earlier items are not remembered"],
    ),
    ({"uniqueItems": True, "items": {"enum": [1, 1.0, "a"]}, "minItems": 2}, None, '[1, "a"] | ["a", 1]', []),
    ({"unevaluatedItems": False}, None, "[]{0,0}", []),
    ({"unevaluatedItems": {"type": "string"}}, None, "[string*]", []),
    ({"prefixItems": [{"type": "null"}], "unevaluatedItems": False}, None, "[null]{0,1}", []),
    ({"prefixItems": [{"type": "null"}], "unevaluatedItems": {"type": "string"}}, None, "[null, string*]", []),
    (
        {"prefixItems": [{"type": "null"}], "items": {"type": "integer"}, "unevaluatedItems": False},
        None,
        "[null, integer*]",
        [],
    ),
    ({"allOf": [{"prefixItems": [{"type": "null"}]}], "unevaluatedItems": False}, None, "[null]{0,1}", []),
    (
        {
            "allOf": [{"prefixItems": [{"type": "null"}]}, {"prefixItems": [True, True]}],
            "unevaluatedItems": {"type": "string"},
        },
        None,
        "[null, any, string*]",
        [],
    ),
    ({"allOf": [{"items": {"type": "null"}}], "unevaluatedItems": False}, None, "[null*]", []),
    ({"allOf": [{"unevaluatedItems": {"type": "null"}}], "unevaluatedItems": False}, None, "[null*]", []),
    (
        {"allOf": [{"unevaluatedItems": False, "prefixItems": [{"type": "null"}]}, {"prefixItems": [True, True]}]},
        None,
        "[null]{0,1}",
        [],
    ),
    ({"items": [{"type": "null"}], "unevaluatedItems": False}, None, "[null]{0,1}", []),
    (
        {"items": [{"type": "null"}], "additionalItems": {"type": "string"}, "unevaluatedItems": False},
        None,
        "[null, string*]",
        [],
    ),
    ({"contains": {"type": "null"}, "unevaluatedItems": False}, None, "[null*]{1,}", []),
    (
        {"contains": {"type": "null"}, "unevaluatedItems": {"type": "string"}, "minContains": 0},
        None,
        "[(string | null)*]",
        [],
    ),
    (
        {"contains": {"type": "null"}, "unevaluatedItems": True},
        None,
        "[any*]{1,} with 1.. null among ({(string): any} | [any*] | string | number | boolean)",
        [],
    ),
    (
        {"if": {"prefixItems": [{"pattern": "a"}]}, "then": {"minItems": 1}, "unevaluatedItems": False},
        None,
        "[any*]",
        [
            "# if: conditions cannot be decided while the value is written",
            "# unevaluatedItems: if decides which items are evaluated",
        ],
    ),
    (
        {"if": {"prefixItems": [{"pattern": "a"}]}, "then": {"minItems": 1}, "unevaluatedItems": True},
        None,
        "[any*]",
        ["# if: conditions cannot be decided while the value is written"],
    ),
    (
        {
            "anyOf": [{"prefixItems": [{"type": "null"}]}, {"prefixItems": [{"type": "string"}, {"type": "string"}]}],
            "unevaluatedItems": False,
        },
        None,
        "[null]{0,1} | [string, string]{0,2}",
        [],
    ),
    (
        {"not": {"prefixItems": [{"const": 1}, {"const": "a"}]}, "type": "array"},
        None,
        '[{(string): any} | [any*] | string | number ..<1 | number >1.. | boolean | null, any*]{1,} | [any, {(string): any} | [any*] | string but "a" | number | boolean | null, any*]{2,}',
        [],
    ),
    (
        {"not": {"prefixItems": [{"const": 1}]}, "items": {"type": "integer"}, "minItems": 1},
        None,
        "[integer ..0 | integer 2.., integer*]{1,}",
        [],
    ),
    ({"not": {"minItems": 2}, "type": "array"}, None, "[any*]{0,1}", []),
    ({"not": {"maxItems": 2}, "type": "array"}, None, "[any*]{3,}", []),
]
"""A schema, up to which length lists are counted, its shape, and what is not enforced."""
ERRORS = [
    ({"prefixItems": [5]}, "#/prefixItems/0: expected a JSON Schema, found 5"),
    ({"items": 5}, "#/items: expected a JSON Schema, found 5"),
    ({"items": [5]}, "#/items/0: expected a JSON Schema, found 5"),
    ({"minItems": "1", "type": "array"}, "#/minItems: expected a whole number, found '1'"),
    ({"contains": {"type": "string"}, "maxContains": 0}, "schema: no value can satisfy it"),
    ({"contains": {"type": "string"}, "minContains": 3, "maxContains": 2}, "schema: no value can satisfy it"),
]


@pytest.mark.parametrize(("schema", "longest", "line", "losses"), READ)
def test_keywords_of_lists_become_a_shape(schema, longest, line, losses):
    """First items, other items, sizes, what is contained and what is unique, on one line."""
    reading = read_schema(schema, longest=longest)

    assert shape_line(reading.shape) == line
    assert [f"{item.path} {item.keyword}: {item.reason}" for item in reading.unsupported] == losses


@pytest.mark.parametrize(("schema", "message"), ERRORS)
def test_a_wrong_list_is_an_error(schema, message):
    """The error names the place, or says that there is no value."""
    with pytest.raises(GrammarError) as caught:
        read_schema(schema)

    assert str(caught.value) == message


def test_eight_values_are_few():
    """Pairs of eight values are written out, in order."""
    shape = read_schema({"items": {"enum": list(range(8))}, "uniqueItems": True, "minItems": 2, "maxItems": 2}).shape

    assert [option.value for option in shape.options] == [[a, b] for a in range(8) for b in range(8) if a != b]


def test_as_many_lists_as_are_written_out(monkeypatch):
    """The limit counts the items of all lists together: here 2 of one item each, and 2 of two."""
    schema = {"items": {"enum": ["a", "b"]}, "uniqueItems": True}
    monkeypatch.setattr(list_keywords, "MAX_ARRANGED", 6)
    assert len(read_schema({**schema, "title": "enough"}).shape.options) == 5
    monkeypatch.setattr(list_keywords, "MAX_ARRANGED", 5)
    assert shape_line(read_schema({**schema, "title": "too many"}).shape) == '[("a" | "b")*]'


def test_what_another_document_contains_decides_which_items_are_left():
    """Its schema cannot be put beside another's, so that other items may be anything."""
    other = {"$id": "other", "contains": {"type": "null"}, "minContains": 0}
    schema = {
        "contains": {"type": "string"},
        "minContains": 0,
        "unevaluatedItems": False,
        "allOf": [{"$ref": "other"}],
        "$defs": {"other": other},
    }
    reading = read_schema(schema)

    assert shape_line(reading.shape) == "[any*]"
    assert [(item.keyword, item.reason) for item in reading.unsupported] == [
        ("unevaluatedItems", "contains of another document decides which items are evaluated")
    ]
