"""Tests of additions to a template, which depend on its capabilities."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cases import cases

from unrender import Format, RequestError
from unrender.analysis import Capabilities
from unrender.conversation.concede import conceded, told
from unrender.conversation.messages import conversation_of
from unrender.conversation.offer import DEFAULT_FORMAT, plan_tools
from unrender.format import CallSyntax, Slot, TurnTexts
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


def inject(plan, conversation, injection):
    """Return the conversation with all planned additions."""
    return conceded(told(conversation, plan, ()), (), plan.format, injection, "")


def test_the_tokens_of_the_syntax_are_preserved():
    """Markers of the injected syntax must not be stripped from the output."""
    assert "<tool_call>" in plan_tools(Format(), can(), "auto").format.preserved_tokens


def test_none_injects_nothing():
    """`none` leaves the conversation unchanged."""
    conversation = conversation_of([USER, {"role": "tool", "content": "42"}])

    assert inject(plan_tools(Format(), can(), "none"), conversation, None) == conversation
    assert plan_tools(Format(), can(), "none").offer(TOOLS, ASKED) is None


@pytest.mark.parametrize("name", ["json", "", "common-call-lists"])
def test_unknown_names_are_refused(name):
    """A name without a call syntax is an error that lists the valid names."""
    with pytest.raises(RequestError, match=r"tool_format: expected one of \['auto', 'none', .*'qwen3'"):
        plan_tools(Format(), can(), name)


def test_tools_are_injected_once():
    """A system message that already has the text is unchanged."""
    plan = plan_tools(Format(), can(), "auto")

    injected = plan.offer(TOOLS, ASKED)
    once = inject(plan, conversation_of([{"role": "system", "content": "Be kind."}, USER]), injected)
    twice = inject(plan, once, injected)

    assert injected is not None
    assert once == twice
    assert once[0].content == "Be kind.\n\n" + injected.text


@cases
def test_the_system_message_is_extended_or_made(given, expected):
    """The text is appended to the system message, or becomes one. Other messages are unchanged."""
    plan = plan_tools(Format(), can(), "auto")
    injected = plan.offer(TOOLS, ASKED)
    messages = inject(plan, conversation_of(given), injected)

    assert injected is not None
    assert messages[0].content == expected.format(text=injected.text)
    assert messages[1:] == conversation_of([USER])


def test_parts_of_a_system_message_are_kept():
    """A system message with parts gets one more part, but only once."""
    part = {"type": "text", "text": "Be kind."}
    plan = plan_tools(Format(), can(), "auto")

    once = inject(plan, conversation_of([{"role": "system", "content": [part]}, USER]), plan.offer(TOOLS, ASKED))
    twice = inject(plan, once, plan.offer(TOOLS, ASKED))

    assert once[0].content[0] == part
    assert len(once[0].content) == 2
    assert twice == once


def test_without_tools_nothing_is_offered():
    """Without tools, no system message is added."""
    plan = plan_tools(Format(), can(), "auto")

    assert plan.offer((), Request()) is None
    assert inject(plan, conversation_of([USER]), None) == conversation_of([USER])


def test_tools_that_must_not_be_called_are_not_described():
    """Tools are described only if they may be called."""
    plan = plan_tools(Format(), can(), "auto")
    other = {"type": "function", "function": {"name": "other"}}
    allowed = plan.offer([*TOOLS, other], ASKED)

    assert plan.offer(TOOLS, replace(ASKED, tool_choice="none")) is None
    assert allowed is not None
    assert "other" not in allowed.text
