"""Reads one recorded answer: its message, how well it could be read, and why not better.

Strategy: what decides how an answer is read is its tools and what its prompt has begun; few answers differ in these. A
parser is made for each once, and copied for every answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import blake2b
from typing import Any

from unrender import CallStatus, ChatTemplate, Malformed, Message, MessageError, Parser, Policy, Request, Turn, prefill
from unrender.format import Format
from unrender.limits import LONGEST_PROMPT_TAIL, MOST_WARNINGS

_PARSERS = 1_000
"""Parsers that are kept, each for other tools or another beginning."""
_QUOTED = 80
"""Characters of the model's text that a warning repeats."""


class Status(StrEnum):
    """How well an answer could be read."""

    COMPLETE = "complete"
    """All of it, as the format writes it or near enough."""
    TRUNCATED = "truncated"
    """It ends in a call, or the engine says that it was cut off."""
    MALFORMED = "malformed"
    """Something in it is not what the format writes; the rest was read."""
    UNREADABLE = "unreadable"
    """The row has no answer, or its tools or messages cannot be used; nothing was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One recorded answer, and what is known about its request."""

    text: str
    prompt: str | None = None
    """The rendered prompt, or its tail; None when it is not known."""
    messages: Sequence[Any] | None = None
    """The conversation before the answer; None when it is not known."""
    tools: Any = None
    """As `prepare` takes them, or as JSON text; None for the reader's own."""
    finish_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one row means."""

    message: Message = field(default_factory=Message)
    status: Status = Status.COMPLETE
    reasons: tuple[str, ...] = ()
    """What was expected where something else was met, or why the row is unreadable: words that repeat, to be counted."""
    warnings: tuple[str, ...] = ()
    """The same with the place and the text met, and a sentence for each call that is not whole."""


class RowReader:
    """Reads rows. `tools` is None when they are not known: then any name is a tool's.

    `format` reads the answers; `template` renders the prompts of rows with messages, with `variables` of its own. `begun` is
    what the generation prompt has written of an answer whose row does not show it.
    """

    def __init__(
        self,
        format: Format,
        *,
        template: ChatTemplate | None,
        tools: Sequence[Any] | None,
        begun: str,
        policy: Policy | None,
        variables: Mapping[str, Any],
    ) -> None:
        self._reading = ChatTemplate.from_string("", format=format)
        self._template = template
        self._tools = tools
        self._begun = begun
        self._policy = policy
        self._variables = variables
        self._parsers: dict[Any, Parser] = {}

    def read(self, row: Row) -> Reading:
        """Return what the row means.

        Raises `MessageError` or `TemplateError` when its request is malformed, but nothing because of the answer.
        """
        parser = self._parser(row)
        events = parser.finish(row.finish_reason, text=row.text)
        broken = [event for event in events if type(event) is Malformed]
        return _reading(parser.message, broken, row.finish_reason)

    def _parser(self, row: Row) -> Parser:
        ids = None if self._reading.format.tools.id_parts is not None else _TextIds(row.text)
        if row.messages is not None:
            return self._rendered(row, row.messages).parser(policy=self._policy, ids=ids)
        # `…<bot><think>\n`: of a long prompt, the tail shows whether reasoning is open. Few rows differ in that.
        begun = self._begun if row.prompt is None else prefill(self._reading.format, row.prompt[-LONGEST_PROMPT_TAIL:])
        key = (_tools_key(row.tools), begun, row.prompt is None)
        parser = self._parsers.get(key)
        if parser is None:
            request = self._request(self._tools_of(row))
            turn = Turn(prompt=row.prompt or "", request=request, format=self._reading.format, begun=begun)
            parser = turn.parser(policy=self._policy)
            if key[0] is not None:
                if len(self._parsers) == _PARSERS:
                    self._parsers.clear()
                self._parsers[key] = parser
        return parser.copy(ids=ids)

    def _rendered(self, row: Row, messages: Sequence[Any]) -> Turn:
        if self._template is None:
            raise MessageError("messages: a format renders no prompt; give the reader a template, or the rows a prompt")
        tools = self._tools_of(row)
        turn = self._template.prepare(messages, tools=tools, **self._variables)
        return replace(turn, request=replace(turn.request, tools=self._request(tools).tools))

    def _request(self, tools: Any) -> Request:
        """Return a request with these tools. Without any, `prepare` reads no calls; here any name is a tool's."""
        return Request(tools=None) if tools is None else self._reading.turn(tools=tools).request

    def _tools_of(self, row: Row) -> Any:
        if row.tools is None:
            return self._tools
        return _json_tools(row.tools) if isinstance(row.tools, str) else row.tools


def unreadable(reason: str) -> Reading:
    """Return the reading of a row that cannot be read."""
    return Reading(status=Status.UNREADABLE, reasons=(reason,), warnings=(reason,))


def _reading(message: Message, broken: Sequence[Malformed], finish_reason: str | None) -> Reading:
    dead = message.dead_calls
    if not broken and not dead:
        status = Status.TRUNCATED if finish_reason == "length" else Status.COMPLETE
        return Reading(message=message, status=status)
    cut_off = finish_reason == "length" or any(call.status is CallStatus.TRUNCATED for call in dead)
    told = [_told(event) for event in broken[:MOST_WARNINGS]]
    told += [f"the call of {call.name[:_QUOTED]!r} is {call.status}" for call in dead[:MOST_WARNINGS]]
    return Reading(
        message=message,
        status=Status.TRUNCATED if cut_off else Status.MALFORMED,
        reasons=tuple(event.expected for event in broken[:MOST_WARNINGS]),
        warnings=tuple(told[:MOST_WARNINGS]),
    )


def _told(event: Malformed) -> str:
    met = f", found {event.text[:_QUOTED]!r}" if event.text else ""
    return f"character {event.position}: expected {event.expected}{met}"


def _tools_key(tools: Any) -> str | None:
    """Return what is equal for no tools that differ; None where there is no such key, as for functions."""
    if tools is None or isinstance(tools, str):
        return tools or ""
    try:
        return json.dumps(tools)
    except (TypeError, ValueError, RecursionError):
        return None


def _json_tools(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MessageError(f"tools: expected JSON: {error}") from None


class _TextIds:
    """Makes ids from an answer's text and a call's position: the same in every run, and others for another answer."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __call__(self, position: int, _name: str) -> str:
        digest = blake2b(self._text.encode(errors="surrogatepass"), salt=position.to_bytes(16, "big"))
        return digest.hexdigest()[:9]  # The strictest form that templates ask of an id: nine letters and digits.
