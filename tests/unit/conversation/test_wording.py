"""Tests of the instructions that describe a call syntax."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cases import cases
from splitting import fed

from unrender import Parser
from unrender.conversation.offer import Plan
from unrender.format import Arguments, CallSyntax, Codec, Format, Slot, ToolMode
from unrender.format.data import decode
from unrender.format.declared import declared_formats
from unrender.types import Request, Tool

SCHEMA = {
    "type": "object",
    "properties": {
        "note": {"type": "string"},
        "unit": {"enum": ["C", "F"]},
        "place": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
        "days": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["unit", "place", "days"],
}
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "É!", "parameters": SCHEMA}}
SPOKEN = [item for item in declared_formats() if item.format.tools.mode is not ToolMode.NONE]


def instructions(syntax: CallSyntax, *tools: Any, **asked: Any) -> str:
    """Return the instructions that offer tools in a call syntax."""
    known = tuple(Tool(name=tool["function"]["name"]) for tool in tools)
    injected = Plan(format=Format(tools=syntax), offers=True).offer(tools, Request(tools=known, **asked))
    assert injected is not None
    return injected.text


def wrapped(function):
    return {"type": "function", "function": function}


def example_of(text):
    return text.partition("would be answered with:\n\n")[2].partition("\n\nSeveral calls")[0].partition("\n\n- ")[0]


@pytest.mark.parametrize("declared", SPOKEN, ids=lambda item: item.name)
def test_the_example_is_read_as_a_call(declared):
    """The parser of the same format reads the example as a complete call."""
    text = instructions(declared.format.tools, TOOL)
    parser = Parser(declared.format, Request(tools=(Tool(name="repeat"),)), strict=True)

    fed(parser, [example_of(text)])

    (call,) = parser.message.tool_calls
    assert json.loads(call.arguments_json) == {"words": "good evening", "times": 3}


@pytest.mark.parametrize("declared", SPOKEN, ids=lambda item: item.name)
def test_nothing_of_an_offered_tool_is_in_the_example(declared):
    """Small models copy the values of an example, so the example has no part of an offered tool."""
    offered = [TOOL, wrapped({"name": "repeat"})]
    example = example_of(instructions(declared.format.tools, *offered, named_tool="get_weather"))

    assert "get_weather_repeat" in example
    assert not any(name in example for name in SCHEMA["properties"])


@pytest.mark.parametrize("declared", SPOKEN, ids=lambda item: item.name)
def test_the_form_shows_every_marker(declared):
    """The form contains all literals around a call."""
    syntax = declared.format.tools

    text = instructions(syntax, TOOL)

    literals = [syntax.section_start, syntax.call_start, syntax.call_end, syntax.section_end, *syntax.function]
    assert [part for part in literals if not isinstance(part, Slot) and part.strip() not in text] == []


def test_schemas_are_whole():
    """The instructions contain each tool's complete schema, without escaping characters."""
    text = instructions(Format.named("qwen3").tools, TOOL, TOOL)

    assert text.count(json.dumps(TOOL, ensure_ascii=False)) == 2
    assert "É!" in text


@pytest.mark.parametrize(("parallel", "supported"), [(False, True), (True, False)])
def test_one_call_is_said_to_be_the_most(parallel, supported):
    """If only one call is allowed, the instructions state that, and don't show several."""
    syntax = CallSyntax(function=("<", Slot.NAME, ">", Slot.ARGUMENTS), parallel=supported)

    text = instructions(syntax, TOOL, parallel_tool_calls=parallel)

    assert "at most one call" in text
    assert "Several calls" not in text


def test_two_calls_are_shown_as_they_are_joined():
    """The form of several calls has one section, with a separator between calls."""
    text = instructions(Format.named("python-call-list").tools, TOOL)

    assert "<|tool_call_start|>[NAME(KEY=VALUE), NAME(KEY=VALUE)]<|tool_call_end|>" in text


@cases
def test_values_are_explained_from_the_codec(codec, said):
    """The instructions explain each spelling of values."""
    typed = "types" in codec
    end = ("</>",) if typed else ("</", Slot.KEY, ">")
    entry = ("<", Slot.KEY, *((" ", Slot.TYPE) if typed else ()), ">", Slot.VALUE, *end)
    arguments = Arguments(entry=entry, codec=decode(Codec, codec, where="codec"))
    syntax = CallSyntax(call_start="<call>", function=("[", Slot.NAME, "]", Slot.ARGUMENTS), arguments=arguments)

    assert said in instructions(syntax, TOOL)


def test_ids_counters_and_missing_arguments_are_explained():
    """Each placeholder of the form is explained."""
    function = (Slot.NAME, "#", Slot.ID, ":", Slot.INDEX, " ", Slot.ARGUMENTS)
    arguments = Arguments(when_empty="-")
    text = instructions(CallSyntax(call_start="<call>", function=function, arguments=arguments, index_start=1), TOOL)

    assert "NAME#ID:INDEX ARGUMENTS" in text
    assert "ID is a name that you give" in text
    assert "INDEX counts your calls, from 1" in text
    assert "Without arguments, write `-` in their place" in text


@cases
def test_a_call_that_is_asked_for_is_asked_for_in_words(choice, said, unsaid):
    """The instructions state which calls are required, and whether text may come before them."""
    syntax = Format.named("qwen3").tools
    other = wrapped({"name": "other", "parameters": {"properties": {"a": {}}}})

    text = instructions(syntax, other, TOOL, tool_choice=choice, named_tool="get_weather")

    assert said in text
    assert unsaid not in text


def test_an_answer_in_json_is_asked_for_in_words():
    """If an answer without calls is JSON, the instructions don't mention text to the user."""
    text = instructions(Format.named("qwen3").tools, TOOL, response_schema={})

    assert "Any other answer is JSON alone." in text
    assert "What you say to the user" not in text
