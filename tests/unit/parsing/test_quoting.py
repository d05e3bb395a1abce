"""Special tokens and equal text are told apart where the caller knows which is which."""

from __future__ import annotations

from unrender.format import CallSyntax, Envelope, Format, Reasoning, ReasoningMode, Slot, ToolMode
from unrender.messages import Request, Tool
from unrender.parsing.parser import Parser

FORMAT = Format(
    reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end="</think>"),
    tools=CallSyntax(
        mode=ToolMode.JSON_NATIVE,
        call_start="<tool_call>",
        function=('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"),
        call_end="</tool_call>",
        envelope=Envelope(name_field=("name",), args_field=("arguments",)),
    ),
    preserved_tokens=("<think>", "</think>", "<tool_call>", "</tool_call>"),
)
CALL = '{"name": "now", "arguments": {"note": "</tool_call>"}}'


def parser() -> Parser:
    return Parser(FORMAT, Request(tools=(Tool(name="now"),)))


def test_quoted_markers_stay_text() -> None:
    """A marker spelled out in ordinary text is content, however it is cut."""
    for size in (1, 3, 100):
        reader = parser()
        text = f"Write <think> or <tool_call>{CALL}</tool_call>."
        for i in range(0, len(text), size):
            reader.feed(text[i : i + size], special=False)
        reader.finish()

        assert reader.message.content == text
        assert reader.message.tool_calls == ()


def test_special_tokens_are_markers() -> None:
    """The same text as special tokens is a call, and ordinary text inside it stays an argument."""
    reader = parser()
    reader.feed("<tool_call>", special=True)
    reader.feed(CALL, special=False)
    reader.feed("</tool_call>", special=True)
    reader.finish()

    assert [call.arguments for call in reader.message.tool_calls] == ['{"note": "</tool_call>"}']


def test_half_a_token_is_not_lost() -> None:
    """What was held back because a token might come of it is given out at the end."""
    reader = parser()
    reader.feed("a <tool", special=False)
    reader.finish()

    assert reader.message.content == "a <tool"


def test_copies_are_independent() -> None:
    """A copy goes on from the same state, quotations included."""
    reader = parser()
    reader.feed("<tool_", special=False)
    twin = reader.copy()
    twin.feed("call>", special=False)
    twin.finish()
    reader.finish()

    assert (reader.message.content, twin.message.content) == ("<tool_", "<tool_call>")
