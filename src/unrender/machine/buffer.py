"""The text that a machine reads: a buffer that is read once, the role of each character, and events that are final.

Rules:
- An instruction moves `at` and `pc`, and returns True only to suspend. It never suspends once `final` is set.
- `buffer[:at]` is needed no more. What a way back would read again waits in `past`, in pieces, so that nothing is copied
  with each chunk; going back puts the pieces before the buffer again.
- While a way back is open, what was found since waits with it; when it closes, that is final, and never taken back.
- White space between calls is carried: it is content if more content follows, and layout if none does; so it is not final
  before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Self

from unrender.limits import MAX_CONTEXT, MAX_NAME
from unrender.machine.events import BrokenText, ContentText, Event, ReasoningText
from unrender.machine.frames import Frame
from unrender.machine.handmade.tagged import IN_CALLS
from unrender.machine.policy import refuse
from unrender.nodes import Role
from unrender.values.resumable import Resumable, Scanner, Taker

CONTEXT = 40
"""Characters of context on each side that an error shows."""
_VALUES = frozenset((Role.ARGUMENT, Role.VALUE))
_TEXTS = frozenset((Role.CONTENT, Role.REASONING))


@dataclass(frozen=True, slots=True)
class Span:
    """The role of a piece of the output; `start` and `end` count characters from the output's beginning."""

    role: Role
    start: int
    end: int


@dataclass(slots=True, eq=False, kw_only=True)
class Buffer(Resumable):
    """How far one output has been read, and what its text is.

    Positions count characters from the beginning of the output; text that the prompt has begun is before 0.
    """

    program: tuple[Any, ...]
    pc: int = 0
    buffer: str = ""
    at: int = 0
    """Where in `buffer` the reading is."""
    base: int = 0
    """The position of `buffer[0]`."""
    failed_at: int = 0
    """How far the attempts at one place have come, in `buffer`."""
    past: deque[str] = field(default_factory=deque)
    """Text before `buffer` that is still needed, in pieces."""
    past_start: int = 0
    """The position of the first piece."""
    past_needed: int = 0
    """The position from which `past` was needed at the last look."""
    gone: deque[str] = field(default_factory=deque)
    """The last of the text that no way back needs, in pieces."""
    gone_size: int = 0
    barrier: int = 0
    """Where the latest failed call ends: its text opens no quotation."""
    given: bool = False
    """Text left of position 0 was written by a generation prompt: it is never content."""
    rest: int = 0
    """Where text is read that a grammar made by hand does not allow; 0 for a format."""
    strict: bool = False
    final: bool = False
    halted: bool = False
    frames: list[Frame] = field(default_factory=list)
    """The ways back that are open, the latest last."""
    events: list[Event | BrokenText] = field(default_factory=list)
    """What was found and has not been released."""
    released: int = 0
    """How many of the events that `Frame.events` counts are out already."""
    span_roles: list[Role] = field(default_factory=list)
    span_ends: list[int] = field(default_factory=list)
    scanner: Scanner | None = None
    flow: Taker | None = None
    """What takes more of what was read last; None when only an instruction can tell."""
    steps: int = 0
    """Instructions executed so far."""
    roles: dict[Role, Role]
    """Roles that are read as others: reasoning as content, where the caller wants it so."""
    carried: list[str] = field(default_factory=list)
    """White space between calls: content when more content follows them."""
    carried_spans: list[int] = field(default_factory=list)
    answered: bool = False
    """Content has begun; until then white space between parts is layout."""
    tag: Role | None = None
    """The tag that is open, in a grammar made by hand: what is consumed in it has its role."""
    name: str = ""
    """The name of the tagged call, as far as it was read."""

    def copy(self) -> Self:
        """Return an independent reading in the same state."""
        # `slots` makes a second class, of which a bare `super()` knows nothing.
        other = super(Buffer, self).copy()
        other.frames = [frame.copy() for frame in self.frames]
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
        """Return the final events: those found before the first way back. Raises `MalformedOutput` for the first deviation when strict."""
        if not self.frames:
            released, self.events, self.released = self.events, [], 0
        else:
            # `frame.events` counts all that was ever found, and `self.events` lacks what is out already.
            count = self.frames[0].events - self.released
            if not count:
                return []  # The waiting events may be many: the list is not copied.
            released, self.events = self.events[:count], self.events[count:]
            self.released += count
        if self.strict:
            refuse(released)
        return released

    @property
    def position(self) -> int:
        """The present position in the output."""
        return self.base + self.at

    def may_begin(self, text: str) -> bool:
        """Return whether what is left of the buffer is all a beginning of `text`, and more may come."""
        return not self.final and text.startswith(self.buffer[self.at : self.at + len(text)])

    # Text.

    def needed_from(self) -> int:
        """Return the position from which on text is still needed."""
        first = self.base + self.at - (self.scanner.behind if self.scanner else 0)
        return min(self.frames[0].at, first) if self.frames else first

    def forget(self) -> None:
        """Remove consumed text from the buffer; the part that is still needed is kept in `past`."""
        size = self.at
        if not size:
            return
        first = self.needed_from()
        if first != self.past_needed:
            self._forget_past(first)
        kept = first - self.base
        if kept > 0:
            end = min(kept, size)
            self._put_by(self.buffer[max(end - MAX_CONTEXT, 0) : end])
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
        # A piece in which `first` lies stays whole: to cut it would copy it again with each chunk.
        while past and (first >= self.base or self.past_start + len(past[0]) <= first):
            text = past.popleft()
            self.past_start += len(text)
            self._put_by(text)

    def pass_over(self, text: str) -> None:
        """Keep free text that was read elsewhere as context for what follows."""
        if self.past:
            self._forget_past(self.base)
        self._put_by(text)

    def _put_by(self, text: str) -> None:
        """Keep text that is needed no more as context for what follows, and drop what is too far back."""
        gone = self.gone
        gone.append(text[-MAX_CONTEXT:])
        self.gone_size += len(gone[-1])
        while self.gone_size - len(gone[0]) >= MAX_CONTEXT:
            self.gone_size -= len(gone.popleft())

    def context(self, position: int, spans: int, limit: int) -> str:
        """Return the free text that ends at `position`, after the first `spans` spans: at most `limit` characters.

        It is empty after a marker, layout or a call. Text from `position` on must still be needed.
        """
        ends, roles, first = self.span_ends, self.span_roles, spans
        while first and roles[first - 1] in _TEXTS and (first == spans or position - ends[first - 1] < limit):
            first -= 1
        begin = max(position - limit, ends[first - 1] if first else position - limit)
        begin = max(begin, self.barrier or begin)
        if self.given:  # What a generation prompt wrote is no text of the answer.
            begin = max(begin, 0)
        return "" if first == spans or begin >= position else self.recent(begin, position)

    def recent(self, begin: int, end: int) -> str:
        """Return the text between two positions, as far as it is still there."""
        start, pieces = self.base, [self.buffer]
        for text in (*reversed(self.past), *reversed(self.gone)):
            if start <= begin:
                break
            pieces.append(text)
            start -= len(text)
        return "".join(reversed(pieces))[max(begin - start, 0) : max(end - start, 0)]

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
        if position >= self.base:
            return self.buffer[position - self.base : self.at]
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
        self.failed_at += size

    def around(self) -> str:
        """Return the text around the present position, for an error's message."""
        return self.buffer[max(0, self.at - CONTEXT) : self.at + CONTEXT]

    # Ways back.

    def go_back(self, frame: Frame) -> None:
        """Undo everything read and found since the way back was opened."""
        del self.events[frame.events - self.released :]
        del self.span_roles[frame.spans :]
        del self.span_ends[frame.spans :]
        # `a <b` is one span of content: what was read after the way back may have made the last span longer.
        if self.span_ends:
            self.span_ends[-1] = frame.span_end
        self.recall(frame.at)
        self.at = frame.at - self.base
        self.scanner = None

    # What is consumed: each character gets its role, and text becomes an event.

    def take(self, role: Role, end: int) -> None:
        """Consume the text up to `end` as `role`, without an event."""
        if end <= self.at:
            return
        if self.tag is not None:
            self._take_tagged(self.tag, end, None)
            return
        self.at = end
        roles = self.span_roles
        # As `add_span`, written out: most instructions end here.
        if self.carried_spans or not roles:
            self.add_span(role, self.base + end)
        elif roles[-1] is role:
            self.span_ends[-1] = self.base + end
        else:
            roles.append(role)
            self.span_ends.append(self.base + end)

    def return_to(self, position: int) -> None:
        """Read the text from `position` on again: it was taken as the latest span, or a part of that."""
        self.recall(position)
        self.at = position - self.base
        roles, ends = self.span_roles, self.span_ends
        if len(ends) > 1 and ends[-2] >= position:
            del roles[-1], ends[-1]
        else:
            ends[-1] = position

    def take_value(self, end: int, value: str) -> None:
        """Consume a piece of a value that a grammar made by hand reads; `value` is its JSON."""
        if self.tag is None:
            self.take(Role.MARKER, end)
        else:
            self._take_tagged(self.tag, end, value)

    def _take_tagged(self, tag: Role, end: int, value: str | None) -> None:
        """Consume the text of the tag that is open; `value` is its JSON, where it is read as a value."""
        if tag not in IN_CALLS:
            self.text(tag, end)
            return
        text = self.buffer[self.at : end]
        if tag is Role.NAME and len(self.name) <= MAX_NAME:
            self.name += text
        value = value if tag in _VALUES else None
        if (text or value) and tag is not Role.CALL:
            self.add_text(text, value)
        self.at = end
        if text:
            self.add_span(IN_CALLS[tag], self.base + end)

    def add_text(self, text: str, value: str | None) -> None:
        """Give text of the open tag to its call."""
        raise NotImplementedError

    def text(self, role: Role, end: int) -> None:
        """Consume the text up to `end` and emit it."""
        start = self.at
        if end <= start:
            return
        if self.roles:
            role = self.roles.get(role, role)
        if self.carried and role is Role.CONTENT:
            self.bring()
        # `<answer>` and `Sure, ` may both be the prompt's: only what the model wrote after them is content.
        if self.given and role is Role.CONTENT and start < -self.base:
            start = -self.base
        if text := self.buffer[start:end]:
            self.events.append(ReasoningText(text) if role is Role.REASONING else ContentText(text))
        self.add_span(role, self.base + end)
        self.at = end

    def carry(self, end: int) -> None:
        """Consume white space between calls. It is layout, unless there is content on both sides of the calls."""
        # `A<call>\n<call>B`: the line break is content, which only the B shows.
        # What the prompt wrote is no content.
        begin = max(self.at, -self.base) if self.given else self.at
        if end <= begin or not self.answered or (self.frames and not self.frames[-1].quotation):
            self.take(Role.LAYOUT, end)
            return
        self.carried.append(self.buffer[begin:end])
        last = len(self.span_roles) - 1
        if self.carried_spans and self.carried_spans[-1] == last:
            self.span_ends[last] = self.base + end
        else:
            self.carried_spans.append(last + 1)
            self.span_roles.append(Role.LAYOUT)
            self.span_ends.append(self.base + end)
        self.at = end

    def bring(self) -> None:
        """Make the white space that was carried content."""
        self.events.append(ContentText("".join(self.carried)))
        for index in self.carried_spans:
            self.span_roles[index] = Role.CONTENT
        self.carried, self.carried_spans = [], []

    # Spans.

    def add_span(self, role: Role, end: int) -> None:
        """Give the role to all text up to `end` that is not in a span. Carried white space is kept apart."""
        roles = self.span_roles
        apart = not roles or roles[-1] is not role or (self.carried_spans and self.carried_spans[-1] == len(roles) - 1)
        if apart:
            roles.append(role)
            self.span_ends.append(end)
        else:
            self.span_ends[-1] = end

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
                # The last span may have grown since: `a <b` is one span of content, final only up to
                # the `<`.
                spans[-1] = (spans[-1][0], frame.span_end)
        return up_to(spans, self.final_end)

    @property
    def final_end(self) -> int:
        """The end of the last final span, found without looking at the others. What is carried may yet become content."""
        first = self.frames[0] if self.frames else None
        end = self.span_end if first is None else first.span_end if first.spans else 0
        if self.final or not self.carried_spans:
            return end
        carried = self.carried_spans[0]
        return min(end, self.span_ends[carried - 1] if carried else 0)


def relabel(roles: list[Role], ends: list[int], start: int, end: int, role: Role) -> None:
    """Give all text from `start` to `end` the role `role`.

    >>> roles, ends = [Role.CONTENT, Role.MARKER], [2, 9]
    >>> relabel(roles, ends, 4, 6, Role.CONTENT)
    >>> ends
    [2, 4, 6, 9]
    """
    # All spans from `first` to `last` are replaced; what stands out of them on either side keeps its role.
    first, last = bisect_right(ends, start), bisect_left(ends, end)
    begins = ends[first - 1] if first else 0
    new = [(roles[first], start)] if start > begins else []
    new.append((role, end))
    if ends[last] > end:
        new.append((roles[last], ends[last]))
    roles[first : last + 1] = [role for role, _ in new]
    ends[first : last + 1] = [stop for _, stop in new]


def up_to(spans: list[tuple[Role, int]], end: int) -> list[tuple[Role, int]]:
    """Return the roles and ends of spans, cut at the position `end`."""
    cut = next((i for i, (_, stop) in enumerate(spans) if stop > end), None)
    if cut is None:
        return spans
    kept = spans[:cut]
    return kept if kept and kept[-1][1] == end else [*kept, (spans[cut][0], end)]


def merged_spans(spans: list[tuple[Role, int]]) -> list[tuple[Role, int]]:
    """Join neighbours of the same role."""
    after = (*(role for role, _ in spans[1:]), None)
    return [span for span, role in zip(spans, after, strict=False) if span[0] is not role]
