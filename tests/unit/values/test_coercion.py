"""Raw text becomes JSON of the type that a tool's schema allows."""

from __future__ import annotations

import json
import pickle

import pytest

from unrender.messages.wire import Tool
from unrender.schema.shapes import Number, Text
from unrender.values.coercion import ANY, ArgumentTypes, coerce, read_literal

SCHEMA = {
    "type": "object",
    "$defs": {"when": {"type": ["string", "null"]}, "loop": {"$ref": "#/$defs/loop"}},
    "properties": {
        "plain": {"type": "integer"},
        "union": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "ref": {"$ref": "#/$defs/when"},
        "loop": {"$ref": "#/$defs/loop"},
        "enum": {"enum": ["a", 1, None, True, 1.5]},
        "const": {"const": []},
        "nullable": {"type": "string", "nullable": True},
        "implied": {"properties": {"x": {"type": "number"}}},
        "items": {"items": {"type": "string"}},
        "anything": True,
    },
    "allOf": [{"properties": {"added": {"type": "boolean"}}}],
}
TYPES = ArgumentTypes(Tool(name="f", parameters=SCHEMA))


@pytest.mark.parametrize(
    ("key", "types"),
    [
        ("plain", {"integer"}),
        ("union", {"integer", "null"}),
        ("ref", {"string", "null"}),
        ("loop", set()),
        ("enum", {"string", "integer", "null", "boolean", "number"}),
        ("const", {"array"}),
        ("nullable", {"string", "null"}),
        ("implied", {"object"}),
        ("items", {"array"}),
        ("anything", set()),
        ("added", {"boolean"}),
        ("unheard of", set()),
    ],
)
def test_the_types_of_an_argument(key: str, types: set[str]) -> None:
    """Unions, references, enums, const and nullable are followed; nothing known means any type."""
    assert TYPES.types(key) == types


def test_without_a_tool_every_argument_is_a_string() -> None:
    """When tools are not known, raw text stays text."""
    assert ArgumentTypes(None).types("x") == {"string"}


def test_the_schema_inside_a_schema() -> None:
    """Properties and items of an argument's own schema are found."""
    assert TYPES.inner(TYPES.schema("implied"), "x") == Number()
    assert TYPES.inner(TYPES.schema("items"), None) == Text()
    assert TYPES.inner(TYPES.schema("plain"), "x") is None


@pytest.mark.parametrize(
    ("text", "types", "expected"),
    [
        ("7", ("integer",), "7"),
        ("7", ("string",), '"7"'),
        ("7.0", ("integer",), "7.0"),
        ("7.5", ("integer",), "7.5"),
        ("7", ("number",), "7"),
        ("True", ("boolean",), "true"),
        ("TRUE", ("boolean", "string"), "true"),
        ("none", ("null", "string"), "null"),
        ("", ("null", "integer"), "null"),
        ("\n", ("null", "array"), "null"),
        ("", ("null", "string"), '""'),
        ("", ("integer",), '""'),
        ("[1, 'a']", ("array",), '[1, "a"]'),
        ("[1, 2]", ("string",), '"[1, 2]"'),
        ("[1, 2]", ("array", "string"), "[1, 2]"),
        ('"quoted"', (), '"\\"quoted\\""'),
        ("two words", (), '"two words"'),
        ("007", (), '"007"'),
    ],
)
def test_raw_text_is_read_as_the_narrowest_type_that_fits(text: str, types: tuple[str, ...], expected: str) -> None:
    """What fits no allowed type comes back as what it looks like, never as an error."""
    assert coerce(text, frozenset(types) if types else ANY) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("[1]", ("array", "[1]")), ("1.5", ("number", "1.5")), ("1 2", ("", "")), ("+5", ("", ""))]
)
def test_a_literal_is_all_of_the_text(text: str, expected: tuple[str, str]) -> None:
    """A literal with something after it, or in a loose spelling, is none."""
    assert read_literal(text) == expected


def typed(schema, text, key="a"):
    return coerce(text, ArgumentTypes(Tool(name="f", parameters=schema)).types(key))


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"type": ["string", "integer"]}, {"type": "string"}]},
        {"$ref": "#/$defs/a%20b"},
        {"type": ["string", "integer"], "not": {"type": "integer"}},
        {"pattern": "^[0-9]+$"},
        {"minLength": 1},
        {"anyOf": [{"type": "integer", "minimum": 10}, {"type": "string"}]},
        {"enum": ["7", 8]},
        {"type": ["string", "integer"], "multipleOf": 2},
    ],
)
def test_the_type_is_the_one_that_the_schema_admits(schema: dict[str, object]) -> None:
    """Where only text obeys the schema, digits are text; what the grammar writes is read as it was meant."""
    assert typed({"properties": {"a": schema}, "$defs": {"a b": {"type": "string"}}}, "7") == '"7"'


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        ({"properties": {}, "additionalProperties": {"type": "string"}}, "7", '"7"'),
        ({"properties": {"a": {"type": "string"}, "b": {"pattern": "("}}}, "7", '"7"'),
        ({"properties": {"b": {"type": 5}}}, "7", "7"),
        (
            {"anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"a": {"type": "null"}}}]},
            "none",
            "null",
        ),
        (
            {"properties": {"a": {"anyOf": [{"type": "array", "maxItems": 1}, {"type": "string"}]}}},
            "[1, 2]",
            '"[1, 2]"',
        ),
        ({"properties": {"a": {"enum": [1, None]}}}, "9" * 5000, json.dumps("9" * 5000)),
        (True, "7", "7"),
        (False, "7", "7"),
    ],
)
def test_odd_schemas_still_say_what_they_can(schema: object, text: str, expected: str) -> None:
    """Other arguments have the type that the schema gives them; an invalid part leaves the others as they are."""
    assert typed(schema, text) == expected


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {"x": {"anyOf": [{"$ref": "#/$defs/x"}] * 3}}, "properties": {"a": {"$ref": "#/$defs/x"}}},
        {"anyOf": [{"properties": 5}]},
        {"properties": {"a": {"$ref": "#/anyOf/²"}}, "anyOf": [{}]},
        {"properties": {"a": {"$ref": "#/anyOf/" + "1" * 5000}}, "anyOf": [{}]},
        {"properties": 5},
        {"properties": {"a": {"enum": [{1}]}}},
    ],
)
def test_no_schema_hangs_or_raises(schema: dict[str, object]) -> None:
    """Whatever a tool's schema is, its arguments are read."""
    assert typed(schema, "7") == "7"


def test_a_tool_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The types of a second call of the same tool are there already."""
    tool = Tool(name="f", parameters={"properties": {"a": {"type": "string"}}})
    ArgumentTypes(tool).types("a")
    monkeypatch.setattr("unrender.values.coercion.read_schema", None)

    assert ArgumentTypes(tool).types("a") == {"string"}
    assert ArgumentTypes(tool).types("b") == set()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", ("object", "{}")),
        ('"a"', ("string", '"a"')),
        ("true", ("boolean", "true")),
        ("False", ("boolean", "false")),
        ("None", ("null", "null")),
        ("7", ("integer", "7")),
        ("-7", ("integer", "-7")),
        ("7e2", ("number", "7e2")),
        ("7E2", ("number", "7E2")),
        (" 7 ", ("integer", "7")),
        ("007", ("", "")),
        ("01.5", ("", "")),
        ("[007]", ("array", "[7]")),
        ("[1", ("", "")),
        ("x", ("", "")),
        ("", ("", "")),
    ],
)
def test_the_kind_of_a_literal(text: str, expected: tuple[str, str]) -> None:
    """And its JSON; numbers in a loose spelling are text, unless they are inside a list or an object."""
    assert read_literal(text) == expected


@pytest.mark.parametrize(
    ("text", "types", "expected"),
    [
        ("7.0", ("integer",), "7.0"),
        ("7.5", ("integer", "string"), '"7.5"'),
        ("7.0", ("integer", "string"), "7.0"),
        ("7", ("number", "string"), "7"),
        ("7.5", ("number", "string"), "7.5"),
        ("FALSE", ("boolean", "string"), "false"),
        ("null", ("null", "string"), "null"),
        ("true", ("integer", "string"), '"true"'),
        ("true", ("integer",), "true"),
        (" TRUE ", ("boolean", "string"), "true"),
        ("TRUE", ("integer", "string"), '"TRUE"'),
        ("NONE", ("null", "string"), "null"),
        ("NONE", ("integer", "string"), '"NONE"'),
        (" ", ("null", "string"), '" "'),
        (" ", ("null",), "null"),
        ('"a"', ("integer",), '"\\"a\\""'),
        ("é", ("string",), '"é"'),
        ("é", ("integer",), '"é"'),
    ],
)
def test_text_that_may_be_several_things(text: str, types: tuple[str, ...], expected: str) -> None:
    """What fits is taken; else a string where one is allowed, else what the text looks like."""
    assert coerce(text, frozenset(types)) == expected


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ({"properties": {"a": {}, "b": {}}, "additionalProperties": False}, ("a", "b")),
        ({"properties": {"a": {}}}, ("a",)),
        ({"properties": {"a": {}}, "additionalProperties": {"type": "string"}}, ()),
        ({"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}, "a": {}}}]}, ("a", "b")),
        ({"anyOf": [{"properties": {"a": {}}}, {"type": "string"}]}, ()),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {}}}}}, ("a",)),
        ({"properties": 5}, ()),
    ],
)
def test_the_names_of_all_arguments(schema: dict[str, object], names: tuple[str, ...]) -> None:
    """As far as the schema says which there are; none where there may be others."""
    assert ArgumentTypes(Tool(name="f", parameters=schema)).names == names
    assert ArgumentTypes(None).names == ()


def test_the_narrowest_reading_that_a_schema_admits_is_taken() -> None:
    """A number before a word, and a word before text."""
    for kinds, text, value in (
        (["string", "integer"], "7", "7"),
        (["string", "array"], "[1]", "[1]"),
        (["string", "null"], "None", "null"),
        (["string", "boolean"], "True", "true"),
        (["string", "integer"], "7.5", '"7.5"'),
    ):
        assert typed({"properties": {"a": {"type": kinds}}}, text) == value


def test_text_is_written_as_it_is() -> None:
    """No character of it is escaped that need not be, whatever the schema says."""
    for schema in ({"type": "string"}, {"type": ["string", "null"]}, {"type": "integer"}, {"minLength": 1}):
        assert typed({"properties": {"a": schema}}, "é") == '"é"'


def test_a_list_that_is_too_deep_to_be_judged_is_not_nothing() -> None:
    """Where the stack has no room left, its text is what the schema admits."""

    def below(depth: int) -> str:
        if depth:
            return below(depth - 1)
        return str(typed({"properties": {"a": {"type": ["string", "null"]}}}, "[" * 500 + "]" * 500))

    assert below(500).startswith('"[[[')


def test_a_shape_without_a_tool() -> None:
    """Every argument is text, and nothing is inside."""
    none = ArgumentTypes(None)

    assert none.schema("x") == Text()
    assert none.inner(Text(), "y") is None
    assert none.types_of(None) == ANY
    assert none.types_of(Text()) == {"string"}
    assert TYPES.types_of(Number()) == {"number"}


def test_types_of_many_arguments_are_forgotten() -> None:
    """A model that invents names does not fill the memory."""
    types = ArgumentTypes(Tool(name="f", parameters=SCHEMA))
    for at in range(600):
        types.types(f"x{at}")

    assert types._known is not None
    assert len(types._known._types) <= 257
    assert types.types("plain") == {"integer"}


def test_equal_tools_share_what_was_read_of_them() -> None:
    """A copy of a parser takes the tool along, not what was read of it."""
    types, others = (ArgumentTypes(Tool(name="f", parameters=SCHEMA)) for _ in range(2))

    assert types._known is others._known
    assert pickle.loads(pickle.dumps(types))._arguments is None
