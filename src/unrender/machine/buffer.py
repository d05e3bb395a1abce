"""The machine's text: a buffer that is read once, what is kept of it for ways back, spans, and events that are final.

Rules:
- An instruction moves `at` and `pc`, and returns True only to suspend. It never suspends once `final` is set.
- `buffer[:at]` is needed no more. What a way back would read again waits in `past`, in pieces, so that nothing is copied
  with each chunk; going back puts the pieces before the buffer again.
- While a way back is open, what was found since waits with it; when it closes, that is final, and never taken back.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from operator import attrgetter
from typing import Any, ClassVar, Self

from unrender.machine.events import Event
from unrender.machine.frames import Frame
from unrender.machine.handmade.tagged import Notice
from unrender.machine.leftovers import BrokenText
from unrender.nodes import Role
from unrender.values.finder import Scanner, Taker


@cache
def _slots(kind: type) -> tuple[tuple[str, ...], attrgetter[tuple[Any, ...]]]:
    """Return the names of all that an object of this class holds, and what gets all of it."""
    names = tuple(name for part in kind.__mro__ for name in getattr(part, "__slots__", ()))
    return names, attrgetter(*names)


CONTEXT = 40
"""Characters of context on each side that an error shows."""


@dataclass(frozen=True, slots=True)
class Span:
    """The role of a piece of the output; `start` and `end` count characters from the output's beginning."""

    role: Role
    start: int
    end: int


class Buffer:
    """How far one output has been read.

    Positions count characters from the beginning of the output; text that the prompt has begun is before 0.
    """

    lists: ClassVar[tuple[str, ...]] = ("past", "frames", "events", "span_roles", "span_ends")
    """What grows while it is read: a copy gets its own."""
    __slots__ = (
        "at",
        "base",
        "buffer",
        "events",
        "final",
        "flow",
        "frames",
        "given",
        "halted",
        "past",
        "past_needed",
        "past_start",
        "pc",
        "program",
        "released",
        "rest",
        "scanner",
        "span_ends",
        "span_roles",
        "steps",
        "strict",
    )

    def __init__(self, program: tuple[Any, ...]) -> None:
        self.program: tuple[Any, ...] = program
        self.pc: int = 0
        self.buffer: str = ""
        self.at: int = 0
        """Where in `buffer` the reading is."""
        self.base: int = 0
        """The position of `buffer[0]`."""
        self.past: deque[str] = deque()
        """Text before `buffer` that is still needed, in pieces."""
        self.past_start: int = 0
        """The position of the first piece."""
        self.past_needed: int = 0
        """From which position on it was needed when it was looked at last."""
        self.given: bool = False
        """Text left of position 0 was written by a generation prompt: it is never content."""
        self.rest: int = 0
        """Where text is read that a grammar made by hand does not allow; 0 for a format."""
        self.strict: bool = False
        self.final: bool = False
        self.halted: bool = False
        self.frames: list[Frame] = []
        """The ways back that are open, the latest last."""
        self.events: list[Event | BrokenText | Notice] = []
        """What was found and has not been released."""
        self.released: int = 0
        """How much was found and is out, since a way back was opened and others were not."""
        self.span_roles: list[Role] = []
        self.span_ends: list[int] = []
        self.scanner: Scanner | None = None
        self.flow: Taker | None = None
        """What takes more of what was read last; None when only an instruction can tell."""
        self.steps: int = 0
        """Instructions executed so far."""

    def copy(self) -> Self:
        """Return an independent reading in the same state; the ways back are shared."""
        other = type(self).__new__(type(self))
        own: Any = type(self)
        names, values = _slots(own)
        deque(map(setattr, repeat(other), names, values(self)), maxlen=0)  # A loop of Python's costs twice as much.
        for name in own.lists:
            setattr(other, name, getattr(self, name).copy())
        other.scanner = self.scanner.copy() if self.scanner else None
        return other

    def feed(self, text: str) -> list[Event | BrokenText]:
        """Run over more text; return the events that are final."""
        self.forget()
        self.buffer = self.buffer + text if self.buffer else text
        return self.run()

    def finish(self, text: str = "") -> list[Event | BrokenText]:
        """Run to the end, over the last of the text: no more will come."""
        self.final = True
        return self.feed(text)

    def run(self) -> list[Event | BrokenText]:
        """Run until an instruction suspends or halts; return the events that are final."""
        program = self.program
        self.flow = None
        steps = 0
        while not self.halted:
            steps += 1
            if program[self.pc].step(self):
                break
        self.steps += steps
        return self.take_final()

    def take_final(self) -> list[Event | BrokenText]:
        """Return the final events: those found before the first way back."""
        if not self.frames:
            released, self.events, self.released = self.events, [], 0
        else:
            count = self.frames[0].events - self.released
            if not count:
                return []  # The waiting events may be many: the list is not copied.
            released, self.events = self.events[:count], self.events[count:]
            self.released += count
        return self.deliver(released)

    def deliver(self, found: list[Event | BrokenText | Notice]) -> list[Event | BrokenText]:
        """Return the events that final notices come to. Raises `MalformedOutput` for what a strict reading refuses."""
        raise NotImplementedError

    @property
    def position(self) -> int:
        """The present position in the output."""
        return self.base + self.at

    # Text.

    def needed_from(self) -> int:
        """Return the position from which on text is still needed."""
        return self.frames[0].at if self.frames else self.base + self.at

    def forget(self) -> None:
        """Remove consumed text from the buffer; the part that is still needed is kept in `past`."""
        size = self.at
        if not size:
            return
        first = self.needed_from()
        if first != self.past_needed:
            self._forget_past(first)
        kept = first - self.base
        if kept < 0:
            self.past.append(self.buffer[:size])
        elif kept < size:
            self.past.append(self.buffer[kept:size])
            self.past_start = first
        self.buffer = self.buffer[size:]
        self._shift(-size)

    def _forget_past(self, first: int) -> None:
        """Drop the pieces that end before the position `first`."""
        past, self.past_needed = self.past, first
        if first >= self.base:
            past.clear()
        while past and self.past_start + len(past[0]) <= first:
            self.past_start += len(past.popleft())

    def recall(self, position: int) -> None:
        """Put text back before the buffer, so that it begins no later than `position`."""
        if position >= self.base:
            return
        pieces = [self.buffer]
        while self.base > position:
            text = self.past.pop()
            pieces.append(text)
            self._shift(len(text))
        self.buffer = "".join(reversed(pieces))

    def since(self, position: int) -> str:
        """Return the text read from `position` on; it must still be needed. The buffer stays: places in it hold their meaning."""
        start, pieces = self.base, [self.buffer[: self.at]]
        for text in reversed(self.past):
            if start <= position:
                break
            pieces.append(text)
            start -= len(text)
        return "".join(reversed(pieces))[position - start :]

    def _shift(self, size: int) -> None:
        """The buffer begins `size` characters earlier than it did."""
        self.base -= size
        self.at += size

    def around(self) -> str:
        """Return the text around the present position, for an error's message."""
        return self.buffer[max(0, self.at - CONTEXT) : self.at + CONTEXT]

    # Ways back.

    def go_back(self, frame: Frame) -> None:
        """Undo everything read and found since the way back was opened."""
        del self.events[frame.events - self.released :]
        del self.span_roles[frame.spans :]
        del self.span_ends[frame.spans :]
        if self.span_ends:
            self.span_ends[-1] = frame.span_end
        self.recall(frame.at)
        self.at = frame.at - self.base
        self.scanner = None

    # Spans.

    def add_span(self, role: Role, end: int) -> None:
        """Give the role to all text before the position `end` that is not in a span."""
        if self.span_roles and self.span_roles[-1] is role:
            self.span_ends[-1] = end
        else:
            self.span_roles.append(role)
            self.span_ends.append(end)

    @property
    def span_end(self) -> int:
        """The end of the latest span."""
        return self.span_ends[-1] if self.span_ends else 0

    def final_spans(self) -> list[tuple[Role, int]]:
        """Return the role and the end of each final span; no way back begins before its end."""
        spans = list(zip(self.span_roles, self.span_ends, strict=True))
        if self.frames:
            frame = self.frames[0]
            del spans[frame.spans :]
            if spans:
                spans[-1] = (spans[-1][0], frame.span_end)
        return spans

    @property
    def final_end(self) -> int:
        """The end of the last final span, found without looking at the others."""
        if self.frames:
            return self.frames[0].span_end if self.frames[0].spans else 0
        return self.span_end
