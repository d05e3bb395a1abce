"""The machine: runs a program over text that arrives in pieces, and emits events that are final.

Strategy: an LPeg-style machine whose whole state is plain data. An instruction that runs out of input leaves everything
as it is and suspends; the next piece resumes it, so nothing is parsed twice. `steps` counts instructions, so that tests can
assert linear work.

Rules:
- An instruction moves `at` and `pc`, and returns True only to suspend. It never suspends once `final` is set.
- Only `fail` goes back, and only to the latest frame; without one, reading goes on at `recover`. What is committed is never undone.
- While a way back is open, what was found since waits with it; when it closes, that is final, and never taken back.
- `buffer[:at]` is not needed. What a way back would read again waits in `past`, and going back puts it before the buffer again.
- What is read again is bounded by the text's length. The bound depends on the text alone, never on its chunks.
- White space between calls is carried: it is content if more content follows, and layout if none does; so it is not final before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from unrender.errors import ParseError
from unrender.limits import FREE_REREADS, MAX_GIVEN_BACK
from unrender.machine.events import ArgumentsText, BrokenText, ContentText, Event, Malformed, ReasoningText
from unrender.machine.frames import IN_CALLS, CallState, Frame, StackEntry
from unrender.machine.ids import CallIds
from unrender.machine.past import ReadText, up_to
from unrender.machine.policy import USUAL, Policy, instead_of_silence, refuse
from unrender.machine.quotation import Quotation
from unrender.messages.wire import Request, ToolCall
from unrender.nodes import Role
from unrender.values.resumable import Resumable, Scanner, Taker

OR = " or "
"""Between what could have been at one place."""
CONTEXT = 40
"""Characters of context on each side that an error shows."""
_TEXTS = frozenset((Role.CONTENT, Role.REASONING))
_VALUES = frozenset((Role.ARGUMENT, Role.VALUE))


class Instruction(Protocol):
    """One instruction: frozen data, with the step that it takes."""

    def step(self, machine: Machine) -> bool | None:
        """Advance the machine; return True to suspend it until there is more text."""
        ...


Program = tuple[Instruction, ...]


@dataclass(slots=True, eq=False, kw_only=True)
class Machine(Resumable):
    """Runs a program over one answer. It suspends at the end of the text, and resumes with the next chunk.

    Positions count characters from the beginning of the output; text that the prompt has written is before 0.
    """

    program: tuple[Any, ...]
    request: Request
    ids: CallIds
    roles: dict[Role, Role]
    """Roles mapped to other roles, e.g. reasoning to content if the caller requests it."""
    policy: Policy = USUAL
    strict: bool = False
    specials: tuple[str, ...] = ()
    """Texts of special tokens, if the caller distinguishes them from text: such a marker is never a quotation."""
    given: bool = False
    """Text left of position 0 was written by a generation prompt: it is never content."""
    length_limited: bool = False
    final: bool = False
    halted: bool = False
    pc: int = 0
    steps: int = 0
    """Instructions executed so far."""
    buffer: str = ""
    at: int = 0
    """The position of the reading in `buffer`."""
    base: int = 0
    """The position of `buffer[0]`."""
    past: ReadText = field(default_factory=ReadText)
    scanner: Scanner | None = None
    flow: Taker | None = None
    """Fast path for more text of the same kind; None if an instruction has to decide."""
    events: list[Event | BrokenText] = field(default_factory=list)
    """Events that were found and have not been released."""
    released: int = 0
    """The number of events, of those that `Frame.events` counts, that are out already."""
    span_roles: list[Role] = field(default_factory=list)
    span_ends: list[int] = field(default_factory=list)
    carried: list[str] = field(default_factory=list)
    """White space between calls: content when more content follows them."""
    carried_spans: list[int] = field(default_factory=list)
    answered: bool = False
    """True if content has started; until then, whitespace between parts is layout."""
    mentioned: bool = False
    """A marker of reasoning that the format does not have has been met."""
    fenced: bool = False
    """A Markdown fence around a call is open."""
    frames: list[Frame] = field(default_factory=list)
    """The ways back that are open, the latest last."""
    serial: int = 0
    """Ways back that were opened with a number."""
    left: Frame | None = None
    """The way back of an attempt that has failed, for the instruction that opened it."""
    recover: int = 0
    """The target if parsing fails without a backtracking point."""
    broke: bool = False
    """Reading has broken off."""
    failed_at: int = 0
    """The furthest position of attempts at one place, in `buffer`."""
    wanted: str = ""
    reread: int = 0
    """Characters that were read for nothing, and then again."""
    searched: int = 0
    """Characters of calls that were looked through for a repair."""
    barrier: int = 0
    """The end of the latest failed call: its text opens no quotation."""
    cut_from: int = -1
    """The position of a marker after which the token limit has cut the output off."""
    call: CallState | None = None
    calls: int = 0
    closed: int = 0
    """Closing markers of the current call, or section, that have been consumed."""
    loose: bool = False
    """True if the run of calls started without its outermost marker."""
    separated: int = -1
    """The position after the latest separator between calls: nothing but a call may be there."""
    refused: bool = False
    """The end is read of a call that broke, and is content to its end."""
    stack: StackEntry | None = None
    """The rules, choices, loops and tags that are open."""
    tag: Role | None = None
    """The open tag, whose role applies to consumed text."""
    counted: int = 0
    """Characters of a run that has not ended."""

    def copy(self) -> Self:
        """Return an independent reading in the same state."""
        # `slots` makes a second class, of which a bare `super()` knows nothing.
        other = super(Machine, self).copy()
        other.frames = [frame.copy() for frame in self.frames]
        return other

    def feed(self, text: str) -> list[Event | BrokenText]:
        """Run over more text until an instruction suspends or halts; return the events that are final."""
        self.forget()
        self.buffer = self.buffer + text if self.buffer else text
        program, steps = self.program, 0
        self.flow = None
        while not self.halted:
            steps += 1
            if program[self.pc].step(self):
                break
        self.steps += steps
        return self.take_final()

    def finish(self, text: str = "") -> list[Event | BrokenText]:
        """Run to the end of the answer, over the last of the text: no more will come."""
        events: list[Event | BrokenText] = []
        if self.length_limited:
            # What is undecided after all of the text is what the limit has cut off.
            events, text = self.feed(text), ""
            for frame in self.frames:
                frame.cut = True
            if self.call:
                self.call.cut = True
        self.final = True
        events += self.feed(text)
        # With `tool_choice="required"`, the answer "Hello!" is wrong only now. One that was cut off might have called later.
        expected = instead_of_silence(self.request, self.calls)
        if not expected or self.length_limited:
            return events
        self.malformed("", expected)
        return [*events, *self.take_final()]

    def take_final(self) -> list[Event | BrokenText]:
        """Return the final events: those found before the first way back. Raises `ParseError` for the first deviation when strict."""
        # `frame.events` counts all that was ever found, and `self.events` lacks what is out already.
        count = self.frames[0].events - self.released if self.frames else len(self.events)
        if not count:
            return []  # The waiting events may be many: the list is not copied.
        released, self.events = self.events[:count], self.events[count:]
        self.released += count
        if self.strict:
            refuse(released)
        return released

    def go_on(self) -> bool:
        """Continue with the next instruction; the result of a step."""
        self.pc += 1
        return False

    def go_to(self, target: int) -> bool:
        """Continue at another instruction; the result of a step."""
        self.pc = target
        return False

    def malformed(self, text: str, wanted: str, failed: ToolCall | None = None, at: int | None = None) -> None:
        """Report text that the format does not allow, and the call that failed there; raises `ParseError` when strict.

        `at` is where the text is, if it was read before: that is refused when it is final.
        """
        position = self.position if at is None else at
        if self.strict and at is None:
            # An earlier deviation that is already final comes first, as it would with smaller chunks.
            # The events before the first way back are final: what was found there is older than this.
            refuse(self.events[: self.frames[0].events - self.released] if self.frames else self.events)
            around = self.buffer[max(0, self.at - CONTEXT) : self.at + CONTEXT]
            raise ParseError(position, wanted, around)
        self.events.append(Malformed(text, position, wanted, failed))

    # Text.

    @property
    def position(self) -> int:
        """The present position in the output."""
        return self.base + self.at

    def may_begin(self, text: str) -> bool:
        """Return whether the rest of the buffer is a prefix of `text`, and the output isn't final."""
        return not self.final and text.startswith(self.buffer[self.at : self.at + len(text)])

    def needed_from(self) -> int:
        """Return the position from which text is still needed.

        Ways back need it, and so do a value whose end is in doubt, and a call that may fail, whose text may become content.
        """
        first = self.base + self.at - (self.scanner.behind if self.scanner else 0)
        if self.frames:
            first = min(first, self.frames[0].at)
        if (call := self.call) is not None:
            if call.value is not None:
                first = min(first, call.value)
            if self._may_become_content(call):
                first = min(first, call.start)
        return first

    def forget(self) -> None:
        """Remove consumed text from the buffer; the part that is still needed is kept in `past`."""
        if size := self.at:
            self.past.add(self.buffer[:size], self.base, self.needed_from())
            self.buffer = self.buffer[size:]
            self._shift(-size)

    def recall(self, position: int) -> None:
        """Put text back before the buffer, so that it begins no later than `position`."""
        if position < self.base:
            text = self.past.take_back(self.base - position)
            self.buffer = text + self.buffer
            self._shift(len(text))

    def _shift(self, size: int) -> None:
        """The buffer begins `size` characters earlier than it did."""
        self.base -= size
        self.at += size
        self.failed_at += size

    def recent(self, begin: int, end: int) -> str:
        """Return the text between two positions, as far as it's still stored. The buffer stays: places in it hold their meaning."""
        if begin >= self.base:
            return self.buffer[begin - self.base : end - self.base]
        start, pieces = self.base, [self.buffer[: max(end - self.base, 0)]]
        for text in self.past:
            pieces.append(text)
            start -= len(text)
            if start <= begin:
                break
        return "".join(reversed(pieces))[max(begin - start, 0) : max(end - start, 0)]

    def since(self, position: int) -> str:
        """Return the text read from `position` on; it must still be needed."""
        return self.recent(position, self.position)

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

    # What is consumed: each character gets its role, and text becomes an event.

    def take(self, role: Role, end: int) -> None:
        """Consume the text up to `end` as `role`, without an event."""
        if end <= self.at:
            return
        if self.tag is not None:
            self.take_value(end, None)
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

    def take_value(self, end: int, value: str | None) -> None:
        """Consume text of the tag that is open, if one is; `value` is its JSON, where it is read as a value."""
        if self.tag is None:
            self.take(Role.MARKER, end)
            return
        if self.tag not in IN_CALLS:
            self.text(self.tag, end)
            return
        text = self.buffer[self.at : end]
        if value is None or self.tag not in _VALUES:
            if self.tag is not Role.CALL:
                self.current.pieces.append(text)
        elif text or value:
            self.current.streamed = True
            self.arguments(value)
        self.at = end
        if text:
            self.add_span(IN_CALLS[self.tag], self.base + end)

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
        # `A<call>\n<call>B`: the line break is content, which only the B shows. What the prompt wrote is no content.
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
                # The last span may have grown since: `a <b` is one span of content, final only up to the `<`.
                spans[-1] = (spans[-1][0], frame.span_end)
        return up_to(spans, self.final_end)

    @property
    def final_end(self) -> int:
        """The end of the last final span. What is carried may become content, and so may a call that fails."""
        first = self.frames[0] if self.frames else None
        end = self.span_end if first is None else first.span_end if first.spans else 0
        if self.carried_spans and not self.final:
            carried = self.carried_spans[0]
            end = min(end, self.span_ends[carried - 1] if carried else 0)
        return min(end, self.call.start) if self.call and self._may_become_content(self.call) else end

    # Ways back.

    def way_back(self, targets: tuple[int, ...], otherwise: int) -> Frame:
        """Open a way back to this place, and return it: `targets` are tried in order, and finally `otherwise`."""
        events = self.released + len(self.events)
        frame = Frame(targets, otherwise, self.base + self.at, events, len(self.span_ends), self.span_end, self.calls)
        # What was tried from here was cut off; if something else is tried from here, it is as well.
        frame.cut = frame.at == self.cut_from
        frame.saved = self.call.kept() if self.call else None
        frame.stack, frame.tag = self.stack, self.tag
        self.frames.append(frame)
        return frame

    def open(self, targets: tuple[int, ...], *, holds: bool = False) -> int:
        """Open a way back that only its own end closes; return its serial number."""
        self.serial += 1
        frame = self.way_back(targets[:-1], targets[-1])
        frame.holds, frame.reported, frame.serial = holds, False, self.serial
        return self.serial

    def close(self, serial: int) -> None:
        """Close the way back with this number, and all later ones; do nothing if a cut has closed it."""
        # `("a" cut "b" / "c")`: the cut has closed the choice's way back before its end does.
        while serial and self.frames and self.frames[-1].serial >= serial:
            self.frames.pop()

    def rewind(self, serial: int) -> bool:
        """Undo everything read since the way back with this number was opened, and close it.

        Return False when too much text was read again already.
        """
        while self.frames[-1].serial > serial:
            self.frames.pop()
        frame = self.frames.pop()
        self.failed_at = max(self.failed_at, self.at)
        # What a lookahead has read is read again after it, so it counts like an attempt that failed.
        self.reread += 1 + self.position - frame.at
        self.go_back(frame)
        return not self.exhausted()

    def fail(self, wanted: str) -> bool:
        """Handle a mismatch: go back to the latest frame, or break off if there is none. Return False, as a step does."""
        call = self.call
        if not (self.frames and call and call.unoffered):  # It failed at its name, before this.
            self.failed_here(wanted)
        if not self.frames:
            return self.break_off(wanted)
        frame = self.frames[-1]
        if frame.quotation and not frame.whole and call and call.committed:
            if self.calls - call.begun > frame.calls:  # Nobody knows whether the calls before this one are quoted.
                return self.quote()
            # The call may be quoted, and breaks: it fails like any other.
            self.frames.pop()
            return self.break_off(wanted)
        # Each attempt is paid for, even where it has read nothing.
        self.reread += 1 + self.position - frame.at
        if self.exhausted():
            return False
        frame.alone |= call is not None and call.name != ""
        frame.limited = self.cut_at(frame)
        if frame.limited and call and call.name:
            frame.call = call
            call.begun = False  # If it has begun, going back takes that back as well.
        self.go_back(frame)
        # Two syntaxes may begin with `<call>`: the other one is tried from the same place.
        if frame.targets:
            return self.go_to(frame.next_target())
        self.left = None if frame.serial else self.frames[-1]
        self.frames.pop()
        return self.go_to(frame.otherwise)

    def failed_here(self, wanted: str) -> None:
        """Record the expected text at the position of a failure."""
        # Of several attempts the one that came furthest says what was wanted; those at one place are joined: "'{' or '<f='".
        if self.at > self.failed_at or not self.wanted:
            self.wanted = wanted
        elif self.at == self.failed_at and wanted not in self.wanted.split(OR):
            self.wanted += OR + wanted
        self.failed_at = max(self.at, self.failed_at)

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
        self.calls, self.call = frame.calls, frame.saved.restored() if frame.saved else None
        self.stack, self.tag = frame.stack, frame.tag

    def break_off(self, wanted: str) -> bool:
        """Continue without a backtracking point. Return False, as a step does."""
        self.wanted, self.broke = wanted, True
        self.stack = self.scanner = None
        return self.go_to(self.recover)

    def exhausted(self) -> bool:
        """Return whether the backtracking limit was exceeded; the failure is then at the first backtracking point."""
        if self.reread <= MAX_GIVEN_BACK * max(self.base + self.failed_at, 0) + FREE_REREADS:
            return False
        if self.frames:
            self.go_back(self.frames[0])
            self.frames.clear()
        self.break_off("text that the grammar reads in fewer attempts")
        return True

    @property
    def rereads(self) -> bool:
        """True if text that broke off may be searched for another beginning: that is allowed a bounded number of times."""
        return self.reread <= self.position + FREE_REREADS

    def cut_at(self, opened: Frame | CallState) -> bool:
        """Return whether the token limit cut the output off inside the part that starts there."""
        return self.length_limited and self.final and (opened.cut or self.failed_at >= len(self.buffer))

    # Calls that may be quoted.

    @property
    def quotation(self) -> Quotation | None:
        """The open quotation before the current call; None if it can't be quoted."""
        return self.frames[-1].quotation if self.frames else None

    def quote(self) -> bool:
        """Make all that was read since the quotation began text. Return False, as a step does."""
        frame, end = self.frames.pop(), self.position
        self.go_back(frame)
        self.malformed(self.buffer[self.at : end - self.base], "a call that is not quoted")
        self.answered = self.answered or frame.role is Role.CONTENT
        self.scanner, self.fenced = None, False
        self.carried, self.carried_spans = [], []
        self.text(frame.role, end - self.base)
        return self.go_to(frame.hub)

    # The stack.

    def push(self, **held: int | Role | None) -> None:
        """Put an entry on the stack."""
        depth = self.stack.depth + 1 if self.stack else 1
        self.stack = StackEntry(self.stack, depth, **held)  # type: ignore[arg-type]

    def pop(self) -> StackEntry:
        """Remove the latest entry from the stack, and return it."""
        entry = self.stack
        assert entry is not None
        self.stack = entry.below
        return entry

    # Calls.

    @property
    def current(self) -> CallState:
        """The current call, for code that runs only inside one."""
        assert self.call is not None
        return self.call

    def given_as_written(self, call: CallState) -> bool:
        """Return whether the caller has been told of the call's beginning, or will be before its end."""
        given = self.policy.tool_calls == "streamed" and not call.unoffered
        return given and bool(call.name) and not self.surplus(call)

    def _may_become_content(self, call: CallState) -> bool:
        """Return whether the text of a call is content if the call fails."""
        # `{"name": "f", "arguments": {"a": 1}, "id":`: with its name a call that is given as it is written stays one.
        return not call.begun and not self.given_as_written(call)

    def surplus(self, call: CallState) -> bool:
        """Return whether a call comes after the only one that the request allows."""
        return not call.begun and self.calls > 0 and self.request._one_call

    def arguments(self, text: str) -> None:
        """Keep argument text, and emit it if the caller was told of the call."""
        call = self.current
        if not text:
            return
        call.arguments.append(text)
        if call.begun:
            self.events.append(ArgumentsText(self.calls - 1, text))
