"""Defines what a parser emits: final events, never retracted, in the order of the text.

Rules: text events carry at least one character; `ToolCallStarted` comes once per call, before its arguments, and
`ToolCallFinished` once, after them; indices count up from 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from unrender.messages.wire import CallStatus, ToolCall


@dataclass(frozen=True, slots=True)
class ReasoningText:
    """More of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ContentText:
    """More of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """A call has begun: its name and id are final. `offered` is False when no such tool was offered."""

    index: int
    id: str
    name: str
    offered: bool = True
    position: int = field(default=0, compare=False, repr=False)
    """The character of the output at which the call's text begins; below 0 where the prompt wrote its beginning."""


@dataclass(frozen=True, slots=True)
class ArgumentsText:
    """More of a call's arguments, as JSON text; the fragments of a complete call add up to one JSON object."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallFinished:
    """A call has ended: complete, truncated by the end of the output, or invalid."""

    index: int
    status: CallStatus
    text: str = field(default="", repr=False)
    """The text of a call that failed, where all of it was given as its arguments."""
    position: int = field(default=0, compare=False, repr=False)
    """The character of the output at which the call's text ends."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """A place that the format does not allow: the text found, its position, and what was expected."""

    text: str
    position: int
    expected: str
    call: ToolCall | None = field(default=None, repr=False)
    """The call that failed here and is not among the message's calls, as far as it was read."""


@dataclass(frozen=True, slots=True)
class MessageFinished:
    """The end of the output; nothing follows."""


Event = ReasoningText | ContentText | ToolCallStarted | ArgumentsText | ToolCallFinished | Malformed | MessageFinished


@dataclass(frozen=True, slots=True)
class BrokenText:
    """Text with the shape of a call that could not be read as one. It leaves the parser as content, or is dropped."""

    text: str
