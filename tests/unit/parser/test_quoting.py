"""Special tokens and equal ordinary text are distinguished if the caller knows which is which."""

from __future__ import annotations

from tables import table

from unrender import ContentText, Malformed, MessageFinished, Parser
from unrender.format import Format
from unrender.grammar import Grammar, chars, content
from unrender.types import Request, Tool

FORMAT = Format.from_dict(table("test_quoting")["FORMAT"])
CALL = '{"name": "now", "arguments": {"note": "</tool_call>"}}'


def parser() -> Parser:
    return Parser(FORMAT, Request(tools=(Tool(name="now"),)))


def test_quoted_markers_stay_text() -> None:
    """A marker in ordinary text is content for any chunking."""
    for size in (1, 3, 100):
        reader = parser()
        text = f"Write <think> or <tool_call>{CALL}</tool_call>."
        for i in range(0, len(text), size):
            reader.feed(text[i : i + size], special=False)
        reader.finish()

        assert reader.message.content == text
        assert reader.message.tool_calls == ()


def test_special_tokens_are_markers() -> None:
    """The same text as special tokens is a call, and ordinary text inside it is an argument."""
    reader = parser()
    reader.feed("<tool_call>", special=True)
    reader.feed(CALL, special=False)
    reader.feed("</tool_call>", special=True)
    reader.finish()

    assert [call.arguments_json for call in reader.message.tool_calls] == ['{"note": "</tool_call>"}']


def test_copies_are_independent() -> None:
    """A copy continues from the same state, including quoted tokens."""
    reader = parser()
    reader.feed("<tool_", special=False)
    twin = reader.copy()
    twin.feed("call>", special=False)
    twin.finish()
    reader.finish()

    assert (reader.message.content, twin.message.content) == ("<tool_", "<tool_call>")


def test_what_is_quoted_goes_on_over_chunks() -> None:
    """Part of a token is held back. A token that may be part of a longer one waits for more text."""
    reader = Parser(Format(), Request(), special_tokens=("<a>", "[b]"))
    assert reader.feed("x<a>y[b", special=False) == [ContentText("x<a>y")]
    assert reader.feed("]", special=False) == [ContentText("[b]")]
    assert reader.feed("<", special=False) == []
    assert reader.finish() == [ContentText("<"), MessageFinished()]

    other = Parser(Format(), Request(), special_tokens=("<a", "<ab"))
    found = [other.feed(text, special=False) for text in ("x<a", "b", "<a!")]
    assert found == [[ContentText("x")], [ContentText("<ab")], [ContentText("<a!")]]


def test_every_event_gets_its_characters_back() -> None:
    """Quoted tokens are restored in texts, names, arguments and reports."""
    reader = Parser(FORMAT, Request(tools=None))
    events = reader.feed("<think>", special=True) + reader.feed("a <think> b", special=False)
    events += reader.feed("</think><tool_call>", special=True)
    events += reader.feed('{"name": "<think>", "arguments": {"a": "<tool_call>"}}', special=False)
    events += reader.feed("</tool_call>", special=True) + reader.finish()

    assert reader.message.reasoning == "a <think> b"
    assert [(call.name, call.arguments_json) for call in reader.message.tool_calls] == [
        ("<think>", '{"a": "<tool_call>"}')
    ]
    letters = Parser(Format(), Request(), grammar=Grammar(content(chars("a-z", 1, None))), special_tokens=("<think>",))
    reported = [*letters.feed("ab<think>", special=False), *letters.finish()]
    assert [event.text for event in reported if isinstance(event, Malformed)] == ["<"]
    events += reported
    assert all(character < "\U0010f000" for event in events for character in repr(event))
