"""Raw text becomes JSON of the type that a tool schema allows, and values are read as in the rows of `tests/corpus/values.jsonl`."""

from __future__ import annotations

import pickle

import pytest
from cases import cases
from tables import table
from value_rows import given, value_rows

from unrender.schema.shapes import Number, Text
from unrender.types import Tool
from unrender.values.coercion import ANY, ArgumentTypes, coerce

SCHEMA = table("test_coercion")["SCHEMA"]
TYPES = ArgumentTypes(Tool(name="f", parameters=SCHEMA))


@cases
def test_the_types_of_an_argument(key: str, types: list[str]) -> None:
    """Unions, references, enums, const and nullable are resolved. Unknown types mean any type."""
    assert sorted(TYPES.types(key)) == types


def test_without_a_tool_every_argument_is_a_string() -> None:
    """Without tools, raw text stays text."""
    assert ArgumentTypes(None).types("x") == {"string"}


def test_the_schema_inside_a_schema() -> None:
    """Properties and items of an argument's own schema are found."""
    assert TYPES.inner(TYPES.schema("implied"), "x") == Number()
    assert TYPES.inner(TYPES.schema("items"), None) == Text()
    assert TYPES.inner(TYPES.schema("plain"), "x") is None


def typed(schema, text, key="a"):
    return coerce(text, ArgumentTypes(Tool(name="f", parameters=schema)).types(key))


def test_a_tool_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The types for a second call of the same tool are cached."""
    tool = Tool(name="f", parameters={"properties": {"a": {"type": "string"}}})
    ArgumentTypes.of(tool).types("a")
    monkeypatch.setattr("unrender.schema.reader.read_schema", None)

    assert ArgumentTypes.of(tool).types("a") == {"string"}
    assert ArgumentTypes.of(tool).types("b") == set()


@cases
def test_the_names_of_all_arguments(schema: dict[str, object], names: list[str]) -> None:
    """The names are those in the schema, or none if it allows others."""
    assert ArgumentTypes(Tool(name="f", parameters=schema)).names == tuple(names)
    assert ArgumentTypes(None).names == ()


def test_a_list_that_is_too_deep_to_be_judged_is_not_nothing() -> None:
    """If no stack space is left, a list's text is its value, provided that the schema allows a string."""

    def below(depth: int) -> str:
        if depth:
            return below(depth - 1)
        return str(typed({"properties": {"a": {"type": ["string", "null"]}}}, "[" * 500 + "]" * 500))

    assert below(500).startswith('"[[[')


def test_a_shape_without_a_tool() -> None:
    """Every argument is text, without inner schemas."""
    none = ArgumentTypes(None)

    assert none.schema("x") == Text()
    assert none.inner(Text(), "y") is None
    assert none.types_of(None) == ANY
    assert none.types_of(Text()) == {"string"}
    assert TYPES.types_of(Number()) == {"number"}


def test_types_of_many_arguments_are_forgotten() -> None:
    """Invented names don't fill the memory."""
    types = ArgumentTypes(Tool(name="f", parameters=SCHEMA))
    for at in range(600):
        types.types(f"x{at}")

    assert len(types._types) <= 257
    assert types.types("plain") == {"integer"}


def test_equal_tools_share_what_was_read_of_them() -> None:
    """A copy of a parser includes the tool, but not its cached types."""
    types, others = (ArgumentTypes.of(Tool(name="f", parameters=dict(SCHEMA))) for _ in range(2))

    assert types is others
    assert pickle.loads(pickle.dumps(types))._types == {}


SLICES = 12


@pytest.mark.parametrize("at", range(SLICES))
def test_a_value_is_read_as_the_row_says(at: int) -> None:
    """Each function and scanner gives the row's result, for every chunking, from any place, and in a copy."""
    rows = value_rows()[at::SLICES]

    assert [row for row in rows if given(row) != row["gives"]] == []
