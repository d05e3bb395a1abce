"""Holds an explanation: every character's role, where reading stopped, and what would have helped."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from unrender.format import Format
from unrender.machine.events import Event
from unrender.messages.wire import Message, ToolCall
from unrender.parser.streaming import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Where reading a call, or another part, could not go on."""

    begun: int
    """Where the part begins, counted in characters of the output."""
    position: int
    """The first character that does not fit."""
    expected: str
    """What could have been there, e.g. `the name of one of the tools`."""
    found: str
    """What was there instead, up to a line's end; empty at the end of the output."""

    def __str__(self) -> str:
        found = repr(self.found) if self.found else "the end of the output"
        return f"at character {self.position}: expected {self.expected}, found {found}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """The call syntax, other than the template's, that reads most calls of the output."""

    name: str
    """A declared format's name, or what a common syntax looks like."""
    why: str
    calls: tuple[str, ...]
    """The calls that it reads, as `name(arguments)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """A likely cause, and what to do about it."""

    name: str
    """One of the names in `unrender.explain.hints.HINTS`, e.g. `special-tokens-stripped`."""
    text: str
    fix: str

    def __str__(self) -> str:
        return f"{self.text}. {self.fix}" + ("" if self.fix.endswith("?") else ".")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """How an output was read, and why."""

    output: str
    format: Format
    """How the answer should have been written in this turn."""
    message: Message
    spans: tuple[Span, ...]
    """The role of every character, in order and without gaps."""
    events: tuple[Event, ...]
    stops: tuple[Stop, ...] = ()
    tolerances: tuple[str, ...] = ()
    """Deviations from what the template writes that were read all the same."""
    nearest: Nearest | None = None
    hints: tuple[Hint, ...] = ()
    expected: tuple[str, ...] = ()
    """What could have come after the output, as `Parser.expected` says it."""

    @property
    def clean(self) -> bool:
        """Whether everything was read, every call is whole, and nothing looks like a call that was not read."""
        return not (self.message.dead_calls or self.stops or self.hints)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that were read, and after them those that are dead: their text is content."""
        return (*self.message.tool_calls, *self.message.dead_calls)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain JSON data."""
        spans = [
            {"role": str(it.role), "start": it.start, "end": it.end, "text": self.output[it.start : it.end]}
            for it in self.spans
        ]
        calls = [
            {"name": it.name, "status": str(it.status), "arguments": it.arguments, "id": it.id} for it in self.calls
        ]
        return {
            "clean": self.clean,
            "message": self.message.to_openai(),
            "spans": spans,
            "calls": calls,
            "stops": list(map(asdict, self.stops)),
            "tolerances": list(self.tolerances),
            "nearest": self.nearest and {**asdict(self.nearest), "calls": list(self.nearest.calls)},
            "hints": list(map(asdict, self.hints)),
            "expected": list(self.expected),
        }
