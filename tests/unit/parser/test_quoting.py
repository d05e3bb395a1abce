"""Special tokens and equal text are told apart where the caller knows which is which."""

from __future__ import annotations

from unrender import ArgumentsText, ContentText, Malformed, MessageFinished, Parser, Request, Tool, ToolCallStarted
from unrender.format import CallSyntax, Format, Reasoning, ReasoningMode, Slot
from unrender.parser.quoting import Quoter

FORMAT = Format(
    reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end="</think>"),
    tools=CallSyntax(
        call_start="<tool_call>",
        function=('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"),
        call_end="</tool_call>",
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


def quoter() -> Quoter:
    """Return a quoter that has quoted one token and waits for the rest of another."""
    made = Quoter(("<a>", "[b]"))
    assert made.ordinary("x<a>y[b") == f"x{STAND_IN}a>y"
    return made


STAND_IN = chr(0x10F000)
"""What stands for the first of the characters with which special tokens begin."""


def test_what_is_quoted_goes_on_over_chunks() -> None:
    """Half a token waits; events get their characters back."""
    made = quoter()

    assert made.ordinary("]") == f"{chr(0x10F001)}b]"
    assert made.unquote(ContentText(f"x{STAND_IN}a>{chr(0x10F001)}")) == ContentText("x<a>[")
    assert (made.release(), made.used, made.tokens) == ("", True, ("<a>", "[b]"))
    assert (quoter().release(), quoter().used) == ("[b", True)


def test_every_event_gets_its_characters_back() -> None:
    """Texts and names; what has none is the same."""
    made = quoter()

    assert made.unquote(ArgumentsText(0, STAND_IN)) == ArgumentsText(0, "<")
    assert made.unquote(Malformed(STAND_IN, 1, "x")) == Malformed("<", 1, "x")
    assert made.unquote(ToolCallStarted(0, "id", f"{STAND_IN}n")) == ToolCallStarted(0, "id", "<n")
    assert made.unquote(MessageFinished()) == MessageFinished()


def test_nothing_is_used_where_nothing_was_quoted() -> None:
    """Half a token waits, and is not one yet."""
    made = Quoter(("<a>",))

    assert (made.ordinary("x <"), made.used, made.ordinary("b"), made.used) == ("x ", False, "<b", False)


def test_a_token_that_may_become_a_longer_one_waits() -> None:
    """Until what follows it shows which it is."""
    made = Quoter(("<a", "<ab"))

    assert (made.ordinary("x<a"), made.ordinary("b"), made.ordinary("<a!")) == ("x", f"{STAND_IN}ab", f"{STAND_IN}a!")
