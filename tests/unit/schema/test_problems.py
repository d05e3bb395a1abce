"""What is said of values that do not obey a schema."""

from __future__ import annotations

import pytest

from unrender import ChatTemplate, ToolCall
from unrender.limits import MAX_LISTED
from unrender.schema.problems import problems_of
from unrender.schema.reader import read_schema

TREE = {
    "$ref": "#/$defs/node",
    "$defs": {"node": {"properties": {"n": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}}}},
}


@pytest.mark.parametrize(
    ("schema", "value", "problems"),
    [
        ({"type": "string"}, "a", ()),
        ({"type": "string"}, 5, ("$: expected a string, found 5",)),
        ({"enum": ["a", "b"]}, "c", ('$: expected one of ["a", "b"], found "c"',)),
        ({"const": {"a": 1}}, {"a": 2}, ('$: expected {"a": 1}, found {"a": 2}',)),
        ({"type": ["integer", "null"]}, "x", ('$: expected an integer or null, found "x"',)),
        ({"type": "integer", "minimum": 1, "maximum": 5}, 7, ("$: expected an integer from 1 to 5, found 7",)),
        ({"type": "integer", "multipleOf": 5}, 7, ("$: expected an integer, a multiple of 5, found 7",)),
        ({"type": "integer"}, 2.5, ("$: expected an integer, found 2.5",)),
        ({"type": "number", "minimum": 1}, 0.5, ("$: expected a number at least 1, found 0.5",)),
        ({"type": "string", "maxLength": 2}, "abc", ('$: expected a string of at most 2 characters, found "abc"',)),
        ({"pattern": "^a+$", "type": "string"}, "b", ('$: expected a string that matches the pattern, found "b"',)),
        ({"pattern": "^(?=a)", "type": "string"}, "b", ()),
        ({"type": "boolean"}, "true", ('$: expected true or false, found "true"',)),
        (
            {"items": {"type": "null"}, "minItems": 3},
            [None, 0],
            ("$: expected at least 3 items, found 2", "$[1]: expected null, found 0"),
        ),
        (
            {"properties": {"a": {"properties": {"b c": {"type": "string"}}}}, "required": ["d"]},
            {"a": {"b c": 1}},
            ("$: expected a property 'd', found none", '$.a["b c"]: expected a string, found 1'),
        ),
        (
            {"properties": {"a": {}}, "additionalProperties": False},
            {"b": 1},
            ("$.b: expected one of the properties ['a'], found 'b'",),
        ),
        ({"additionalProperties": {"type": "integer"}}, {"b": "x"}, ('$.b: expected an integer, found "x"',)),
        (
            {
                "anyOf": [
                    {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
                    {"properties": {"b": {}}, "required": ["b"]},
                ]
            },
            {"c": 1},
            ('$: expected an object as the schema describes it, found {"c": 1}',),
        ),
        (TREE, {"next": {"next": {"n": "x"}}}, ('$.next.next.n: expected an integer, found "x"',)),
        ({"items": {"type": "null"}}, "no", ('$: expected a list as the schema describes it, found "no"',)),
        ({"contains": {"type": "null"}}, [1], ("$: expected a list as the schema describes it, found [1]",)),
    ],
)
def test_problems(schema, value, problems):
    """Each problem is named with its place, what is expected there, and what was found."""
    assert problems_of(read_schema(schema), value) == problems


def test_problems_are_bounded():
    """A long list of wrong values gives as many problems as people read."""
    assert len(problems_of(read_schema({"items": {"type": "null"}}), [0] * 1000)) == MAX_LISTED


def test_problems_of_a_call():
    """A turn knows the tools of its calls: other tools and arguments that are no JSON are problems as well."""
    tool = {"name": "f", "parameters": {"properties": {"n": {"type": "integer"}}, "required": ["n"]}}
    template = ChatTemplate.from_string("{{ messages[0].content }}")
    turn = template.turn(tools=[tool])

    def problems(name, arguments):
        return turn.problems(ToolCall(name=name, arguments=arguments, id="1"))

    assert problems("f", '{"n": 1}') == ()
    assert problems("f", "{}") == ("$: expected a property 'n', found none",)
    assert problems("f", '{"n": ') == ("$: expected JSON, found '{\"n\": '",)
    assert problems("g", "{}") == ("expected a call of one of ['f'], found 'g'",)
