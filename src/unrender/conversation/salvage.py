"""Find calls that a server left in the text of a message, for callers without the template and the raw output.

Input: a message and the offered tools. Output: the message with its calls. The calls are parsed in the only format that fits the text.
Candidates are the declared formats, and the syntaxes in `formats/markers/calls.json`.

Rules: Each call must use an offered tool, and its arguments must match the schema. Calls must start on a new line or with a special token,
and nothing may follow them. If several formats find calls, one of them must find all calls that the others find. Otherwise, no calls are
returned.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from unrender.conversation.messages import read_messages, words_in
from unrender.conversation.tools import read_offer
from unrender.errors import GrammarError, RequestError
from unrender.format import Format
from unrender.format.declared import Declared, declared_formats, known_calls
from unrender.grammar import conforms
from unrender.limits import MAX_SLOW_TEXT
from unrender.machine import Malformed, Policy
from unrender.messages import Message, Request, Tool, ToolCall
from unrender.parser.streaming import Parser
from unrender.signatures import checked

_FENCE = "```"
_ESCAPED = re.compile(r"&lt;/[\w.:-]+&gt;\s*$")
"""Matches a closing tag with escaped brackets at the end of a value."""
_TOKEN = re.compile(r"\s*(<[|｜]|\[[A-Z_]{4,}\])")
"""Matches the start of a special token."""
_POLICY = Policy(failed_calls="content")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    format: Format
    message: Message
    reports: int
    """Number of deviations from the format. A call in another format's syntax is one."""


@checked
def detect_format(text: str, tools: Sequence[Any]) -> Format | None:
    r"""Return the format of the tool calls in a text. Returns None if the text contains no calls, or if their format is ambiguous.

    The declared formats and those in `formats/markers/calls.json` are tried. `tools` has the same form as in `ChatTemplate.prepare`. Raises
    `RequestError` for malformed tools.

    >>> tools = [{"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}]
    >>> detect_format('<tool_call>{"name": "now", "arguments": {}}</tool_call>', tools).tools.call_end
    '\n</tool_call>'
    >>> detect_format('Write <tool_call>{"name": "now", "arguments": {}}</tool_call> to ask for the time.', tools)
    """
    found = _read(text, read_offer(tools).tools)
    return found.format if found else None


@checked
def rescue(message: Any, tools: Sequence[Any]) -> Message:
    r"""Return an assistant message with the tool calls that were left in its content, or at the end of its reasoning.

    A message that already has calls, or contains no unambiguous call, is returned unchanged. `message` is a dict in OpenAI's format, an SDK
    object, or the content alone. Raises `RequestError` for a malformed message or tools.

    >>> tools = [{"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}]
    >>> message = {"role": "assistant", "content": 'A moment.\n<tool_call>{"name": "now", "arguments": {}}</tool_call>'}
    >>> rescue(message, tools).tool_calls[0].name
    'now'
    """
    message = {"role": "assistant", "content": message} if isinstance(message, str) else message
    [said, *others], _ = read_messages([message])
    if others or said.role != "assistant":
        raise RequestError(f"message.role: expected 'assistant', found {said.role!r:.60}")
    content = "".join(words_in(said.content))
    plain = Message(
        content=content,
        reasoning=said.reasoning,
        tool_calls=tuple(_call(call.name, call.arguments, call.id or "") for call in said.calls),
    )
    if said.calls:
        return plain
    offered = read_offer(tools).tools
    if found := _read(content, offered):
        return replace(found.message, reasoning=found.message.reasoning or said.reasoning)
    # Without content, search the reasoning: the server may have parsed the calls as reasoning.
    if not content.strip() and (found := _read(said.reasoning, offered)):
        thought = "\n".join(filter(None, (found.message.reasoning, found.message.content)))
        return replace(plain, reasoning=thought, tool_calls=found.message.tool_calls)
    return plain


def _call(name: str, arguments: Any, id: str) -> ToolCall:
    return ToolCall(name=name, arguments_json=arguments if isinstance(arguments, str) else json.dumps(arguments), id=id)


def _read(text: str, tools: tuple[Tool, ...]) -> _Reading | None:
    """Return the reading of `text` that includes the calls of all other readings, or None if there is no such reading."""
    if len(text) > MAX_SLOW_TEXT or not any(tool.name in text for tool in tools):
        return None
    found = list(_readings(text, tools))
    # Choose the reading with the most calls. `<tool_call>{…}</tool_call>` can also be parsed as bare JSON, which may find only the first
    # call. If a call is the whole text, parsers of other formats find it too, but report it.
    best = max(
        found, key=lambda one: (len(one.message.tool_calls), -len(one.message.content), -one.reports), default=None
    )
    agreed = best and all(_is_part(_said(other.message), _said(best.message)) for other in found)
    # If another format finds calls in the remaining content, the result is ambiguous.
    return best if best and agreed and not any(_readings(best.message.content, tools)) else None


def _readings(text: str, tools: tuple[Tool, ...]) -> Iterator[_Reading]:
    """Yield a reading for each format that finds calls in `text`, provided that all these calls are complete and in a valid position."""
    for declared in (*known_calls(), *declared_formats()):
        parser = Parser(declared.format, Request(tools=tools), policy=_POLICY)
        events = (*parser.feed(text), *parser.finish("stop"))
        message = parser.message
        if message.tool_calls and _is_sure(message, text, declared, tools):
            reports = sum(isinstance(event, Malformed) for event in events)
            yield _Reading(format=declared.format, message=message, reports=reports)


def _is_sure(message: Message, text: str, declared: Declared, tools: Iterable[Tool]) -> bool:
    """Return whether all calls are complete, fit their schemas, start on a new line or with a special token, and end the text."""
    schemas = {tool.name: tool.parameters for tool in tools}
    if message.failed_calls or not all(_fits(call, schemas) for call in message.tool_calls):
        return False
    said = (message.content, message.reasoning, *(call.arguments_json for call in message.tool_calls))
    quoted = text.count(_FENCE) > sum(part.count(_FENCE) for part in said) and _FENCE not in declared.format.to_json()
    # Reject calls with an escaped closing marker, as in `<p>Paris&lt;/p&gt;`: the escaped marker is probably meant to end the value.
    escaped = any(_ESCAPED.search(str(value)) for call in message.tool_calls for value in call.arguments.values())
    content = message.content.strip()
    rest = text[text.find(content) + len(content) :]
    apart = not content or "\n" in rest[: len(rest) - len(rest.lstrip())] or _TOKEN.match(rest) is not None
    return content in text and apart and not quoted and not escaped


def _fits(call: ToolCall, schemas: Mapping[str, Any]) -> bool:
    if call.status != "complete" or call.name not in schemas:
        return False
    try:
        return conforms(call.arguments, schemas[call.name])
    except GrammarError:  # An invalid schema doesn't restrict the arguments.
        return True


def _said(message: Message) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in message.tool_calls]


def _is_part(some: Sequence[Any], of: Sequence[Any]) -> bool:
    """Return whether the items of `some` occur in `of` in the same order."""
    left = iter(of)
    return all(any(call == other for other in left) for call in some)
