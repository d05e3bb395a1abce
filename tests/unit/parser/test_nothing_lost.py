"""Texts of which a part was once lost, or read otherwise when it came with the end."""

from __future__ import annotations

import json

import pytest
from properties import families
from properties.families import JSON_CALL, JSON_ENVELOPE, NAME_AND_ARGUMENTS, REQUEST
from splitting import merged

from unrender.format import Arguments, CallSyntax, Format, Slot, ToolMode
from unrender.machine.events import Event
from unrender.machine.ids import numbered_id
from unrender.messages.wire import Message
from unrender.parser.streaming import Parser, Span

WHOLE = Format(
    tools=CallSyntax(
        mode=ToolMode.JSON_NATIVE,
        call_start="<tool_call>",
        function=JSON_CALL,
        call_end="</tool_call>",
        envelope=NAME_AND_ARGUMENTS,
        whole=True,
    )
)
NOW = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'


def ways(format: Format, text: str) -> list[tuple[list[Event], Message, tuple[Span, ...]]]:
    """Return what is read of `text` in one piece, in single characters, and given with the end."""
    found = []
    for chunks, last in (([text], ""), (list(text), ""), ([], text)):
        parser = Parser(format, REQUEST, ids=numbered_id)
        events = [event for chunk in chunks for event in parser.feed(chunk)]
        events += parser.finish(text=last)
        found.append((merged(events), parser.message, parser.spans))
    return found


def test_what_follows_an_empty_call_is_read() -> None:
    """Also where a call counts only when it is whole: an empty one is none, and holds nothing back."""
    text = f"Use <tool_call></tool_call> tags. {NOW}Bye"

    for _, message, spans in ways(WHOLE, text):
        assert message.content == "Use  tags. Bye"
        assert [call.name for call in message.tool_calls] == ["now"]
        assert spans[-1].end == len(text)


@pytest.mark.parametrize("rest", ["\n", " \n ", "", "\nAnd", "</tool_call>\n\n And"])
def test_white_space_after_a_dead_call_is_text_like_the_call(rest: str) -> None:
    """However the text comes: nothing of it was read as a call."""
    text = '<tool_call>\n{"name": "now", "arguments": {"city": "a" 7}}' + rest

    first, *others = ways(JSON_ENVELOPE.format, text)

    assert first[1].content == text
    assert others == [first, first]


def test_white_space_after_a_call_that_was_cut_off_is_text() -> None:
    """A call that ends in the middle is text, with the line break after it."""
    text = NOW.removesuffix("</tool_call>") + "\n"

    first, *others = ways(JSON_ENVELOPE.format, text)

    assert first[1].content == text
    assert others == [first, first]


@pytest.mark.parametrize("separator", ["", ", "])
def test_a_value_does_not_hold_a_second_call(separator: str) -> None:
    """Also where values are raw text and the format shows one call alone."""
    tools = CallSyntax(
        mode=ToolMode.TAG_WITH_TAGGED,
        section_start="[",
        section_end="]",
        separator=separator,
        function=(Slot.NAME, Slot.ARGUMENTS),
        arguments=Arguments(
            start="(", end=")", entry=(Slot.KEY, "=", Slot.VALUE), separator=",", codec=families.RAW_BY_SCHEMA
        ),
        parallel=False,
    )
    for text in ('[now(city="x", note="3"), get_time(city="y")]', "[now(city=x, note=3), get_time(city=y)]"):
        for _, message, _ in ways(Format(tools=tools), text):
            assert [(call.name, json.loads(call.arguments)) for call in message.tool_calls] == [
                ("now", {"city": "x", "note": "3"}),
                ("get_time", {"city": "y"}),
            ]


@pytest.mark.parametrize("text", ["get_time(", "get_time(city=7", "get_timing"])
def test_what_the_prompt_has_begun_is_not_content(text: str) -> None:
    """Also when a call that the prompt has begun dies."""
    tools = CallSyntax(mode=ToolMode.TAG_WITH_JSON, call_start=">>>", function=(Slot.NAME, "(", Slot.ARGUMENTS, ")"))
    parser = Parser(Format(tools=tools), REQUEST, begun=">>>")
    parser.feed(text)
    parser.finish()

    assert parser.message.content == text
