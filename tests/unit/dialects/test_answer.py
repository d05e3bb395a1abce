"""An answer's grammar: reported losses, and triggers, which start a lazy grammar at a call, but never inside reasoning."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

import pytest
from cases import cases
from engines import converted_reader, gbnf, installed, lark, structural_tag
from rows import FORMATS, patched

from unrender import GrammarError, Parser, Turn
from unrender.errors import SchemaWarning
from unrender.format import CallSyntax, Format, Reasoning, ReasoningMode, Slot
from unrender.types import Request, Tool, Trigger

FORMAT, _ = FORMATS["thoughts_and_calls"]
TOOLS = tuple(
    Tool(name=name, parameters={"properties": {"n": {"type": "integer", "maximum": 9}}, "required": ["n"]})
    for name in "fg"
)
F = '<call>{"name": "f", "arguments": {"n": 1}}</call>'


def turn_of(format=FORMAT, prefill="", tools=TOOLS, **request):
    return Turn(prompt="", format=format, prefill=prefill, request=Request(tools=tools, **request))


@pytest.mark.parametrize(
    ("prefill", "choice"),
    [
        (":", "required"),
        ("<call>nobody", "required"),
        ("<call>nobody", "auto"),
        ("<end>", "auto"),
        ("x" * 15_000 + "<call>", "auto"),
    ],
    ids=lambda value: f"{value!r:.20}",
)
def test_after_a_beginning_that_is_not_written_the_answer_goes_on_as_it_is_read(prefill, choice, monkeypatch):
    """If no answer begins with the prefill, a warning says that the prefill isn't enforced, and samples can still be parsed."""
    monkeypatch.setattr("unrender.dialects.remainder.MAX_DOCUMENT", 10_000)  # The bound itself takes seconds.
    request = Request(tools=TOOLS, tool_choice=choice)
    answer = Turn(prompt="", format=FORMAT, request=request, prefill=prefill)
    for write in (partial(gbnf, answer), partial(lark, answer), partial(structural_tag, answer)):
        with pytest.warns(SchemaWarning, match=r"prompt: the prefill .* is not enforced: no answer of the format"):
            write()
    for seed in range(5):
        parser = Parser(FORMAT, request, prefill=prefill, strict=len(prefill) < 2)
        parser.finish(text=answer.sample(seed))

    assert parser.message.tool_calls or choice == "auto"


def test_tools_must_be_known_by_name():
    """The grammar can't be written if the tools' names are unknown."""
    with pytest.raises(GrammarError, match="needs the names of the tools"):
        turn_of(tools=None).constraint("llguidance")


def test_a_loss_is_a_warning_that_names_tool_path_and_keyword():
    """A keyword that can't be enforced widens only its own tool, and the request still works."""
    awkward = Tool(name="h", parameters={"properties": {"a": {"type": "array", "uniqueItems": True}}})
    answer = turn_of(tools=(*TOOLS, awkward))

    with pytest.warns(SchemaWarning, match="tool 'h': #/properties/a: uniqueItems is not enforced") as warned:
        text = answer.constraint("llama.cpp").grammar

    assert '"f' in text
    assert len(warned) == 1


def test_long_texts_are_not_counted():
    """A length that llama.cpp can't count isn't enforced."""
    tool = Tool(name="f", parameters={"properties": {"a": {"type": "string", "maxLength": 10_000}}})

    with pytest.warns(SchemaWarning, match="at most 1000 repetitions can be counted"):
        turn_of(tools=(tool,)).constraint("llama.cpp")


@pytest.mark.engine
@pytest.mark.skipif(not installed("llguidance"), reason="llguidance is not installed")
def test_lazy_gbnf_serves_from_the_first_marker_too():
    """A lazy grammar also accepts text that begins at a trigger, even if reasoning was open."""
    lazy = turn_of(prefill="<think>")
    eager = turn_of(prefill="<think>", tool_choice="required")

    assert lazy.constraint("llama.cpp").triggers
    assert converted_reader(lazy.constraint("llama.cpp").grammar)(F)
    assert not eager.constraint("llama.cpp").triggers
    assert not converted_reader(eager.constraint("llama.cpp").grammar)(F)


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
