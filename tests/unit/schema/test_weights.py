"""Weights of shapes are measured before writing, and a shape that is too heavy is widened."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from cases import cases
from lines import shape_line

from unrender import GrammarError, Limits
from unrender.answer.build import calls_in_syntax
from unrender.format import CallSyntax, Format, Slot
from unrender.grammar import Grammar
from unrender.grammar.expansion import Values, expand
from unrender.limits import STANDARD
from unrender.nodes import JsonValue, Sequence
from unrender.schema import Reading
from unrender.schema.reader import read_schema, within
from unrender.schema.shapes import Array, Integer, Null, Object, Property, Reference, Shape, Text, Union
from unrender.schema.weights import Scale, Weight
from unrender.types import Tool

NULL, TEXT = Null(), Text()


def reading(shape: Shape, **definitions: Shape) -> Reading:
    return Reading(shape=shape, definitions=definitions, unsupported=())


@cases
def test_a_schema_is_weighed(schema: Any, parts: int, characters: int, depth: int) -> None:
    """The weight counts parts, characters and levels of everything below."""
    assert read_schema(schema).weight == Weight(parts, characters, depth)


def test_a_shared_shape_counts_as_often_as_it_is_used() -> None:
    """A shared shape counts each time, but weighing takes only one step per place."""
    shape: Shape = NULL
    for _ in range(60):
        shape = Object(properties=(Property("a", shape), Property("b", shape)))
    scale = Scale()
    weight = scale.weigh(shape)
    steps = len(scale.kept)

    assert weight == Weight(2**61 - 1, 2 * (2**60 - 1), 60)
    assert steps <= 2 * 61


def test_definitions_are_weighed_beside() -> None:
    """Definitions add no level, and the sum is stored with the reading."""
    found = reading(Array(items=Reference("r")), r=Array(items=Array(items=NULL)), s=Text(excluded=frozenset(["ab"])))

    assert Scale().whole(found.shape, found.definitions) == Weight(26, 2, 2)
    assert found.weight == Weight(26, 2, 2)


@pytest.mark.few(2)
@cases
def test_what_ranges_expand_to_is_weighed(schema: dict[str, Any]) -> None:
    """A thousand bounds are small to read but large to write: too much for one tool. A dozen aren't."""

    def reasons(times: int) -> list[str]:
        properties = {f"p{i}": schema for i in range(times)}
        found: list[str] = []
        within(read_schema({"type": "object", "properties": properties}), STANDARD, lambda _, why: found.append(why))
        return found

    assert reasons(12) == []
    assert all("parts, more than 50000" in why for why in reasons(1500))
    assert reasons(1500)


def test_what_is_too_much_is_not_written_to_be_weighed() -> None:
    """Ranges are only written until the limit is reached."""
    shapes: tuple[Shape, ...] = tuple(Integer(minimum=-(10**16) - i, maximum=10**16 + i) for i in range(5000))
    scale = Scale()

    assert scale.whole(Union(shapes), {}).parts > STANDARD.grammar_parts
    assert scale.ranges < 250_000


def test_a_weight_is_put_above_another() -> None:
    """A weight above another has one more level."""
    assert Weight(2, 3, 1).above(Weight(4, 5, 1)) == Weight(6, 8, 2)
    assert Weight(2, 3, 5).above(Weight(4, 5, 1)) == Weight(6, 8, 5)


@cases
def test_what_is_too_much_is_told(weight: list[int], reason: str) -> None:
    """Depth is checked first, then parts, then characters."""
    assert Weight(*weight).too_much(Limits(tool_parts=10, tool_characters=20, tool_depth=3)) == reason


@cases
def test_a_tool_is_wider_where_it_is_too_much(
    schema: Any, limits: dict[str, int], line: str, parts: int, reported: list[list[str]]
) -> None:
    """Arguments that are too heavy by themselves are widened first, then all arguments."""
    losses: list[list[str]] = []
    found, weight = within(read_schema(schema), Limits(**limits), lambda *loss: losses.append([*loss]))

    assert (shape_line(found.shape), weight.parts, losses) == (line, parts, reported)


def expanded(*tools: Tool, limits: Limits = STANDARD, twice: bool = False, values: Values = Values.SPELLED) -> object:
    function = (Slot.NAME, Slot.ARGUMENTS)
    syntaxes = (CallSyntax(function=function), CallSyntax(function=(*function, "!")))
    call, other = (replace(calls_in_syntax(Format(), syntax), tools=tools) for syntax in syntaxes)
    return expand(Grammar(Sequence((call, other)) if twice else call), values, limits)


def tool(name: str, count: int) -> Tool:
    """Return a tool with `count` arguments. Each costs two characters and a part; the tool itself costs one part."""
    properties = {f"p{at}": {"type": "null"} for at in range(count)}
    return Tool(name=name, parameters={"type": "object", "properties": properties, "additionalProperties": False})


def test_all_tools_together_are_bounded() -> None:
    """The error has the total, the limit and the largest tool."""
    small, large = tool("small", 2), tool("large", 5)

    assert expanded(small, large, limits=Limits(grammar_parts=9)).weight == Weight(9, 14)  # type: ignore[attr-defined]
    with pytest.raises(GrammarError) as caught:
        expanded(small, large, limits=Limits(grammar_parts=8))
    assert str(caught.value) == (
        "tools: the first 2 take 9 parts, more than 8: offer fewer tools, or simplify them; "
        "the largest is 'large', at #/properties"
    )
    with pytest.raises(GrammarError, match="the first 2 take 14 characters, more than 13"):
        expanded(small, large, limits=Limits(grammar_characters=13))


def test_a_tool_counts_once_however_often_it_is_called() -> None:
    """The same tool in another syntax costs nothing extra."""
    assert expanded(tool("a", 2), limits=Limits(grammar_parts=3), twice=True).weight == Weight(3, 4)  # type: ignore[attr-defined]


def test_a_response_is_bounded_as_a_tool_is() -> None:
    """A response that is too heavy is an error, since it can't be widened."""
    schema = {"type": "object", "properties": {"a": {"type": "null"}}}
    grammar = Grammar(JsonValue(schema))

    assert expand(grammar, Values.SPELLED, Limits(tool_parts=2)).unsupported == ()
    with pytest.raises(GrammarError) as caught:
        expand(grammar, Values.SPELLED, Limits(tool_parts=1))
    assert str(caught.value) == "response schema: #: it has 2 parts, more than 1; simplify it"
