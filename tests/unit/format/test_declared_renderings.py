"""Tests of writing and parsing answers in every call syntax of the declared formats."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from answers import said_in
from splitting import fed

from unrender import Message, Parser
from unrender.format import CallSyntax, Format, Slot, ToolMode
from unrender.format.declared import declared_formats
from unrender.types import Request, Tool

PROPERTIES = {"city": {"type": "string"}, "days": {"type": "integer"}, "on": {"type": "boolean"}}


def _tool(name: str, properties: dict[str, Any]) -> Tool:
    return Tool(name=name, parameters={"type": "object", "properties": properties})


REQUEST = Request(tools=(_tool("get_weather", PROPERTIES), _tool("ping", {})))
Called = tuple[str, dict[str, Any], str]
PARIS: Called = ("get_weather", {"city": "Paris", "days": 3}, "call00001")
ROME: Called = ("get_weather", {"city": "Città di Roma", "on": False}, "call00002")
SHAPES: dict[str, tuple[str, str, tuple[Called, ...]]] = {
    "a call": ("", "", (PARIS,)),
    "no arguments": ("", "", (("ping", {}, "call00001"),)),
    "two calls": ("", "", (PARIS, ROME)),
    "after content": ("Let me look.", "", (PARIS,)),
    "after reasoning": ("", "Weather.\n\n1. a < b", (PARIS,)),
    "content after reasoning": ("It rains.", "Weather.", ()),
}


def syntaxes() -> Iterator[tuple[str, Format]]:
    """Yield each declared format once per call syntax, with that syntax as its own."""
    for declared in declared_formats():
        found = declared.format
        own = [found.tools] if found.tools.mode is not ToolMode.NONE else []
        for at, tools in enumerate((*own, *found.tolerated)):
            yield f"{declared.name} {at}", _written_in(found, tools)


def _written_in(format: Format, tools: CallSyntax) -> Format:
    return replace(format, tools=tools, tolerated=tuple(other for other in format.tolerated if other != tools))


SYNTAXES = dict(syntaxes())


def read(format: Format, chunks: list[str]) -> Message:
    parser = Parser(format, REQUEST)
    fed(parser, chunks)
    return parser.message


@pytest.mark.few(120)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", SYNTAXES)
def test_what_a_declared_format_writes_is_read(name: str, shape: str) -> None:
    """An answer in the format is parsed correctly, as a whole and character by character."""
    format, (content, reasoning, calls) = SYNTAXES[name], SHAPES[shape]
    calls = calls if format.tools.parallel else calls[:1]
    if reasoning and not format.reasoning.end:
        pytest.skip("the format declares no reasoning")
    text = said_in(format, content=content, reasoning=reasoning, calls=calls)

    for chunks in ([text], list(text)):
        message = read(format, chunks)
        found = [(call.name, json.loads(call.arguments_json), call.status) for call in message.tool_calls]

        assert found == [(name, values, "complete") for name, values, _ in calls], text
        assert (message.content.strip(), message.reasoning.strip()) == (content, reasoning), text
        if Slot.ID in format.tools.function:
            assert [call.id for call in message.tool_calls] == [id for *_, id in calls]
