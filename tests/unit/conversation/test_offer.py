"""Additions to a template, which depend on its capabilities, and the instructions that describe a call syntax."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from cases import cases
from splitting import fed

from unrender import Parser, RequestError
from unrender.analysis import Capabilities
from unrender.conversation.concede import conceded, told
from unrender.conversation.messages import conversation_of
from unrender.conversation.offer import DEFAULT_FORMAT, Plan, plan_tools
from unrender.format import Arguments, CallSyntax, Codec, Format, Slot, ToolMode, TurnTexts
from unrender.format.data import decode
from unrender.format.declared import declared_formats
from unrender.types import Request, Tool

OWN = CallSyntax(function=("<", Slot.NAME, ">", Slot.ARGUMENTS, "</call>"))
SPEAKING = Format(tools=OWN, turn=TurnTexts(tools_first=True, content_to_tools="[then]"))
USER = {"role": "user", "content": "Hello"}
TOOLS = [{"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}]

ASKED = Request(tools=(Tool(name="now"),))


def can(**capabilities):
    return Capabilities(**{f"supports_{name}": value for name, value in capabilities.items()})


@pytest.mark.parametrize(
    ("format", "supported", "name", "added"),
    [
        (SPEAKING, {"tools": True, "tool_calls": True, "tool_role": True}, "", ()),
        (SPEAKING, {"tool_calls": True, "tool_role": True}, "", ("offers",)),
        (SPEAKING, {"tools": True, "tool_role": True}, "", ("writes_calls",)),
        (Format(), {}, DEFAULT_FORMAT, ("offers", "writes_calls", "writes_results")),
    ],
)
def test_only_what_a_template_lacks_is_added(format, supported, name, added):
    """Tools, calls and results are added unless the template supports them, in its own syntax if it has one."""
    plan = plan_tools(format, can(**supported), "auto")

    assert plan.format.tools == (Format.named(name).tools if name else format.tools)
    assert plan.format_name == name
    flags = ("offers", "withholds", "writes_calls", "writes_results")
    assert tuple(flag for flag in flags if getattr(plan, flag)) == added


def test_a_format_asked_for_by_name_is_used_whatever_the_template_does():
    """The template's own syntax is parsed but not generated, and the template doesn't get the tools."""
    plan = plan_tools(SPEAKING, can(tools=True, tool_calls=True), "qwen3")

    assert plan.format.tools == Format.named("qwen3").tools
    assert plan.format.tolerated[0] == OWN
    assert (plan.offers, plan.withholds, plan.writes_calls) == (True, True, True)
    assert (plan.format.turn.tools_first, plan.format.turn.content_to_tools) == (False, "\n")


PLAN = plan_tools(Format(), can(), "auto")
OFFER = PLAN.offer(TOOLS, ASKED)


def inject(plan, conversation, injection):
    """Return the conversation with all planned additions."""
    return conceded(told(conversation, plan, ()), (), plan.format, injection, "")


def test_the_tokens_of_the_syntax_are_preserved():
    """Markers of the injected syntax must not be stripped from the output."""
    assert "<tool_call>" in PLAN.format.preserved_tokens


def test_none_injects_nothing():
    """`none` leaves the conversation unchanged."""
    conversation = conversation_of([USER, {"role": "tool", "content": "42"}])
    plan = plan_tools(Format(), can(), "none")

    assert inject(plan, conversation, None) == conversation
    assert plan.offer(TOOLS, ASKED) is None


@pytest.mark.parametrize("name", ["json", "", "common-call-lists"])
def test_unknown_names_are_refused(name):
    """A name without a call syntax is an error that lists the valid names."""
    with pytest.raises(RequestError, match=r"tool_format: expected one of \['auto', 'none', .*'qwen3'"):
        plan_tools(Format(), can(), name)


@cases
def test_the_system_message_is_extended_or_made(given, expected):
    """The text is appended once to the system message, or becomes one. Other messages are unchanged."""
    once = inject(PLAN, conversation_of(given), OFFER)

    assert once[0].content == expected.format(text=OFFER.text)
    assert once[1:] == conversation_of([USER])
    assert inject(PLAN, once, OFFER) == once


def test_parts_of_a_system_message_are_kept():
    """A system message with parts gets one more part, but only once."""
    part = {"type": "text", "text": "Be kind."}
    once = inject(PLAN, conversation_of([{"role": "system", "content": [part]}, USER]), OFFER)

    assert (once[0].content[0], len(once[0].content)) == (part, 2)
    assert inject(PLAN, once, OFFER) == once


def test_tools_that_must_not_be_called_are_not_described():
    """Tools are described only if they may be called. Without tools, there is no system message."""
    other = {"type": "function", "function": {"name": "other"}}

    assert PLAN.offer((), Request()) is PLAN.offer(TOOLS, replace(ASKED, tool_choice="none")) is None
    assert "other" not in PLAN.offer([*TOOLS, other], ASKED).text
    assert inject(PLAN, conversation_of([USER]), None) == conversation_of([USER])


SCHEMA = {
    "type": "object",
    "properties": {
        "note": {"type": "string"},
        "unit": {"enum": ["C", "F"]},
        "place": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
        "days": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["unit", "place", "days"],
}
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "É!", "parameters": SCHEMA}}
SPOKEN = [item for item in declared_formats() if item.format.tools.mode is not ToolMode.NONE]


def instructions(syntax: CallSyntax, *tools: Any, **asked: Any) -> str:
    """Return the instructions that offer tools in a call syntax."""
    known = tuple(Tool(name=tool["function"]["name"]) for tool in tools)
    injected = Plan(format=Format(tools=syntax), offers=True).offer(tools, Request(tools=known, **asked))
    assert injected is not None
    return injected.text


def wrapped(function):
    return {"type": "function", "function": function}


def example_of(text):
    return text.partition("would be answered with:\n\n")[2].partition("\n\nSeveral calls")[0].partition("\n\n- ")[0]


@pytest.mark.parametrize("declared", SPOKEN, ids=lambda item: item.name)
def test_the_example_is_read_as_a_call(declared):
    """The parser of the same format reads the example as a complete call."""
    text = instructions(declared.format.tools, TOOL)
    parser = Parser(declared.format, Request(tools=(Tool(name="repeat"),)), strict=True)

    fed(parser, [example_of(text)])

    (call,) = parser.message.tool_calls
    assert json.loads(call.arguments_json) == {"words": "good evening", "times": 3}


@pytest.mark.parametrize("declared", SPOKEN, ids=lambda item: item.name)
def test_nothing_of_an_offered_tool_is_in_the_example(declared):
    """Small models copy the values of an example, so the example has no part of an offered tool."""
    offered = [TOOL, wrapped({"name": "repeat"})]
    example = example_of(instructions(declared.format.tools, *offered, named_tool="get_weather"))

    assert "get_weather_repeat" in example
    assert not any(name in example for name in SCHEMA["properties"])


@pytest.mark.parametrize("declared", SPOKEN, ids=lambda item: item.name)
def test_the_form_shows_every_marker(declared):
    """The form contains all literals around a call."""
    syntax = declared.format.tools

    text = instructions(syntax, TOOL)

    literals = [syntax.section_start, syntax.call_start, syntax.call_end, syntax.section_end, *syntax.function]
    assert [part for part in literals if not isinstance(part, Slot) and part.strip() not in text] == []


def test_schemas_are_whole():
    """The instructions contain each tool's complete schema, without escaping characters."""
    text = instructions(Format.named("qwen3").tools, TOOL, TOOL)

    assert text.count(json.dumps(TOOL, ensure_ascii=False)) == 2
    assert "É!" in text


@pytest.mark.parametrize(("parallel", "supported"), [(False, True), (True, False)])
def test_one_call_is_said_to_be_the_most(parallel, supported):
    """If only one call is allowed, the instructions state that, and don't show several."""
    syntax = CallSyntax(function=("<", Slot.NAME, ">", Slot.ARGUMENTS), parallel=supported)

    text = instructions(syntax, TOOL, parallel_tool_calls=parallel)

    assert "at most one call" in text
    assert "Several calls" not in text


def test_two_calls_are_shown_as_they_are_joined():
    """The form of several calls has one section, with a separator between calls."""
    text = instructions(Format.named("python-call-list").tools, TOOL)

    assert "<|tool_call_start|>[NAME(KEY=VALUE), NAME(KEY=VALUE)]<|tool_call_end|>" in text


@cases
def test_values_are_explained_from_the_codec(codec, said):
    """The instructions explain each spelling of values."""
    typed = "types" in codec
    end = ("</>",) if typed else ("</", Slot.KEY, ">")
    entry = ("<", Slot.KEY, *((" ", Slot.TYPE) if typed else ()), ">", Slot.VALUE, *end)
    arguments = Arguments(entry=entry, codec=decode(Codec, codec, where="codec"))
    syntax = CallSyntax(call_start="<call>", function=("[", Slot.NAME, "]", Slot.ARGUMENTS), arguments=arguments)

    assert said in instructions(syntax, TOOL)


def test_ids_counters_and_missing_arguments_are_explained():
    """Each placeholder of the form is explained."""
    function = (Slot.NAME, "#", Slot.ID, ":", Slot.INDEX, " ", Slot.ARGUMENTS)
    arguments = Arguments(when_empty="-")
    text = instructions(CallSyntax(call_start="<call>", function=function, arguments=arguments, index_start=1), TOOL)

    assert "NAME#ID:INDEX ARGUMENTS" in text
    assert "ID is a name that you give" in text
    assert "INDEX counts your calls, from 1" in text
    assert "Without arguments, write `-` in their place" in text


@cases
def test_a_call_that_is_asked_for_is_asked_for_in_words(choice, said, unsaid):
    """The instructions state which calls are required, and whether text may come before them."""
    syntax = Format.named("qwen3").tools
    other = wrapped({"name": "other", "parameters": {"properties": {"a": {}}}})

    text = instructions(syntax, other, TOOL, tool_choice=choice, named_tool="get_weather")

    assert said in text
    assert unsaid not in text


def test_an_answer_in_json_is_asked_for_in_words():
    """If an answer without calls is JSON, the instructions don't mention text to the user."""
    text = instructions(Format.named("qwen3").tools, TOOL, response_schema={})

    assert "Any other answer is JSON alone." in text
    assert "What you say to the user" not in text
