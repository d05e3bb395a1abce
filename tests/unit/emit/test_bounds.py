"""Emission is bounded: what a request may cost, in characters and in parts, whatever the tools are."""

from __future__ import annotations

import json

import pytest

from unrender.emit.answer import Answer
from unrender.format import Arguments, Codec, Format, Reasoning, ReasoningMode, Slot, Strings, ToolMode, Tools, Turn
from unrender.messages import Request, Tool

TAGGED = Tools(
    mode=ToolMode.TAG_WITH_TAGGED,
    call_start="<tool_call>\n",
    call_end="</tool_call>",
    separator="\n",
    function=("<function=", Slot.NAME, ">\n", Slot.ARGUMENTS, "</function>\n"),
    arguments=Arguments(
        entry=("<parameter=", Slot.KEY, ">\n", Slot.VALUE, "\n</parameter>\n"), codec=Codec(strings=Strings.RAW)
    ),
)
PYTHONIC = Tools(
    mode=ToolMode.TAG_WITH_TAGGED,
    section_start="[",
    section_end="]",
    separator=", ",
    function=(Slot.NAME, Slot.ARGUMENTS),
    arguments=Arguments(
        start="(",
        end=")",
        entry=(Slot.KEY, "=", Slot.VALUE),
        separator=", ",
        codec=Codec(strings=Strings.RAW),
    ),
)
JSON = Tools(
    mode=ToolMode.JSON_NATIVE,
    call_start="<tool_call>\n",
    call_end="\n</tool_call>",
    function=('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"),
)
SYNTAXES = pytest.mark.parametrize("syntax", [TAGGED, PYTHONIC, JSON], ids=["tagged", "pythonic", "json"])
PROPERTIES = {
    "city": {"type": "string"},
    "days": {"type": "integer", "minimum": 1, "maximum": 14},
    "unit": {"enum": ["celsius", "fahrenheit"]},
    "tags": {"type": "array", "items": {"type": "string"}},
    "place": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}},
    "exact": {"type": "boolean"},
}


def answer(syntax: Tools, *tools: Tool) -> Answer:
    """Return the answers of a format with reasoning, content and these calls."""
    reasoning = Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>\n", end="\n</think>")
    turn = Turn(end="<|im_end|>\n", reasoning_to_content="\n\n", content_to_tools="\n", reasoning_to_tools="\n\n")
    return Answer(format=Format(turn=turn, reasoning=reasoning, tools=syntax), request=Request(tools=tools))


def ordinary(count: int) -> list[Tool]:
    """Return tools with six arguments each, half of them required in every other tool."""
    return [
        Tool(
            name=f"tool_{number}",
            parameters={
                "type": "object",
                "properties": {f"{name}_{number}": schema for name, schema in PROPERTIES.items()},
                "required": [f"city_{number}", f"days_{number}"] if number % 2 else [],
            },
        )
        for number in range(count)
    ]


@SYNTAXES
def test_no_dialect_is_much_longer_than_another(syntax):
    """A structural tag has no rules to share, so it is EBNF where a tree would repeat itself."""
    asked = answer(syntax, *ordinary(25))
    plain = len(asked.gbnf())

    lengths = {"lark": len(asked.lark()), "structural tag": len(json.dumps(asked.structural_tag()))}

    assert {dialect: length for dialect, length in lengths.items() if length > 4 * plain} == {}


def test_a_short_structural_tag_is_a_tree():
    """What is short stays in the engine's own words."""
    written = answer(JSON, *ordinary(1)).structural_tag()

    assert written["format"]["type"] == "or"


@SYNTAXES
@pytest.mark.parametrize("write", [Answer.gbnf, Answer.lark, Answer.structural_tag], ids=lambda write: write.__name__)
def test_length_is_linear_in_the_tools(syntax, write):
    """Twice the tools take about twice the characters."""
    once, twice = (len(json.dumps(write(answer(syntax, *ordinary(count))))) for count in (20, 40))

    assert twice < 2.3 * once


@SYNTAXES
@pytest.mark.parametrize("write", [Answer.gbnf, Answer.lark, Answer.structural_tag], ids=lambda write: write.__name__)
@pytest.mark.parametrize("required", [True, False], ids=["required", "optional"])
def test_length_is_linear_in_the_properties(syntax, write, required):
    """Twice the arguments take about twice the characters, also where each may be left out."""

    def tool(count: int) -> Tool:
        properties = {f"p{number}": {"type": "string"} for number in range(1000, 1000 + count)}
        return Tool(name="f", parameters={"properties": properties, "required": list(properties) if required else []})

    once, twice = (len(json.dumps(write(answer(syntax, tool(count))))) for count in (50, 100))

    assert twice < 2.3 * once


@SYNTAXES
@pytest.mark.parametrize("name", PROPERTIES)
def test_any_argument_can_be_drawn(syntax, name):
    """Lists and objects that can be written in several ways are drawn, and nothing is taken apart without end."""
    tool = Tool(name="f", parameters={"properties": {name: PROPERTIES[name]}, "required": [name]})
    drawn = [answer(syntax, tool).draw(seed).text for seed in range(20)]

    assert any("f" in text for text in drawn)
