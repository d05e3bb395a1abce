"""A call whose closing markers are missing at the end of the output counts by the same rule in every format."""

from __future__ import annotations

from dataclasses import replace

import pytest
from splitting import fed, splits

from unrender.format import Arguments, CallSyntax, Codec, Containers, Format, Slot, Strings, ToolMode, Words
from unrender.formats import declared_format
from unrender.messages.wire import Request
from unrender.parser.streaming import Parser

JSON = declared_format("qwen3").tools
FENCED = declared_format("deepseek-r1-1").tools
COUNTED = declared_format("kimi-k2").tools
BRACKETED = CallSyntax(
    mode=ToolMode.TAG_WITH_TAGGED,
    call_start="<call>",
    call_end="</call>",
    function=(Slot.NAME, Slot.ARGUMENTS),
    arguments=Arguments(
        start="(",
        end=")",
        entry=(Slot.KEY, "=", Slot.VALUE),
        separator=", ",
        codec=Codec(strings=Strings.PYTHON, words=Words.PYTHON, containers=Containers.PYTHON),
    ),
)
FENCE = '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{"a": 1}'
OUTPUTS = (
    (JSON, '<tool_call>\n{"name": "now", "arguments": {"a": 1}}', False),
    (
        COUNTED,
        '<|tool_calls_section_begin|><|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{"a": 1}',
        False,
    ),
    (FENCED, FENCE, False),
    (FENCED, FENCE + "\n```", True),
    (BRACKETED, "<call>now(a=1)", True),
)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(("calls", "output", "counts"), OUTPUTS)
def test_a_call_counts_when_its_closing_has_begun(calls: CallSyntax, output: str, counts: bool, whole: bool) -> None:
    """A fence or a bracket that has closed shows that the arguments are all there; a JSON object alone does not."""
    for chunks in splits(output):
        parser = Parser(Format(tools=replace(calls, whole=whole)), Request(tools=None))
        fed(parser, chunks)
        complete = [call.name for call in parser.message.tool_calls if call not in parser.message.dead_calls]

        assert complete == (["now"] if counts else [])
        assert parser.message.content == ("" if counts else output)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(("calls", "output"), [case[:2] for case in OUTPUTS])
def test_at_the_token_limit_no_unclosed_call_counts(calls: CallSyntax, output: str, whole: bool) -> None:
    """With the finish reason "length" the rest of the call may be what was cut off."""
    parser = Parser(Format(tools=replace(calls, whole=whole)), Request(tools=None))
    parser.feed(output)
    parser.finish("length")

    assert "tool_calls" not in parser.message.to_openai()
    assert parser.message.content == output
