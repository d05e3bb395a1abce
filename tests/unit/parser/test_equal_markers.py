"""What ends with the marker that begins it: the second one ends it, at any chunking."""

from __future__ import annotations

import json
from typing import Any

import pytest
from splitting import splits

from unrender.format import (
    CallSyntax,
    Content,
    ContentMode,
    Format,
    Reasoning,
    ReasoningMode,
    Slot,
    ToolMode,
    TurnTexts,
)
from unrender.messages.wire import Request, read_tools
from unrender.parser.streaming import Parser

SLASHED = Reasoning(mode=ReasoningMode.TAG_BASED, start="~~", end="~~")
CALLS = CallSyntax(
    mode=ToolMode.TAG_WITH_JSON,
    call_start="%%",
    function=(Slot.NAME, " ", Slot.ARGUMENTS),
    call_end="%%",
    separator="\n",
)
FORMAT = Format(
    turn=TurnTexts(
        headers=("<bot>",), end="<end>", reasoning_to_content="\n", reasoning_to_tools="\n", content_to_tools="\n"
    ),
    reasoning=SLASHED,
    content=Content(mode=ContentMode.ALWAYS_WRAPPED, start='"""', end='"""'),
    tools=CALLS,
)
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in ("f", "g")]
REQUEST = Request(tools=read_tools(TOOLS))

ANSWERS: dict[str, tuple[str, tuple[str, str, list[str]]]] = {
    "reasoning and content": ('~~R~~\n"""C"""<end>', ("R", "C", [])),
    "no reasoning": ('"""C"""<end>', ("", "C", [])),
    "empty reasoning": ('~~~~\n"""C"""<end>', ("", "C", [])),
    "a call": ('%%f {"a": 1}%%<end>', ("", "", ['f {"a": 1}'])),
    "two calls": ('~~R~~\n%%f {"a": 1}%%\n%%g {}%%<end>', ("R", "", ['f {"a": 1}', "g {}"])),
    "two calls, nothing between": ('%%f {"a": 1}%%%%g {}%%<end>', ("", "", ['f {"a": 1}', "g {}"])),
    "everything": ('~~R~~\n"""C"""\n%%f {"a": "~~"}%%<end>', ("R", "C", ['f {"a": "~~"}'])),
    "marker in prose": ('"""100 %% sure"""<end>', ("", "100 %% sure", [])),
}


def read(format: Format, chunks: list[str], **options: Any) -> tuple[str, str, list[str]]:
    parser = Parser(format, REQUEST, **options)
    for chunk in chunks:
        parser.feed(chunk)
    parser.finish()
    message = parser.message
    calls = [f"{call.name} {json.dumps(json.loads(call.arguments))}" for call in message.tool_calls]
    return message.reasoning, message.content, calls


@pytest.mark.parametrize(("text", "said"), ANSWERS.values(), ids=ANSWERS)
def test_the_second_marker_ends_what_the_first_began(text, said):
    """Reasoning, content and calls come back, whole and at every chunking."""
    for chunks in splits(text):
        assert read(FORMAT, list(chunks)) == said


def test_what_the_prompt_has_opened_is_ended_by_the_next_marker():
    """A prompt may end in the marker, or in a thought that it has closed."""
    forced = Format(
        turn=TurnTexts(
            headers=("<bot>",), end="<end>", prefill="~~", prefill_no_thinking="~~~~", reasoning_to_content="\n"
        ),
        reasoning=Reasoning(mode=ReasoningMode.FORCED_CLOSED, start="~~", end="~~"),
    )

    assert read(forced, list("R~~\nC<end>"), prompt="<bot>~~") == ("R", "C", [])
    assert read(forced, list("C<end>"), prompt="<bot>~~~~") == ("", "C", [])


def test_an_end_may_be_part_of_the_start():
    """After the opener, its own beginning ends reasoning."""
    format = Format(reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="~~think\n", end="\n~~"))

    for chunks in splits("~~think\nR ~ S\n~~C"):
        assert read(format, list(chunks)) == ("R ~ S", "C", [])
