"""Defines what every API's state machine offers to the rest of the gateway."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any, Literal, NamedTuple

from unrender import Event, Message, Usage
from unrender.gateway.failure import STATUSES, Failure, Kind
from unrender.gateway.schema import Object
from unrender.gateway.surfaces.ask import Ask

ReasoningField = Literal["reasoning_content", "reasoning"]
"""What reasoning is called in Chat Completions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one choice has ended."""

    message: Message
    reason: str | None = None
    """The engine's finish reason; None where it gave none."""
    stopped_by: str = ""
    """The client's stop text that ended the content."""
    warnings: tuple[str, ...] = ()
    """What was promised and is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What all frames of an answer share."""

    id: str
    model: str
    created: int
    """Seconds since 1970."""
    prompt_tokens: int = 0
    """Tokens of the prompt, as far as they are known before the engine has spoken."""
    warnings: tuple[str, ...] = ()
    """What of the request has no effect, and what else the client should know."""
    reasoning_field: ReasoningField = "reasoning_content"
    stored: bool = False
    """The answer will be stored, for later requests to refer to."""


class Surface:
    """One answer in one API's form: frames as it streams, and the whole of it afterwards."""

    def __init__(self, ask: Ask, head: Head) -> None:
        self._ask = ask
        self._head = head
        self._outcomes: dict[int, Outcome] = {}
        self._usage: Usage | None = None

    def begin(self) -> bytes:
        """Return the frames that come before all others."""
        raise NotImplementedError

    def frames(self, index: int, events: Sequence[Event], logprobs: Sequence[Mapping[str, Any]] = ()) -> bytes:
        """Return the frames for more events of a choice; `logprobs` belong to the content among the events."""
        raise NotImplementedError

    def end(self, index: int, outcome: Outcome) -> bytes:
        """Return the frames that end a choice."""
        raise NotImplementedError

    def finish(self, usage: Usage) -> bytes:
        """Return the frames that end the answer, after all choices have ended."""
        raise NotImplementedError

    def body(self) -> dict[str, Any]:
        """Return the whole answer, after `finish`."""
        raise NotImplementedError

    def failed(self, failure: Failure) -> bytes:
        """Return the frames that end an answer which began and cannot be finished."""
        raise NotImplementedError

    def ping(self) -> bytes:
        """Return a frame without meaning that keeps a silent connection open: a comment, which clients ignore."""
        return b": ping\n\n"

    def _warnings(self) -> dict[str, list[str]]:
        """Return the field with the warnings so far; nothing where there are none."""
        said = [*self._head.warnings, *(one for outcome in self._outcomes.values() for one in outcome.warnings)]
        return {"warnings": said} if said else {}


class Api(NamedTuple):
    """One API: how a request is read, answered and refused."""

    name: str
    request: type[Object]
    """What a request may say."""
    read: Callable[[Any], Ask]
    surface: Callable[[Ask, Head], Surface]
    refusal: Callable[[Failure], dict[str, Any]]
    new_id: Callable[[], str]
    statuses: Mapping[Kind, int] = STATUSES
    """The HTTP statuses that differ from the others' APIs."""
    stores: bool = False
    """Its answers may be stored."""
    counts: bool = False
    """Its answers begin with what the prompt has cost."""


def quoted(text: str) -> bytes:
    """Return a text as JSON. Half a surrogate pair stays an escape, since UTF-8 has no form for it.

    >>> quoted("é!").decode()
    '"é!"'
    """
    try:
        return encode_basestring(text).encode()
    except UnicodeEncodeError:
        return encode_basestring_ascii(text).encode()
