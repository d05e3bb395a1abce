"""Tests of triggers, which start a lazy grammar at a call, but never inside reasoning."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from cases import cases
from rows import patched

from unrender import Turn
from unrender.format import CallSyntax, Format, Reasoning, ReasoningMode, Slot
from unrender.types import Request, Tool, Trigger

CALLS = CallSyntax(call_start="\n<call>", function=(Slot.NAME, Slot.ARGUMENTS))
PLAIN = Format(tools=CALLS)
THINKING = replace(PLAIN, reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>\n", end="\n</think>"))
REQUEST = Request(tools=(Tool(name="f"),))


def triggers_of(format: Format, request: Request, prefill: str = "") -> tuple[Trigger, ...]:
    return Turn(prompt="", format=format, request=request, prefill=prefill).constraint("llama.cpp").triggers


def fires(format: Format, output: str, prefill: str = "") -> str | None:
    """Return the start of the call that the trigger matches in the output, or None if it doesn't match."""
    (trigger,) = triggers_of(format, REQUEST, prefill)
    if trigger.kind == "word":
        return trigger.value if trigger.value in output else None
    found = re.search(trigger.value, output)
    return found.group(1) if found else None


def test_a_marker_that_stands_nowhere_else_is_a_word():
    """Without reasoning, the marker alone is the trigger."""
    assert triggers_of(PLAIN, REQUEST) == (Trigger("word", "<call>"),)


@cases
def test_a_marker_inside_reasoning_does_not_fire(output, prefill, expected, format):
    """Only a call outside of reasoning triggers the grammar, whether the model or the prompt opened the reasoning.

    A bracket, JSON or a text that starts all parts begins a call only if a tool's name follows.
    """
    assert fires(Format.from_dict(patched(THINKING.to_dict(), format)), output, prefill) == expected


def test_the_grammar_starts_after_the_reasoning():
    """The first group is the actual call, not one that reasoning mentions."""
    (trigger,) = triggers_of(THINKING, REQUEST, "<think>\n")
    output = "no <call> yet\n</think><call>"

    found = re.search(trigger.value, output)

    assert found is not None
    assert found.start(1) == output.rindex("<call>")


def test_a_call_that_the_prompt_has_begun_fires_on_its_name():
    """If the prompt ends in the marker, the trigger is the name of a tool."""
    marked = Format(tools=replace(CALLS, call_start=">>>", function=(Slot.NAME, "\n", Slot.ARGUMENTS)))
    first, other = triggers_of(marked, REQUEST, ">>>")

    assert re.search(first.value, "f\n{").group(1) == "f\n"
    assert re.search(first.value, "all\nf\n") is None
    assert re.search(other.value, "all\nhi>>>f\n").group(1) == ">>>f\n"


@pytest.mark.parametrize(
    "request_",
    [
        replace(REQUEST, tool_choice="required"),
        replace(REQUEST, tool_choice="named", named_tool="f"),
        replace(REQUEST, tool_choice="none"),
        replace(REQUEST, response_schema={}),
        Request(),
    ],
)
def test_a_grammar_that_holds_from_the_start_has_no_trigger(request_):
    """If a call is required or impossible, or the answer has a schema, the grammar applies from the start."""
    assert triggers_of(PLAIN, request_) == ()


@pytest.mark.parametrize("token", ["[TOOL_CALLS]", "<|tools|>", "<tool_calls>"])
@pytest.mark.parametrize("after", ["", "[", "[\n"])
def test_a_special_token_is_a_trigger_by_itself(token: str, after: str) -> None:
    """Text after the token doesn't delay the trigger, not even a misspelt name."""
    calls = replace(CALLS, section_start=token + after, call_start="")

    assert triggers_of(Format(tools=calls), REQUEST) == (Trigger("word", token),)
    assert fires(replace(THINKING, tools=calls), f"<think>\nno {token}\n</think>Hi{token}x") == token
