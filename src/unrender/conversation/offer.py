"""Plan how tools are described to a model if its template ignores them.

Input: a template's format and capabilities, and the tools of a request. Output: a plan, and a description of the tools.

This module decides which parts of tool use are written as text instead of by the template, and in which call syntax. A template with its
own call syntax keeps that syntax, even if the tools have to be described in the system message. A declared syntax is used if the template
has none, or if the caller selects one. `Instructions` describes tools and syntax: a call's form is described by
its markers in the format, with a capitalized word in place of each slot. The format's codec determines how these words are explained, and
the example is encoded in the same way as calls in a grammar. `concede` inserts the description, earlier calls and results
into the conversation.

Rules: Steps replace only features that the template doesn't support. No wording is specific to one syntax. Examples don't use the names of
offered tools or values of their arguments: a small model would copy `"city": "text"` verbatim.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from unrender.answer import ArgumentsPart, Calls
from unrender.answer.build import calls_in_syntax, own_calls
from unrender.answer.encode import encode_calls, filled, run_of
from unrender.conversation import Capabilities
from unrender.errors import RequestError
from unrender.format import CallSyntax, Format, Slot, ToolMode, Typing, preserved_tokens
from unrender.format.declared import Declared, declared_formats, with_declared
from unrender.messages import Request, ToolPrompt
from unrender.signatures import expected_one_of
from unrender.values.notations import notation_of

RESULT_OPEN = '<tool_response name="{name}">\n'
RESULT_CLOSE = "\n</tool_response>"
_ASKED, _TOOL, _VALUES = "Say good evening three times.", "repeat", {"words": "good evening", "times": 3}
"""An example question, and the name and arguments of the call that answers it."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """Description of the tools and their call syntax, for a system message."""

    calls: Calls
    request: Request
    tools_first: bool
    """True if the model writes content after calls."""
    results_as_text: bool
    """True if tool results are written as text in user messages."""

    def write(self, tools: Sequence[Mapping[str, Any]]) -> str:
        """Return the instructions for these tools, which are in OpenAI's wrapped format."""
        schemas = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
        paragraphs = [
            "# Tools",
            "You can call functions. These are offered, each with the JSON Schema of its arguments:",
            schemas,
            "A call is written in exactly this form:",
            _form(self.calls, 1),
            _listed(_explained(self.calls)),
            *self._example([tool["function"]["name"] for tool in tools]),
            *self._several(),
            _listed(self._rules()),
        ]
        return "\n\n".join(paragraphs)

    def _example(self, taken: Collection[str]) -> Iterator[str]:
        name = f"{max(taken, key=len)}_{_TOOL}" if _TOOL in taken else _TOOL
        yield f'For example, if there were a function `{name}`, "{_ASKED}" would be answered with:'
        id = "1".zfill(self.calls.id_length) if self.calls.id_length else "call_1"
        yield encode_calls(self.calls, [(name, _VALUES, id)]).strip()

    def _several(self) -> Iterator[str]:
        if not self.request._one_call and self.calls.maximum is None:
            yield "Several calls in one answer stand together in this form:"
            yield _form(self.calls, 2)

    def _rules(self) -> Iterator[str]:
        choice = self.request.tool_choice
        if choice == "named":
            yield f"Answer with exactly one call of `{self.request.named_tool}`. Write nothing before it."
        elif self.request._one_call or self.calls.maximum is not None:
            yield "Write at most one call in an answer."
        if choice == "required":
            yield "Answer with a call. Write nothing before it."
        if choice == "auto" and self.request.response_schema is not None:
            yield "Call a function only when it is needed, and write nothing else then. Any other answer is JSON alone."
        elif choice == "auto":
            place = "after" if self.tools_first else "before"
            yield f"Call a function only when it is needed. What you say to the user comes {place} the calls."
        if self.results_as_text:
            opened = RESULT_OPEN.format(name="NAME").strip()
            yield f"Wait for the results, which the next message holds between `{opened}` and `{RESULT_CLOSE.strip()}`."


def call_form(syntax: CallSyntax) -> str:
    """Return the form of a call, with a capitalized word for each variable part.

    >>> from unrender import Format
    >>> print(call_form(Format.named("tool-call-json").tools))
    <tool_call>
    {"name": "NAME", "arguments": ARGUMENTS}
    </tool_call>
    """
    return _form(calls_in_syntax(Format(), syntax), 1)


def _form(calls: Calls, count: int) -> str:
    names = {slot: slot.name for slot in Slot}
    arguments = calls.arguments
    inside = filled(arguments.entry, names) if arguments.entry else Slot.ARGUMENTS.name
    call = filled(calls.function, {**names, Slot.ARGUMENTS: arguments.open.text + inside + arguments.close.text})
    return run_of(calls, [call] * count).strip()


def _listed(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _explained(calls: Calls) -> Iterator[str]:
    """Yield a sentence for each capitalized word in the form of a call."""
    arguments = calls.arguments
    yield "NAME is the name of the function."
    if Slot.ID in calls.function:
        form = f" of {calls.id_length} letters or digits" if calls.id_length else ""
        yield f"ID is a name{form} that you give to this call, another one for each call."
    if Slot.INDEX in calls.function:
        yield f"INDEX counts your calls, from {calls.index_start}."
    if arguments.entry:
        yield from _explained_entry(arguments)
    else:
        yield f"ARGUMENTS is {notation_of(arguments.codec).object_kind} with all arguments by name."
    if arguments.empty is not None:
        yield f"Without arguments, write {_named(arguments.empty)} in their place."


def _explained_entry(arguments: ArgumentsPart) -> Iterator[str]:
    between = f", with {_named(arguments.separator.text)} between them" if arguments.separator.text else ""
    yield f"`{filled(arguments.entry, {slot: slot.name for slot in Slot}).strip()}` is written once for each argument{between}."
    yield f"KEY is the argument's name, VALUE its value: {'; '.join(notation_of(arguments.codec).sentences)}."
    if arguments.codec.typed_by is Typing.ATTRIBUTE:
        words = ", ".join(f"{word} for {kind}" for kind, word in arguments.codec.types)
        yield f"TYPE tells the type of the value: {words}."


def _named(text: str) -> str:
    """Return a description of common whitespace, such as "a line break". Any other text is returned in backquotes."""
    names = {"": "nothing", " ": "a space", "\n": "a line break", "\n\n": "an empty line"}
    return names.get(text, f"`{text}`")


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
