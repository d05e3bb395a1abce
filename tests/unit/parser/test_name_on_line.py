"""Calls that no marker shows: after content, a line with a tool's name and its arguments after it begin one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from splitting import splits

from unrender.format import CallSyntax, Format, Reasoning, ReasoningMode, Slot, ToolMode, TurnTexts
from unrender.messages.wire import Request, ToolChoice, read_tools
from unrender.parser.streaming import Parser

NAMES = ("get", "get_weather")
REQUEST = Request(
    tools=read_tools([{"type": "function", "function": {"name": name, "parameters": {}}} for name in NAMES])
)
FORMAT = Format(
    turn=TurnTexts(end="\n<end>", content_to_tools="\n"),
    tools=CallSyntax(mode=ToolMode.TAG_WITH_JSON, function=(Slot.NAME, "\n", Slot.ARGUMENTS), separator="\n"),
)

ANSWERS: dict[str, tuple[str, tuple[str, list[str]]]] = {
    "after content": ("Let me look.\nget_weather\n{}<end>", ("Let me look.", ["get_weather"])),
    "the shorter name": ("Let me look.\nget\n{}\n<end>", ("Let me look.", ["get"])),
    "two": ("A.\n\nB.\nget\n{}\nget_weather\n{}\n<end>", ("A.\n\nB.", ["get", "get_weather"])),
    "empty lines before it": ("A.\n\n\nget\n{}", ("A.\n\n", ["get"])),
    "no arguments": ("These are\nget\nget_weather\nand no more.", ("These are\nget\nget_weather\nand no more.", [])),
    "a longer word": ("A.\nget_weathers\n{}", ("A.\nget_weathers\n{}", [])),
    "within a line": ("Use get_weather\n{}", ("Use get_weather\n{}", [])),
    "a line break at the end": ("A.\n", ("A.", [])),
    "a name at the end": ("A.\nget", ("A.\nget", [])),
}


def read(chunks: list[str], request: Request = REQUEST, format: Format = FORMAT) -> tuple[str, list[str]]:
    parser = Parser(format, request)
    for chunk in chunks:
        parser.feed(chunk)
    parser.finish()
    return parser.message.content, [call.name for call in parser.message.tool_calls]


@pytest.mark.parametrize(("text", "said"), ANSWERS.values(), ids=ANSWERS)
def test_a_line_with_a_tools_name_begins_a_call(text, said):
    """What is not a name, or has no arguments after it, is text; nothing is lost at any chunking."""
    for chunks in splits(text):
        assert read(list(chunks)) == said


def test_a_call_may_stand_right_after_a_marker_that_says_nothing():
    """A closer of reasoning that nothing has opened is dropped, and what follows begins the answer."""
    reasoning = Reasoning(mode=ReasoningMode.FORCED_OPEN, start="<r>", end="</r>", empty="</r>")

    for chunks in splits("</r>get\n{}"):
        assert read(list(chunks), format=replace(FORMAT, reasoning=reasoning)) == ("", ["get"])


def test_less_of_the_layout_before_a_call_is_enough():
    """One line break of the two that the format writes shows a line; the white space after them does not."""
    apart = replace(FORMAT, turn=TurnTexts(end="\n<end>", content_to_tools="\n\n"))
    indented = replace(FORMAT, turn=TurnTexts(end="\n<end>", content_to_tools="\n "))

    for chunks in splits("A.\nget\n{}"):
        assert read(list(chunks), format=apart) == ("A.", ["get"])
    for chunks in splits("Use get\n{}"):
        assert read(list(chunks), format=indented) == ("Use get\n{}", [])


def test_only_the_tools_of_the_request_count():
    """A parser for other tools, for the named one, or for tools that nobody knows, looks for their names alone."""
    text = ["A.\nget\n{}"]
    named = replace(REQUEST, tool_choice=ToolChoice.NAMED, named_tool="get_weather")

    assert read(text, named) == ("A.\nget\n{}", [])
    assert read(text, Request(tools=None)) == ("A.\nget\n{}", [])
    assert read(text, replace(REQUEST, tool_choice=ToolChoice.NONE)) == ("A.\nget\n{}", [])
    assert read(text) == ("A.", ["get"])


def test_whole_calls_may_follow_each_other_with_nothing_between():
    """Only where an answer begins is a name without a marker a call: the next one is looked for right after the first."""
    tools = CallSyntax(mode=ToolMode.TAG_WITH_JSON, function=(Slot.NAME, Slot.ARGUMENTS), whole=True)
    format = Format(tools=tools)

    for chunks in splits("get{}get_weather{}get{"):
        assert read(list(chunks), format=format) == ("get{", ["get", "get_weather"])
