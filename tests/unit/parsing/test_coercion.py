"""Raw text becomes JSON of the type that a tool's schema allows."""

from __future__ import annotations

import pytest

from unrender.messages import Tool
from unrender.parsing.coercion import ANY, ArgumentTypes, coerce, read_literal

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
    assert TYPES.inner(TYPES.schema("implied"), "x") == {"type": "number"}
    assert TYPES.inner(TYPES.schema("items"), None) == {"type": "string"}
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
    """A literal with something behind it, or in a loose spelling, is none."""
    assert read_literal(text) == expected
