"""Adds tools to prompts for templates that ignore them.

In: a template's format and capabilities, the tools of a request, and a conversation. Out: a system message that describes
the tools, and earlier calls and results as text.

This module decides what a template has to be helped with, and which call syntax is used. One that writes calls keeps its own
syntax, whoever offers the tools; a declared syntax is used when there is none, or when it was asked for by name. `wording` says
tools and syntax in words.

Rules:
- A template is helped only with what it does not do itself.
- A call is written exactly as the format has it, so that the model reads in its history what it is asked to write.
- Results become the user's words. Two messages of the user that would follow each other become one, since many templates
  insist that roles alternate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from unrender.conversation.adapt import joined_content
from unrender.conversation.capabilities import Capabilities
from unrender.conversation.messages import RESULTS, Conversation, Said, values_of
from unrender.conversation.wording import RESULT_CLOSE, RESULT_OPEN, Instructions, call_form
from unrender.errors import MessageError
from unrender.format import CallSyntax, Format, ToolMode
from unrender.format.tokens import preserved_tokens
from unrender.formats import Declared, declared_formats, with_declared
from unrender.messages.wire import Request
from unrender.values.notations import encode_calls

__all__ = ["DEFAULT_FORMAT", "Injection", "Plan", "call_form", "plan_tools"]

AUTO = "auto"
NONE = "none"
DEFAULT_FORMAT = "tool-call-json"
"""The declared format that is used when the template writes no calls and none was named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """The text about tools that is added to a prompt because the template ignores them."""

    format_name: str
    """The declared format whose call syntax is asked for; empty when it is the template's own."""
    text: str
    """What was put into the system message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is done about tools in place of a template."""

    format: Format
    """How the answer is written when tools are offered."""
    format_name: str = ""
    offers: bool = False
    """The tools are put into the system message."""
    withholds: bool = False
    """The template, which would write them as well, is not given the tools."""
    writes_calls: bool = False
    """Calls of earlier turns become text."""
    writes_results: bool = False
    """Their results become text."""

    def offer(self, tools: Sequence[Mapping[str, Any]], request: Request) -> Injection | None:
        """Return the description of the tools that the request allows.

        None when the template describes them itself, and for a request without tools.
        """
        if not (self.offers and request.calls_allowed and request.tools):
            return None
        allowed = {tool.name for tool in request.tools}
        instructions = Instructions(
            syntax=self.format.tools,
            parallel=request.parallel_tool_calls,
            choice=request.tool_choice,
            named=request.named_tool,
            in_json=request.response_schema is not None,
            tools_first=self.format.turn.tools_first,
            results_as_text=self.writes_results,
        )
        text = instructions.write([tool for tool in tools if tool["function"]["name"] in allowed])
        return Injection(format_name=self.format_name, text=text)

    def inject(self, conversation: Conversation, injection: Injection | None) -> Conversation:
        """Return the conversation in a form that the template can render, with the description of the tools in it.

        Tools are described once: a system message that already has the text stays as it is.
        """
        said = write_results(conversation) if self.writes_results else conversation
        said = write_calls(said, self.format) if self.writes_calls else said
        return _with_system_text(said, injection.text) if injection else said


def plan_tools(format: Format, capabilities: Capabilities, tool_format: str, source: str = "") -> Plan:
    """Return what has to be done about tools in place of a template with this format and these capabilities.

    `source` is the template's. `tool_format` is "auto"; "none", which leaves everything to the template; or the name of
    a declared format, which is then used no matter what the template does. Raises `MessageError` for any other name.
    """
    if tool_format == NONE:
        return Plan(format=format)
    if tool_format != AUTO:
        named = _with_declared(format, tool_format, source)
        return replace(named, withholds=capabilities.supports_tools)
    own = format.tools.mode is not ToolMode.NONE
    if not own and not capabilities.supports_tools:
        return _with_declared(format, DEFAULT_FORMAT, source)
    # `<call>` in the prompt's words and not in answers: the model knows the syntax, but the template drops earlier calls.
    unwritten = own and not capabilities.supports_tool_calls
    return Plan(
        format=format,
        offers=own and not capabilities.supports_tools,
        writes_calls=unwritten,
        writes_results=unwritten and not capabilities.supports_tool_role,
    )


def _with_declared(format: Format, name: str, source: str) -> Plan:
    known = {item.name: item for item in declared_formats() if item.format.tools.mode is not ToolMode.NONE}
    if name not in known:
        raise MessageError(f"tool_format: expected one of {[AUTO, NONE, *sorted(known)]}, found {name!r}")
    spoken = _speaking(format, known[name])
    spoken = replace(spoken, preserved_tokens=preserved_tokens(spoken, source))
    return Plan(format=spoken, format_name=name, offers=True, writes_calls=True, writes_results=True)


def _speaking(format: Format, declared: Declared) -> Format:
    """Return the template's format with the declared call syntax; the template's own is still read."""
    added, turn = declared.format, format.turn
    own = (format.tools,) if format.tools.mode is not ToolMode.NONE else ()
    # The template's own calls make way, but a model may still write them: they stay tolerated.
    alone = replace(format, tools=CallSyntax(), reasoning=replace(format.reasoning, holds_calls=False))
    merged = with_declared(replace(alone, tolerated=(*own, *format.tolerated)), declared)
    joints = replace(
        turn,
        # A declared syntax may not say what comes before calls: then they begin on a line of their own.
        content_to_tools=added.turn.content_to_tools or "\n",
        reasoning_to_tools=turn.reasoning_to_content if turn.reasoning_to_content.isspace() else "",
        start_to_tools="",
        tools_to_content="",
        tools_first=False,
    )
    reasoning = replace(merged.reasoning, holds_calls=format.reasoning.holds_calls)
    return replace(
        merged, turn=joints, reasoning=reasoning, cleans_content=format.cleans_content or added.cleans_content
    )


def _with_system_text(conversation: Conversation, text: str) -> Conversation:
    first = conversation[0] if conversation else None
    if first is None or first.role not in ("system", "developer"):
        return (Said(role="system", content=text), *conversation)
    parts = first.content if isinstance(first.content, list) else [{"text": first.content}]
    known = "".join(str(part.get("text") or "") for part in parts if isinstance(part, Mapping))
    content = joined_content(first.content, f"\n\n{text}" if first.content else text, between="")
    return conversation if text in known else (replace(first, content=content), *conversation[1:])


# Calls and results of earlier turns as text.


def write_calls(conversation: Iterable[Said], format: Format) -> Conversation:
    """Return the conversation with each message's calls as text after its content, as the format has it."""
    written, before = [], 0
    for said in conversation:
        written.append(_with_calls_as_text(said, format, before) if said.calls else said)
        before += len(said.calls)
    return tuple(written)


def write_results(conversation: Iterable[Said]) -> Conversation:
    """Return the conversation with results as the user's messages, joined with the user's messages next to them."""
    said = tuple(conversation)
    names = {call.id: call.name for one in said for call in one.calls}
    written: list[Said] = []
    joins = False
    for one in said:
        is_result = one.role in RESULTS
        told = Said(role="user", content=_result(one, names)) if is_result else one
        # `result, result, user` becomes one message of the user: many templates insist that roles alternate.
        if joins and told.role == "user":
            told = replace(told, content=joined_content(written.pop().content, told.content))
        written.append(told)
        joins = is_result
    return tuple(written)


def _with_calls_as_text(said: Said, format: Format, before: int) -> Said:
    calls = [
        (call.name, values_of(call.arguments), str(call.id or f"call_{at}"))
        for at, call in enumerate(said.calls, start=before)
    ]
    # A counter that is part of an id counts the calls of the conversation, any other those of the answer.
    first = before if format.tools.id_parts else 0
    joint = format.turn.content_to_tools if said.content else format.turn.start_to_tools
    text = joint + encode_calls(calls, format.tools, first=first)
    return replace(said, content=joined_content(said.content, text, between=""), calls=())


def _result(said: Said, names: Mapping[Any, Any]) -> Any:
    opened = RESULT_OPEN.format(name=said.name or names.get(said.answers) or "")
    return joined_content(joined_content(opened, said.content, between=""), RESULT_CLOSE, between="")
