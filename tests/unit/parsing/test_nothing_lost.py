"""Texts of which a part was once lost, or read otherwise when it came with the end."""

from __future__ import annotations

import pytest
from properties.families import JSON_CALL, JSON_ENVELOPE, NAME_AND_ARGUMENTS, REQUEST
from splitting import merged

from unrender.format import CallSyntax, Format, ToolMode
from unrender.messages import Message
from unrender.parsing.ids import numbered_id
from unrender.parsing.parser import Parser, Span

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


def ways(format: Format, text: str) -> list[tuple[object, Message, tuple[Span, ...]]]:
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
