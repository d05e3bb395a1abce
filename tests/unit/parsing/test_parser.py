"""Parser: what a caller sees of it."""

from __future__ import annotations

import pytest
from properties.families import ARRAY, JSON_ENVELOPE, REQUEST, TAGGED

from unrender.errors import MalformedOutput
from unrender.format import Format, Reasoning, ReasoningMode, TurnTexts
from unrender.messages import CallStatus, Request, ToolChoice
from unrender.parsing.begun import prefill
from unrender.parsing.events import ContentText, MessageFinished, ReasoningText
from unrender.parsing.ids import numbered_id
from unrender.parsing.parser import Parser, Span

CALL = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'


def test_reasoning_that_the_prompt_has_opened_is_open() -> None:
    """What is after the assistant's header in the prompt counts as written, and decides where reading begins."""
    parser = Parser(JSON_ENVELOPE.format, REQUEST, prompt="<|start|>user\nHi<|end|>\n<|start|>assistant\n<think>\n")

    assert parser.feed("so\n</think>\n\nHi") == [ReasoningText("so"), ContentText("Hi")]


def test_a_prefilled_answer_is_part_of_the_message() -> None:
    """Text that the prompt has written for the model comes first, and spans count from the output's beginning."""
    parser = Parser(ARRAY.format, REQUEST, prompt="<|begin|>\nHere are my steps:\n")
    parser.feed("one\n[BEGIN ANSWER]\nTwo")
    parser.finish()

    assert parser.message.reasoning == "Here are my steps:\none"
    assert parser.spans[0].start == 0
    assert parser.spans[-1].end == len("one\n[BEGIN ANSWER]\nTwo")


@pytest.mark.parametrize(
    ("prompt", "written"),
    [
        ("<|start|>assistant\n<think>\n", "<think>\n"),
        ("<|start|>assistant\nA<|end|>\n<|start|>assistant\n", ""),
        ("no header, but <think>\n", "<think>\n"),
        ("nothing at all", ""),
        ("<|start|>assistant\nA<|end|>\n<|start|>user\nB<|end|>\n", ""),
        ("<|start|>assistant\n<think>\nA\n</think>\n\nB<|end|>\n<|start|>tool\nC<|end|>\n", ""),
        ("<|start|>assistant\n<tool_call>\n{}\n</tool_call>\nC", ""),
        ("<|start|>assistant\n<think>\nA", "<think>\nA"),
        ("<|start|>assistant\n<think>\n<tool_call>\n{}\n</tool_call>\nC", ""),
        ("<|start|>assistant\n<think>\n\n</think>\n\n", "<think>\n\n</think>\n\n"),
        ("", ""),
    ],
)
def test_the_prefill_follows_a_header_at_the_end(prompt: str, written: str) -> None:
    """A header at the end counts; without one, an open reasoning marker at the very end does."""
    assert prefill(JSON_ENVELOPE.format, prompt) == written


def test_spans_say_what_each_character_is() -> None:
    """Text, markers, names, arguments and layout, without a gap."""
    output = f"Hi\n{CALL}"
    parser = Parser(JSON_ENVELOPE.format, REQUEST, ids=numbered_id)
    parser.feed(output)
    parser.finish()

    roles = {(span.role.value, output[span.start : span.end]) for span in parser.spans}
    assert {("content", "Hi"), ("name", "now"), ("argument", "{}"), ("marker", "</tool_call>")} <= roles
    assert isinstance(parser.spans[0], Span)


def test_spans_that_may_be_undone_are_not_shown() -> None:
    """While a marker may still turn out to be text, it has no span."""
    parser = Parser(JSON_ENVELOPE.format, REQUEST, ids=numbered_id)
    parser.feed("Hi <tool_call>")

    assert parser.spans[-1].end <= len("Hi ")


@pytest.mark.parametrize("request_", [Request(), Request(tools=REQUEST.tools, tool_choice=ToolChoice.NONE)])
def test_without_tools_a_call_is_content(request_: Request) -> None:
    """Where no call is allowed, its text is content, byte for byte."""
    parser = Parser(JSON_ENVELOPE.format, request_)
    parser.feed(CALL)
    parser.finish()

    assert parser.message.content == CALL


def test_an_unclosed_call_is_truncated_when_the_engine_says_so() -> None:
    """The finish reason `length` wins over what a lenient reading would make of the end."""
    parser = Parser(TAGGED.format, REQUEST)
    parser.feed("<function=now>\n<parameter=city>\nRome\n</parameter>\n")
    parser.finish("length")

    assert [call.status for call in parser.message.tool_calls] == [CallStatus.TRUNCATED]


def test_reasoning_may_be_left_in_content() -> None:
    """With reasoning format `none`, reasoning and its markers stay in content."""
    parser = Parser(JSON_ENVELOPE.format, Request(reasoning_format="none"))
    parser.feed("<think>\nso\n</think>\n\nHi")
    parser.finish()

    assert parser.message.reasoning == ""
    assert parser.message.content == "<think>\nso\n</think>\n\nHi"


def test_the_end_comes_once() -> None:
    """A second finish gives nothing; text after the end is the caller's mistake."""
    parser = Parser(Format(), Request())

    assert parser.finish() == [MessageFinished()]
    assert parser.finish() == []
    with pytest.raises(ValueError, match="after finish"):
        parser.feed("x")


def test_strict_errors_say_where_and_what() -> None:
    """A strict parser raises with position, what could have been there, and the text around it."""
    parser = Parser(JSON_ENVELOPE.format, REQUEST, strict=True)

    with pytest.raises(MalformedOutput) as raised:
        parser.feed('Hi <tool_call>{"name": "nope"}')

    assert raised.value.position == len("Hi ")
    assert raised.value.expected == "the name of one of the tools"
    assert "<tool_call>" in raised.value.context


def test_words_with_which_the_prompt_closes_reasoning_are_not_the_models():
    """A prompt that writes a closed block for no reasoning, words and all, begins no message; a continued one does."""
    closed = "<think>I answer at once.</think>\n"
    reasoning = Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end="</think>")
    turn = TurnTexts(headers=("<a>",), prefill_no_thinking=closed, reasoning_to_content="\n")
    format = Format(turn=turn, reasoning=reasoning)
    begun = Parser(format, Request(), prompt="<a>" + closed)
    continued = Parser(format, Request(), begun="<think>Hm.</think>\nWe", continued=True)

    begun.feed("Hi")
    begun.finish()

    assert (begun.message.reasoning, begun.message.content) == ("", "Hi")
    assert (continued.message.reasoning, continued.message.content) == ("Hm.", "We")
