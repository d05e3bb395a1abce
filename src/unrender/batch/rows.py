"""Defines the result of parsing a recorded answer, with its status and the reasons for the status."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from unrender import Malformed, Message, RequestError
from unrender.limits import MAX_SHOWN_ITEMS

_QUOTED = 80
"""Maximum number of characters of the model's text that a warning quotes."""


class Status(StrEnum):
    """Outcome of parsing an answer."""

    COMPLETE = "complete"
    """The whole answer was parsed, possibly with tolerated deviations."""
    TRUNCATED = "truncated"
    """The answer ends inside a call, or the engine's finish reason is `length`."""
    MALFORMED = "malformed"
    """Part of the answer doesn't match the format; the rest was parsed."""
    UNREADABLE = "unreadable"
    """The row has no answer, or its tools or messages are invalid; nothing was parsed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A recorded answer, with the known parts of its request."""

    text: str | None
    """The answer; None if only its token ids are known."""
    prompt: str | None = None
    """The rendered prompt, or its end; None if it isn't known."""
    messages: Sequence[Any] | None = None
    """The conversation before the answer; None if it isn't known."""
    tools: Any = None
    """Tools in any form that `prepare` accepts, or as JSON text; None for the reader's default tools."""
    finish_reason: str | None = None
    token_ids: Sequence[int] | None = None
    """The answer's token ids; None if they aren't known."""


def row_of(values: dict[str, Any]) -> Row:
    """Validate a row and return it. Raises `RequestError` if the row is invalid. The error names the invalid field."""
    messages, prompt, text = _conversation(values["messages"]), values["prompt"], values["text"]
    if isinstance(prompt, list | tuple):
        messages, prompt = _conversation(prompt), None
    if _missing(text) and messages:
        # If there is no text column, the last message is the answer, e.g. `[{"role": "user", …}, {"role": "assistant", "content":
        # "<think>…"}]`.
        *messages, last = messages
        text = last.get("content") if isinstance(last, Mapping) and last.get("role") == "assistant" else None
    ids = _token_ids(values["token_ids"])
    if not isinstance(text, str) and not (_missing(text) and ids is not None):
        found = "nothing" if _missing(text) else repr(text)[:80]
        raise RequestError(f"text: expected the answer's text, found {found}")
    if not _missing(prompt) and not isinstance(prompt, str):
        raise RequestError(f"prompt: expected text, found {type(prompt).__name__}")
    tools, reason = values["tools"], values["finish_reason"]
    return Row(
        text=None if _missing(text) else text,
        prompt=None if _missing(prompt) else prompt,
        messages=messages or None,
        tools=None if _missing(tools) else tools,
        finish_reason=reason if isinstance(reason, str) else None,
        token_ids=ids,
    )


def _token_ids(value: Any) -> Sequence[int] | None:
    if _missing(value):
        return None
    ids = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(ids, list | tuple) or not all(type(id) is int for id in ids):
        raise RequestError(f"token_ids: expected a list of integers, found {value!r:.80}")
    return ids


def _missing(value: Any) -> bool:
    """Return whether a table cell is empty: None or pandas' NaN."""
    return value is None or (isinstance(value, float) and value != value)  # noqa: PLR0124 - what only NaN does


def _conversation(value: Any) -> list[Any]:
    """Return the messages in a list, an array or JSON text, without the empty fields that tables add."""
    if _missing(value):
        return []
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise RequestError(f"messages: expected a list or JSON, found text that is not JSON: {error}") from None
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        raise RequestError(f"messages: expected a list, found {type(value).__name__}")
    return [
        {name: item for name, item in message.items() if item is not None or name == "content"}
        if isinstance(message, Mapping)
        else message
        for message in value
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The message parsed from one row, with its status."""

    message: Message = field(default_factory=Message)
    status: Status = Status.COMPLETE
    warnings: tuple[str, ...] = ()
    """Reasons for the status. Each warning gives a position with the expected and the actual text, or names a failed call."""


def unreadable(reason: str) -> Reading:
    """Return the result for a row that can't be read."""
    return Reading(status=Status.UNREADABLE, warnings=(reason,))


def reading_of(message: Message, broken: Sequence[Malformed], finish_reason: str | None) -> Reading:
    """Return the result for a parsed row. `broken` lists the parts of the answer that don't match the format."""
    failed = message.failed_calls
    if not broken and not failed:
        status = Status.TRUNCATED if finish_reason == "length" else Status.COMPLETE
        return Reading(message=message, status=status)
    cut_off = finish_reason == "length" or any(call.status == "truncated" for call in failed)
    told = [_told(event) for event in broken[:MAX_SHOWN_ITEMS]]
    told += [f"the call of {call.name[:_QUOTED]!r} is {call.status}" for call in failed[:MAX_SHOWN_ITEMS] if call.name]
    return Reading(
        message=message,
        status=Status.TRUNCATED if cut_off else Status.MALFORMED,
        warnings=tuple(told[:MAX_SHOWN_ITEMS]),
    )


def _told(event: Malformed) -> str:
    met = f", found {event.text[:_QUOTED]!r}" if event.text else ""
    return f"character {event.position}: expected {event.expected}{met}"
