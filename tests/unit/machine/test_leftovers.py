"""Cleaning drops the leftovers of a call, and neither changes nor delays other text."""

from __future__ import annotations

from cases import cases
from splitting import fed

from unrender import ContentText, Format, Malformed, Parser, ReasoningText, ToolCallFinished, ToolCallStarted
from unrender.machine import BrokenText
from unrender.parser.message import Cleaner
from unrender.types import Request, Tool

CALL = ToolCallStarted(0, "id", "f")
NOW = Request(tools=(Tool(name="now"),))


def test_broken_text_is_content_when_no_call_follows() -> None:
    """Broken text waits while only whitespace follows. The next word makes it content."""
    cleaner = Cleaner()

    assert cleaner.take([ContentText("a"), BrokenText("f{}")]) == [ContentText("a")]
    assert cleaner.take([ContentText(" ")]) == []
    assert cleaner.take([ContentText("c")]) == [ContentText("f{}"), ContentText(" "), ContentText("c")]
    assert cleaner.take([ContentText("d")]) == [ContentText("d")]


def test_only_words_make_broken_text_content() -> None:
    """Reports wait together with the broken text."""
    cleaner = Cleaner()
    report = Malformed("x", 1, "y")
    cleaner.take([BrokenText("f{}")])

    assert cleaner.take([report, ToolCallFinished(0, "complete")]) == []
    assert cleaner.take([ReasoningText("so")]) == [
        ContentText("f{}"),
        report,
        ToolCallFinished(0, "complete"),
        ReasoningText("so"),
    ]


def test_broken_text_is_content_at_the_end() -> None:
    """Text that is still held back at the end of the output is content."""
    cleaner = Cleaner()
    cleaner.take([BrokenText("f{}")])

    assert cleaner.finish() == [ContentText("f{}")]


def test_broken_text_is_dropped_when_a_call_follows() -> None:
    """The next call releases the waiting text without the broken part. Broken text after a call is dropped at once."""
    cleaner = Cleaner()
    cleaner.take([BrokenText("f{}"), ContentText("\n")])

    assert cleaner.take([CALL]) == [ContentText("\n"), CALL]
    assert cleaner.take([BrokenText("g{}"), ContentText("c")]) == [ContentText("c")]
    assert cleaner.finish() == []


def test_a_call_is_remembered() -> None:
    """Leftovers are dropped however much text comes between them and the call."""
    cleaner = Cleaner()
    cleaner.take([CALL, ContentText("a")])

    assert cleaner.take([ContentText("b"), Malformed("x", 1, "y")]) == [ContentText("b"), Malformed("x", 1, "y")]
    assert cleaner.take([BrokenText("g{}")]) == []
    assert cleaner.finish() == []


def test_a_copy_is_independent() -> None:
    """Events of a copy don't change the original."""
    cleaner = Cleaner()
    cleaner.take([BrokenText("f{}")])
    cleaner.copy().take([CALL])

    assert cleaner.finish() == [ContentText("f{}")]


@cases
def test_prose_that_mentions_a_marker_stays_and_streams(name: str, call: str, prose: str) -> None:
    """A marker in prose, before or after a call, removes no other text and holds back only itself."""
    parser = Parser(Format.named(name), NOW)
    fed(parser, [prose, call, prose])
    streaming = Parser(Format.named(name), NOW)
    for character in prose * 20:
        streaming.feed(character)

    assert parser.message.content == prose + prose
    assert len(parser.message.tool_calls) == 1
    assert len(streaming.message.content) > len(prose * 20) - 20


def test_an_unclosed_brace_holds_back_no_more_than_a_call_might_take() -> None:
    """Broken text is limited, so a brace that is never closed is content."""
    text = "functions.now:0{" + "not closed, " * 200
    parser = Parser(Format.named("kimi-simple"), NOW)
    for character in text:
        parser.feed(character)

    assert parser.message.content == text
