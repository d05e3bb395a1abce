"""Defines the events of a parser, which are final and in the order of the text.

Rules:
- Text events contain at least one character.
- Each call has one `ToolCallStarted` before its arguments and one `ToolCallFinished` after them.
- Indices of calls start at 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from unrender.messages import CallStatus, ToolCall


@dataclass(frozen=True, slots=True)
class ReasoningText:
    """A piece of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ContentText:
    """A piece of the answer's content."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """The start of a call, with its final name and id. `offered` is False if the tool wasn't offered."""

    index: int
    id: str
    name: str
    offered: bool = True
    position: int = field(default=0, compare=False, repr=False)
    """Index of the call's first character in the output. Negative if the call starts in the prompt."""


@dataclass(frozen=True, slots=True)
class ArgumentsText:
    """A fragment of a call's arguments, as JSON text. The fragments of a complete call form one JSON object."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallFinished:
    """The end of a call, which is complete, truncated by the end of the output, or invalid."""

    index: int
    status: CallStatus
    text: str = field(default="", repr=False)
    """The text of a failed call, if the text was sent as the call's arguments."""
    position: int = field(default=0, compare=False, repr=False)
    """Index of the end of the call in the output."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """Text that the format doesn't allow, with its position and the expected text.

    If `ends_reasoning` is True, `text` is the end marker of reasoning without a start marker. It's the end of the preceding `ContentText`.
    All content before it is reasoning, and the message contains it as such.
    """

    text: str
    position: int
    expected: str
    call: ToolCall | None = field(default=None, repr=False)
    """The failed call at this position, as far as it was parsed. None if the call is part of the message."""
    ends_reasoning: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True)
class MessageFinished:
    """The end of the output, which is always the last event."""


Event = ReasoningText | ContentText | ToolCallStarted | ArgumentsText | ToolCallFinished | Malformed | MessageFinished


@dataclass(frozen=True, slots=True)
class BrokenText:
    """Text that looks like a call but couldn't be parsed as one. The parser returns such text as content, or drops it."""

    text: str
