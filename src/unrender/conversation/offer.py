"""Plan how tools are described to a model if its template ignores them.

Input: a template's format and capabilities, and the tools of a request. Output: a plan, and a description of the tools.

This module decides which parts of tool use are written as text instead of by the template, and in which call syntax. A template with its
own call syntax keeps that syntax, even if the tools have to be described in the system message. A declared syntax is used if the template
has none, or if the caller selects one. `wording` describes tools and syntax. `concede` inserts the description, earlier calls and results
into the conversation.

Rule: Steps replace only features that the template doesn't support.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from unrender.answer.build import own_calls
from unrender.conversation.capabilities import Capabilities
from unrender.conversation.wording import Instructions, call_form
from unrender.errors import RequestError
from unrender.format import CallSyntax, Format, ToolMode
from unrender.format.tokens import preserved_tokens
from unrender.formats import Declared, declared_formats, with_declared
from unrender.messages.wire import Request, ToolPrompt
from unrender.signatures import expected_one_of

__all__ = ["DEFAULT_FORMAT", "Plan", "call_form", "plan_tools"]

AUTO = "auto"
NONE = "none"
DEFAULT_FORMAT = "tool-call-json"
"""Name of the declared format whose call syntax is used for templates that have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Steps that make up for a template's missing support for tools."""

    format: Format
    """Format of answers to requests with tools."""
    format_name: str = ""
    offers: bool = False
    """True if the system message describes the tools."""
    withholds: bool = False
    """True if the tools aren't passed to the template, because another part of the prompt describes them."""
    writes_calls: bool = False
    """True if the calls of earlier turns are written as text."""
    writes_results: bool = False
    """True if the results of earlier calls are written as text."""

    def offer(self, tools: Sequence[Mapping[str, Any]], request: Request) -> ToolPrompt | None:
        """Return the description of the tools that the request allows.

        Returns None if the template itself describes the tools, or if the request has no tools.
        """
        calls = own_calls(self.format)
        if not (self.offers and request._calls_allowed and request.tools and calls):
            return None
        allowed = {tool.name for tool in request.tools}
        instructions = Instructions(calls, request, self.format.turn.tools_first, self.writes_results)
        text = instructions.write([tool for tool in tools if tool["function"]["name"] in allowed])
        return ToolPrompt(format_name=self.format_name, text=text)


def plan_tools(format: Format, capabilities: Capabilities, tool_format: str, source: str = "") -> Plan:
    """Return the plan for a template with the given format and capabilities.

    `source` is the template's source. `tool_format` is the name of a declared format, "auto", or "none". With "none", the plan is empty. A
    named format is used even if the template has its own call syntax. Raises `RequestError` for an unknown name.
    """
    if tool_format == NONE:
        return Plan(format=format)
    if tool_format != AUTO:
        named = _with_declared(format, tool_format, source)
        return replace(named, withholds=capabilities.supports_tools)
    own = format.tools.mode is not ToolMode.NONE
    if not own and not capabilities.supports_tools:
        return _with_declared(format, DEFAULT_FORMAT, source)
    # If the template mentions the call syntax but drops earlier calls, write the earlier calls as text.
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
        raise RequestError(expected_one_of("tool_format", [AUTO, NONE, *sorted(known)], name))
    spoken = _speaking(format, known[name])
    spoken = replace(spoken, preserved_tokens=preserved_tokens(spoken, source))
    return Plan(format=spoken, format_name=name, offers=True, writes_calls=True, writes_results=True)


def _speaking(format: Format, declared: Declared) -> Format:
    """Return the template's format with the declared call syntax. The parser still accepts the template's own syntax."""
    added, turn = declared.format, format.turn
    own = (format.tools,) if format.tools.mode is not ToolMode.NONE else ()
    # Tolerate the template's own calls, because the model may still write them.
    alone = format._with(tools=CallSyntax(), reasoning=replace(format.reasoning, holds_calls=False))
    merged = with_declared(replace(alone, tolerated=(*own, *format.tolerated)), declared)
    joints = replace(
        turn,
        # Start the calls on a new line if the declared syntax doesn't specify the text before them.
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
