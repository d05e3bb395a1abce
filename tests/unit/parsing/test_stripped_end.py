"""What engines leave of the end of a turn when they strip the token that stopped the model."""

from __future__ import annotations

from dataclasses import replace

import pytest
from splitting import fed, splits

from unrender import Parser, Request
from unrender.format import Content, ContentMode, Format, Turn
from unrender.formats import declared_format

WRAPPED = Format(
    turn=Turn(end="\n<|end|>\n", ends=("</s>",), content_to_tools="\n"),
    content=Content(mode=ContentMode.ALWAYS_WRAPPED, start="<response>\n", end="\n</response>"),
    tools=declared_format("tool-call-json").tools,
)
CALL = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'


@pytest.mark.parametrize("end", ["", "\n", "\n<|end|>", "\n<|end|>\n", "\n</s>", "<|end|>"])
@pytest.mark.parametrize("calls", [0, 1, 2])
def test_the_layout_before_the_end_is_no_content(end, calls):
    """However much of the end of the turn is there, the content is the same, behind its wrapper and behind calls."""
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
