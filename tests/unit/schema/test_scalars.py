"""Strings, numbers, booleans and null: what their keywords say, on one line for each schema."""

from __future__ import annotations

import pytest
from lines import shape_line

from unrender.errors import GrammarError
from unrender.schema.reader import read_schema

READ = [
    ({"type": ["null", "string"], "not": {"const": None}}, None, "string", []),
    ({"type": "boolean", "not": {"const": False}}, None, "true", []),
    ({"type": "boolean", "not": {"enum": ["true", 1]}}, None, "boolean", []),
    ({"minimum": 1, "allOf": [{"minimum": 3}, {"maximum": 9}, {"maximum": 7.5}]}, None, "number 3..7.5", []),
    ({"type": "number", "minimum": 1, "exclusiveMinimum": 1}, None, "number >1..", []),
    ({"type": "number", "minimum": 2, "exclusiveMinimum": 1}, None, "number 2..", []),
    ({"type": "number", "minimum": 1, "exclusiveMinimum": 2}, None, "number >2..", []),
    ({"type": "number", "minimum": 1, "exclusiveMinimum": True}, None, "number >1..", []),
    ({"type": "number", "minimum": 1, "exclusiveMinimum": False}, None, "number 1..", []),
    ({"type": "number", "exclusiveMinimum": True}, None, "number", []),
    ({"type": "number", "maximum": 1, "exclusiveMaximum": 1}, None, "number ..<1", []),
    ({"type": "number", "maximum": 2, "exclusiveMaximum": 3}, None, "number ..2", []),
    ({"type": "number", "maximum": 2, "exclusiveMaximum": True}, None, "number ..<2", []),
    ({"type": "number", "maximum": 1, "allOf": [{"exclusiveMaximum": 1}]}, None, "number ..<1", []),
    ({"type": "number", "minimum": 1, "allOf": [{"exclusiveMinimum": 1}]}, None, "number >1..", []),
    ({"type": "integer", "minimum": 1.5, "maximum": 3.5}, None, "integer 2..3", []),
    ({"type": "integer", "minimum": -1.5, "maximum": -0.5}, None, "integer -1..-1", []),
    ({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 4}, None, "integer 2..3", []),
    ({"type": "integer", "exclusiveMinimum": 1.5, "exclusiveMaximum": 3.5}, None, "integer 2..3", []),
    ({"type": ["integer", "null"], "minimum": 4, "maximum": 3}, None, "null", []),
    ({"type": ["integer", "null"], "minimum": 4, "maximum": 5, "multipleOf": 3}, None, "null", []),
    ({"type": ["integer", "null"], "minimum": 4, "maximum": 6, "multipleOf": 3}, None, "integer 4..6 of 3 | null", []),
    ({"type": "integer", "minimum": 3, "maximum": 3}, None, "integer 3..3", []),
    (
        {"type": "number", "maximum": 10**40},
        None,
        "number",
        ["# maximum: numbers of more than 40 digits are not compared"],
    ),
    (
        {"type": "number", "minimum": -(10**40)},
        None,
        "number",
        ["# minimum: numbers of more than 40 digits are not compared"],
    ),
    ({"type": "number", "minimum": 10**39}, None, "number 1000000000000000000000000000000000000000..", []),
    (
        {"type": "number", "minimum": -1e300},
        None,
        "number",
        ["# minimum: numbers of more than 40 digits are not compared"],
    ),
    (
        {"type": "number", "exclusiveMaximum": 1e300},
        None,
        "number",
        ["# exclusiveMaximum: numbers of more than 40 digits are not compared"],
    ),
    ({"type": "integer", "multipleOf": 2.5}, None, "integer of 5", []),
    ({"type": "integer", "multipleOf": 0.5}, None, "integer", []),
    ({"type": "integer", "multipleOf": 0.1}, None, "integer", []),
    ({"type": "integer", "multipleOf": 10000}, None, "integer of 10000", []),
    ({"type": "integer", "multipleOf": 10001}, None, "integer", ["# multipleOf: steps above 10000 are not counted"]),
    (
        {"type": "integer", "multipleOf": 100, "allOf": [{"multipleOf": 101}]},
        None,
        "integer of 100",
        ["#/allOf/0 multipleOf: steps above 10000 are not counted"],
    ),
    ({"type": "number", "multipleOf": 0.01, "allOf": [{"multipleOf": 0.1}]}, None, "number to 1 places", []),
    (
        {"type": "number", "multipleOf": 0.05},
        None,
        "number",
        ["# multipleOf: only whole steps, and steps of 0.1, 0.01 … can be counted"],
    ),
    (
        {"type": "number", "multipleOf": 0.2},
        None,
        "number",
        ["# multipleOf: only whole steps, and steps of 0.1, 0.01 … can be counted"],
    ),
    ({"type": "number", "multipleOf": 2}, None, "integer of 2", []),
    ({"type": "number", "multipleOf": 0.5, "allOf": [{"multipleOf": 3}]}, None, "integer of 3", []),
    ({"type": "number", "multipleOf": 0.1, "minimum": 1.25, "maximum": 2.75}, None, "number 1.3..2.7 to 1 places", []),
    (
        {"type": "number", "multipleOf": 0.1, "exclusiveMinimum": 1.2, "exclusiveMaximum": 2.7},
        None,
        "number >1.2..<2.7 to 1 places",
        [],
    ),
    (
        {"type": "number", "multipleOf": 0.1, "exclusiveMinimum": 1.25, "exclusiveMaximum": 2.75},
        None,
        "number 1.3..2.7 to 1 places",
        [],
    ),
    ({"type": ["number", "null"], "multipleOf": 0.1, "minimum": 1.21, "maximum": 1.29}, None, "null", []),
    ({"type": ["number", "null"], "minimum": 2, "maximum": 1}, None, "null", []),
    ({"type": ["number", "null"], "minimum": 1, "exclusiveMaximum": 1}, None, "null", []),
    ({"type": ["number", "null"], "exclusiveMinimum": 1, "maximum": 1}, None, "null", []),
    ({"type": "number", "minimum": 1, "maximum": 1}, None, "number 1..1", []),
    ({"type": "integer", "not": {"enum": [3, 5]}}, None, "integer ..2 | integer 4..4 | integer 6..", []),
    ({"type": "integer", "minimum": 1, "not": {"enum": [0, 1, 3]}}, None, "integer 2..2 | integer 4..", []),
    ({"type": "integer", "maximum": 5, "not": {"enum": [5, 7, 3]}}, None, "integer ..2 | integer 4..4", []),
    ({"type": "integer", "maximum": 0, "not": {"enum": [5, -1]}}, None, "integer ..-2 | integer 0..0", []),
    (
        {"type": "integer", "multipleOf": 2, "minimum": 2, "maximum": 8, "not": {"enum": [4]}},
        None,
        "integer 2..3 of 2 | integer 5..8 of 2",
        [],
    ),
    ({"type": "integer", "multipleOf": 5, "minimum": 1, "not": {"enum": [4, 5, 6]}}, None, "integer 7.. of 5", []),
    (
        {"type": "integer", "multipleOf": 5, "not": {"const": 10}},
        1000,
        "integer ..9 of 5 | integer 11.. of 5",
        ["# multipleOf: large steps, and steps between distant bounds, are not counted"],
    ),
    ({"type": "integer", "not": {"const": 2.5}}, None, "integer", []),
    (
        {"type": "integer", "multipleOf": 7, "minimum": 100},
        1000,
        "integer 100.. of 7",
        ["# multipleOf: large steps, and steps between distant bounds, are not counted"],
    ),
    ({"type": "integer", "multipleOf": 7, "minimum": 0}, 1000, "integer 0.. of 7", []),
    ({"type": "integer", "multipleOf": 7, "minimum": 100}, None, "integer 100.. of 7", []),
    ({"type": "number", "not": {"enum": [1, 2.5]}}, None, "number ..<1 | number >1..<2.5 | number >2.5..", []),
    (
        {"type": "number", "minimum": 0, "maximum": 2, "not": {"enum": [0, 1, 2, 3]}},
        None,
        "number >0..<1 | number >1..<2",
        [],
    ),
    ({"type": "number", "exclusiveMinimum": 0, "maximum": 2, "not": {"enum": [0]}}, None, "number >0..2", []),
    ({"type": "number", "not": {"type": "integer"}}, None, "fraction", []),
    ({"type": "number", "multipleOf": 0.1, "not": {"type": "integer"}}, None, "fraction to 1 places", []),
    (
        {"type": "number", "minimum": 0, "not": {"type": "integer"}},
        None,
        "number 0..",
        ["# not: whole numbers are not told apart from others between bounds"],
    ),
    (
        {"type": "number", "maximum": 0, "not": {"type": "integer"}},
        None,
        "number ..0",
        ["# not: whole numbers are not told apart from others between bounds"],
    ),
    (
        {"type": "number", "allOf": [{"not": {"type": "integer"}}, {"not": {"const": 0.5}}]},
        None,
        "number ..<0.5 | number >0.5..",
        ["# not: whole numbers are not told apart from others between bounds"],
    ),
    ({"type": "integer", "not": {"enum": list(range(32))}}, None, "integer ..-1 | integer 32..", []),
    (
        {"type": "integer", "not": {"enum": list(range(33))}},
        None,
        "integer",
        ["# not: no more than 32 numbers are excluded, none of them long"],
    ),
    (
        {"type": "integer", "not": {"enum": [10**40]}},
        None,
        "integer",
        ["# not: no more than 32 numbers are excluded, none of them long"],
    ),
    (
        {"type": "integer", "not": {"enum": [10**39]}},
        None,
        "integer ..999999999999999999999999999999999999999 | integer 1000000000000000000000000000000000000001..",
        [],
    ),
    ({"type": "integer", "not": {"enum": ["a", None, -3]}}, None, "integer ..-4 | integer -2..", []),
    ({"type": "string", "minLength": 2, "maxLength": 5}, None, "string{2,5}", []),
    ({"type": ["string", "null"], "minLength": 3, "maxLength": 2}, None, "null", []),
    ({"type": "string", "minLength": 3, "maxLength": 3}, None, "string{3,3}", []),
    (
        {"type": "string", "minLength": 1, "allOf": [{"minLength": 2}, {"maxLength": 4}, {"maxLength": 3}]},
        None,
        "string{2,3}",
        [],
    ),
    ({"type": "string", "minLength": 2.0}, None, "string{2,}", []),
    ({"type": "string", "minLength": -1}, None, "string", []),
    ({"type": "string", "not": {"enum": ["a", "b", 1]}}, None, 'string but "a" "b"', []),
    (
        {"type": "string", "not": {"const": "x" * 100}},
        None,
        'string but "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"',
        [],
    ),
    (
        {"type": "string", "not": {"const": "x" * 101}},
        None,
        'string but "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"',
        ["# not: words of more than 100 characters are not told apart"],
    ),
    ({"type": "string", "pattern": "^a"}, None, "string /a(?:[\\s\\S])*/", []),
    ({"type": "string", "pattern": "^a", "minLength": 0}, None, "string /a(?:[\\s\\S])*/", []),
    (
        {"type": "string", "pattern": "^a$", "not": {"const": "b"}},
        None,
        "string /a/",
        ["# not: single values cannot be excluded from a pattern"],
    ),
    ({"type": "string", "pattern": "^[a-z]*$", "minLength": 2}, None, "string /(?:[a-z]){2,}/", []),
    (
        {"type": "string", "pattern": "^[a-z]{2,9}$", "minLength": 1, "maxLength": 5},
        None,
        "string /(?:[a-z]){2,5}/",
        [],
    ),
    (
        {"type": "string", "pattern": "^[a-z]{2,9}$", "minLength": 3, "maxLength": 15},
        None,
        "string /(?:[a-z]){3,9}/",
        [],
    ),
    (
        {"type": "string", "pattern": "^[a-z]{4}$", "maxLength": 3},
        None,
        "string /(?:[a-z]){4}/",
        ["# maxLength: a pattern or format holds for the same string"],
    ),
    ({"type": "string", "pattern": "^[a-z]+$", "minLength": 3}, None, "string /(?:[a-z]){3,}/", []),
    (
        {"type": "string", "pattern": "^([a-z]x)+$", "minLength": 3},
        None,
        "string /(?:[a-z]x)+/",
        ["# minLength: a pattern or format holds for the same string"],
    ),
    ({"type": "string", "pattern": "^([a-z]x)+$", "minLength": 1}, None, "string /(?:[a-z]x)+/", []),
    (
        {"type": "string", "pattern": "^([a-z]x)*$", "minLength": 1},
        None,
        "string /(?:[a-z]x)*/",
        ["# minLength: a pattern or format holds for the same string"],
    ),
    (
        {"type": "string", "pattern": "^([a-z]x)*$", "minLength": 2},
        None,
        "string /(?:[a-z]x)*/",
        ["# minLength: a pattern or format holds for the same string"],
    ),
    (
        {"type": "string", "pattern": "^ab$", "maxLength": 1},
        None,
        "string /ab/",
        ["# maxLength: a pattern or format holds for the same string"],
    ),
    (
        {"type": "string", "pattern": "^ab$", "maxLength": 2, "minLength": 1},
        None,
        "string /ab/",
        ["# maxLength: a pattern or format holds for the same string"],
    ),
    (
        {"type": "string", "pattern": "^a*b*$", "maxLength": 2, "minLength": 2},
        None,
        "string /(?:a)*(?:b)*/",
        [
            "# minLength: a pattern or format holds for the same string",
            "# maxLength: a pattern or format holds for the same string",
        ],
    ),
    (
        {"type": "string", "pattern": "^a", "allOf": [{"pattern": "b$"}]},
        None,
        "string /a(?:[\\s\\S])*/",
        ["#/allOf/0 pattern: another pattern or format holds for the same string"],
    ),
    (
        {"type": "string", "pattern": "^a", "format": "date", "allOf": [{"format": "time"}]},
        None,
        "string /a(?:[\\s\\S])*/",
        [
            "# format: another pattern or format holds for the same string",
            "#/allOf/0 format: another pattern or format holds for the same string",
        ],
    ),
    (
        {"type": "string", "format": "uuid"},
        None,
        "string /(?:[0-9A-Fa-f]){8}(?:\\-(?:[0-9A-Fa-f]){4}){3}\\-(?:[0-9A-Fa-f]){12}/",
        [],
    ),
    ({"type": "string", "format": "int32"}, None, "string", []),
    ({"type": "string", "format": "isbn"}, None, "string", ["# format: 'isbn' is not a known format"]),
    ({"type": "string", "format": ["a"]}, None, "string", ["# format: ['a'] is not a known format"]),
    ({"type": "string", "format": 5}, None, "string", ["# format: 5 is not a known format"]),
    (
        {"type": "string", "pattern": "(?=a)"},
        None,
        "string",
        ["# pattern: a lookaround cannot be written in a grammar"],
    ),
    (
        {"type": "string", "pattern": "(?=a)", "format": "uuid"},
        None,
        "string /(?:[0-9A-Fa-f]){8}(?:\\-(?:[0-9A-Fa-f]){4}){3}\\-(?:[0-9A-Fa-f]){12}/",
        ["# pattern: a lookaround cannot be written in a grammar"],
    ),
    ({"type": "string", "maxLength": 2000}, 1000, "string", ["# maxLength: no more than 1000 repetitions are counted"]),
    ({"type": "string", "maxLength": 1000}, 1000, "string{0,1000}", []),
    ({"type": "string", "minLength": 2000}, 1000, "string", ["# minLength: no more than 1000 repetitions are counted"]),
    (
        {"type": "string", "minLength": 2000, "maxLength": 3000},
        1000,
        "string",
        [
            "# minLength: no more than 1000 repetitions are counted",
            "# maxLength: no more than 1000 repetitions are counted",
        ],
    ),
    (
        {"type": "string", "maxLength": 10**9 + 1},
        None,
        "string",
        ["# maxLength: no more than 1000000000 repetitions are counted"],
    ),
    ({"type": "string", "maxLength": 10**9}, None, "string{0,1000000000}", []),
    ({"minimum": None, "maximum": None, "minLength": None, "type": ["string", "number"]}, None, "string | number", []),
    ({"type": "number", "maximum": 1e-300}, None, "number ..1E-300", []),
    (
        {"type": "string", "pattern": "^([a-z]x)*$", "minLength": 0, "maxLength": 5},
        None,
        "string /(?:[a-z]x)*/",
        ["# maxLength: a pattern or format holds for the same string"],
    ),
    (
        {"type": "number", "multipleOf": 0.1, "not": {"enum": [1.25, 0.5]}},
        None,
        "number ..<0.5 to 1 places | number >0.5..<1.25 to 1 places | number >1.25.. to 1 places",
        [],
    ),
    ({"type": "integer", "maximum": 0, "minimum": -3, "not": {"enum": [0, -3]}}, None, "integer -2..-1", []),
    (
        {"type": "string", "pattern": "^[a-z]x$", "minLength": 1, "allOf": [{"minLength": 2}, {"maxLength": 4}]},
        None,
        "string /[a-z]x/",
        [
            "#/allOf/0 minLength: a pattern or format holds for the same string",
            "#/allOf/1 maxLength: a pattern or format holds for the same string",
        ],
    ),
    ({"type": "number", "multipleOf": 1e-20, "minimum": 5}, None, "number 5.. to 20 places", []),
]
"""A schema, up to which length strings are counted, its shape, and what is not enforced."""
ERRORS = [
    ({"type": "null", "not": {"const": None}}, "schema: no value can satisfy it"),
    ({"type": "boolean", "not": {"enum": [True, False]}}, "schema: no value can satisfy it"),
    ({"type": "integer", "minimum": 4, "maximum": 3}, "schema: no value can satisfy it"),
    (
        {"type": "number", "minimum": 10**40},
        "#/minimum: expected a number of at most 40 digits, found 10000000000000000000000000000000000000000",
    ),
    (
        {"type": "number", "maximum": -(10**40)},
        "#/maximum: expected a number of at most 40 digits, found -10000000000000000000000000000000000000000",
    ),
    ({"type": "integer", "multipleOf": 0}, "#/multipleOf: expected a positive number, found 0"),
    ({"type": "number", "multipleOf": -1}, "#/multipleOf: expected a positive number, found -1"),
    ({"type": "number", "multipleOf": True}, "#/multipleOf: expected a number, found True"),
    ({"type": "integer", "minimum": 1, "maximum": 3, "not": {"enum": [1, 2, 3]}}, "schema: no value can satisfy it"),
    ({"type": "string", "pattern": 5}, "#/pattern: expected a string, found 5"),
    ({"type": "string", "pattern": "("}, "#/pattern: pattern '(': expected ')' at character 1"),
    ({"type": "string", "minLength": "3"}, "#/minLength: expected a whole number, found '3'"),
    ({"type": "string", "minLength": True}, "#/minLength: expected a whole number, found True"),
    ({"type": "string", "maxLength": 1.5}, "#/maxLength: expected a whole number, found 1.5"),
    ({"type": "number", "minimum": True}, "#/minimum: expected a number, found True"),
    ({"type": "number", "maximum": "1"}, "#/maximum: expected a number, found '1'"),
    ({"type": "number", "maximum": float("nan")}, "#/maximum: expected a number, found nan"),
]


@pytest.mark.parametrize(("schema", "longest", "line", "losses"), READ)
def test_keywords_of_scalars_become_a_shape(schema, longest, line, losses):
    """The tightest bound counts, and what cannot be said is reported with its reason."""
    reading = read_schema(schema, longest=longest)

    assert shape_line(reading.shape) == line
    assert [f"{item.path} {item.keyword}: {item.reason}" for item in reading.unsupported] == losses


@pytest.mark.parametrize(("schema", "message"), ERRORS)
def test_a_keyword_with_a_wrong_value_is_an_error(schema, message):
    """The error names the place, what was expected and what was found."""
    with pytest.raises(GrammarError) as caught:
        read_schema(schema)

    assert str(caught.value) == message
