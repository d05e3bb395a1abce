"""What can be read in two ways is read as the caller says."""

from __future__ import annotations

import pytest
from splitting import fed, splits

from unrender.format import CallSyntax, Envelope, Format, Reasoning, ReasoningMode, Slot, ToolMode
from unrender.formats import declared_format
from unrender.machine.events import Malformed
from unrender.machine.policy import (
    CallRelease,
    CallsInReasoning,
    Policy,
    UndeclaredReasoning,
    UnknownTools,
)
from unrender.messages.wire import Message, Request, Tool
from unrender.parser.streaming import Parser

FORMAT = Format(
    reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end="</think>"),
    tools=CallSyntax(
        mode=ToolMode.JSON_NATIVE,
        call_start="<tool_call>",
        function=('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"),
        call_end="</tool_call>",
        envelope=Envelope(name_field=("name",), args_field=("arguments",)),
    ),
)


def read(text: str, policy: Policy | None = None) -> Message:
    parser = Parser(FORMAT, Request(tools=(Tool(name="now"),)), policy=policy)
    parser.feed(text)
    parser.finish()
    return parser.message


def call(name: str) -> str:
    return f'<tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>'


def test_unknown_tools_are_content_by_default() -> None:
    """A call of a tool that nobody offered is content."""
    assert read(call("later")).content == call("later")


def test_unknown_tools_as_flagged_calls() -> None:
    """On request it is a call that says that its tool is not known."""
    message = read(call("later") + call("now"), Policy(unknown_tools=UnknownTools.CALL))

    assert [(one.name, one.known) for one in message.tool_calls] == [("later", False), ("now", True)]
    assert message.content == ""


def test_calls_in_open_reasoning_are_rescued_by_default() -> None:
    """A call at the very end of reasoning that was never closed is a call."""
    message = read("<think>so " + call("now"))

    assert (message.reasoning, [one.name for one in message.tool_calls]) == ("so ", ["now"])


def test_calls_in_open_reasoning_can_be_ignored() -> None:
    """On request it stays reasoning."""
    message = read("<think>so " + call("now"), Policy(calls_in_reasoning=CallsInReasoning.IGNORE))

    assert (message.reasoning, message.tool_calls) == ("so " + call("now"), ())


DEAD = (
    '<tool_call>{"name": "now", "arguments": {"a": ]}}</tool_call>',
    '<tool_call>{"name": "now", "arguments": {"a": "b',
    '<tool_call>{"name": "now", "arguments": {"a": "b"</tool_call>',
)


@pytest.mark.parametrize("dead", DEAD)
def test_the_text_of_a_dead_call_is_content_by_default(dead: str) -> None:
    """What a call that died has said is content, closing markers included, and a call after it is a call."""
    for chunks in splits("Hi " + dead):
        parser = Parser(FORMAT, Request(tools=(Tool(name="now"),)))
        fed(parser, chunks)

        assert parser.message.content == "Hi " + dead
        assert [call.name for call in parser.message.dead_calls] == ["now"]
        assert parser.message.tool_calls == ()
        assert "tool_calls" not in parser.message.to_openai()


@pytest.mark.parametrize("dead", DEAD)
def test_a_dead_call_that_was_given_stays_a_call(dead: str) -> None:
    """On request calls come as they are written: its text is nowhere else, and the event is there all the same."""
    parser = Parser(FORMAT, Request(tools=(Tool(name="now"),)), policy=Policy(calls=CallRelease.WRITTEN))
    events = fed(parser, ["Hi " + dead])

    assert parser.message.content.startswith("Hi ")
    assert "now" not in parser.message.content
    assert [call.name for call in parser.message.dead_calls] == ["now"]
    assert parser.message.dead_calls == parser.message.tool_calls
    assert any(isinstance(event, Malformed) for event in events)


def test_a_call_after_a_dead_call_is_read() -> None:
    """Only the dead call's own text is content."""
    dead, after = DEAD[0], call("now")
    message = read(dead + "\n" + after)

    assert message.content == dead + "\n"
    assert [str(one.status) for one in message.tool_calls] == ["complete"]
    assert [str(one.status) for one in message.dead_calls] == ["invalid"]
    assert message.finish_reason("stop") == "tool_calls"


def test_a_call_that_lacks_its_closer_at_the_limit_is_dead() -> None:
    """With the finish reason "length" it is truncated, and its text content; in a format of whole calls it is content."""
    text = '<tool_call>{"name": "now", "arguments": {}}'
    for format, calls in ((FORMAT, 1), (declared_format("qwen3"), 0)):
        parser = Parser(format, Request(tools=(Tool(name="now"),)))
        parser.feed(text)
        parser.finish("length")

        assert parser.message.content == text
        assert (len(parser.message.dead_calls), parser.message.tool_calls) == (calls, ())
        assert parser.message.finish_reason("length") == "length"


def test_the_words_of_a_policy() -> None:
    """States and configurations name them."""
    kinds = (UnknownTools, CallsInReasoning, UndeclaredReasoning, CallRelease)

    assert [[word.value for word in kind] for kind in kinds] == [
        ["content", "call"],
        ["rescue", "ignore"],
        ["read", "content"],
        ["complete", "written"],
    ]


@pytest.mark.parametrize("release", list(CallRelease))
def test_a_word_is_as_good_as_its_member(release: CallRelease) -> None:
    """A policy in words reads a broken call as one in members does, and loses nothing."""
    text = '<tool_call>\n{"name": "now", "arguments": {"a": "Paris"; 1}}\n</tool_call>'
    one, other = (Parser(FORMAT, Request(), policy=Policy(calls=calls)) for calls in (release, release.value))

    assert Policy(calls=release.value) == Policy(calls=release)
    assert [one.feed(character) for character in text] == [other.feed(character) for character in text]
    assert (one.finish(), one.message, one.spans) == (other.finish(), other.message, other.spans)


@pytest.mark.parametrize("name", ["unknown_tools", "calls_in_reasoning", "calls", "undeclared_reasoning"])
def test_a_word_that_a_field_does_not_have_is_an_error(name: str) -> None:
    """The error names the field and its words."""
    for given in ("sometimes", 5, None, []):
        with pytest.raises(ValueError, match=f"{name}: expected one of "):
            Policy(**{name: given})
