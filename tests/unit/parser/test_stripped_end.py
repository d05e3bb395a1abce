"""What engines leave of the end of a turn when they strip the token that stopped the model."""

from __future__ import annotations

from dataclasses import replace

import pytest
from splitting import fed, splits

from unrender import CallStatus, Parser, Request
from unrender.format import Content, ContentMode, Format, TurnTexts
from unrender.formats import declared_format
from unrender.machine.events import Malformed

WRAPPED = Format(
    turn=TurnTexts(end="\n<|end|>\n", ends=("</s>",), content_to_tools="\n"),
    content=Content(mode=ContentMode.ALWAYS_WRAPPED, start="<response>\n", end="\n</response>"),
    tools=declared_format("tool-call-json").tools,
)
CALL = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'


@pytest.mark.parametrize("end", ["", "\n", "\n<|end|>", "\n<|end|>\n", "\n</s>", "<|end|>"])
@pytest.mark.parametrize("calls", [0, 1, 2])
def test_the_layout_before_the_end_is_no_content(end, calls):
    """However much of the end of the turn is there, the content is the same, after its wrapper and after calls."""
    output = "<response>\nHello\n</response>" + ("\n" + CALL) * calls + end
    for chunks in splits(output):
        parser = Parser(WRAPPED, Request(tools=None))
        fed(parser, chunks)

        assert (parser.message.content, len(parser.message.tool_calls)) == ("Hello", calls)


def test_plain_content_loses_its_last_layout_only_at_the_end():
    """Without a wrapper the same layout is content wherever more text follows it."""
    parser = Parser(replace(WRAPPED, content=Content()), Request(tools=None))

    fed(parser, ["a\n", "b\n", "\n"])

    assert parser.message.content == "a\nb\n"


@pytest.mark.parametrize("end", ["", "</call>"])
def test_a_call_is_whole_without_the_closer_that_ends_the_turn(end):
    """The closer that is a stop token as well is stripped with it: the call is complete, and nothing is reported."""
    calls = replace(declared_format("tool-call-json").tools, call_start="<call>", call_end="</call>", separator="")
    parser = Parser(Format(turn=TurnTexts(end="<|end|>", ends=("</call>",)), tools=calls), Request(tools=None))

    events = fed(parser, ['<call>{"name": "now", "arguments": {}}' + end])

    assert [call.status for call in parser.message.tool_calls] == [CallStatus.COMPLETE]
    assert not any(isinstance(event, Malformed) for event in events)


@pytest.mark.parametrize("end", ["", "<|eos|>", "\n<|eos|>"])
@pytest.mark.parametrize("place", ["section_end", "call_end"])
def test_a_closer_is_whole_without_the_end_of_turn_in_it(end, place):
    """Where the closing literal holds the token that stops the model, engines deliver what is before that token."""
    calls = replace(declared_format("tool-call-json").tools, section_start="<calls>", section_end="", separator="")
    calls = replace(calls, **{place: "\n</done><|eos|>"})
    parser = Parser(Format(turn=TurnTexts(ends=("<|eos|>",)), tools=calls), Request(tools=None))
    closed = "\n</tool_call>" if place == "section_end" else ""

    events = fed(parser, ['<calls><tool_call>\n{"name": "now", "arguments": {}}' + closed + "\n</done>" + end])

    assert [call.status for call in parser.message.tool_calls] == [CallStatus.COMPLETE]
    assert parser.message.content == ""
    assert not any(isinstance(event, Malformed) for event in events)


@pytest.mark.parametrize("end", ["", "\n", "<|end|>", "\n<|end|>\n"])
def test_a_fence_that_closes_before_the_end_of_the_turn_is_dropped(end):
    """An answer in JSON may be in a Markdown fence, whatever of the end of the turn the engine delivers."""
    request = Request(response_schema={"type": "object"})
    for chunks in splits('```json\n{"a": 1}\n```' + end):
        parser = Parser(Format(turn=TurnTexts(end="<|end|>\n")), request)
        fed(parser, chunks)

        assert parser.message.content == '{"a": 1}'
