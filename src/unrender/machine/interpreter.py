"""Runs a program over text that arrives in chunks, and emits final events.

Strategy: an LPeg-style machine whose state is plain data. An instruction that runs out of input leaves the state unchanged and suspends.
The next chunk resumes the instruction, so nothing is parsed twice. `steps` counts instructions, so that tests can assert linear time.

Rules:
- An instruction changes `at` and `pc`, and returns True only to suspend. No instruction suspends once `final` is set.
- Only `fail` backtracks, and only to the latest frame. Without a frame, execution continues at `recover`. Committed text is never undone.
- Events after an open backtracking point are buffered until the point is closed.
- Consumed text, `buffer[:at]`, can be removed. `past` stores it for backtracking, and `recall` prepends it to the buffer again.
- The amount of text parsed again is limited relative to the length of the text. The limit doesn't depend on the chunk boundaries.
- Whitespace between calls is buffered ("carried"). Carried whitespace is content if more content follows, otherwise layout.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from unrender.errors import ParseError
from unrender.limits import FREE_REREADS, MAX_GIVEN_BACK
from unrender.machine import (
    USUAL,
    ArgumentsText,
    BrokenText,
    CallIds,
    ContentText,
    Event,
    Malformed,
    Policy,
    ReasoningText,
    instead_of_silence,
    refuse,
)
from unrender.machine.frames import IN_CALLS, CallState, Frame, ReadText, Restart, Snapshot, up_to
from unrender.machine.quotation import Quotation
from unrender.messages import Request, ToolCall
from unrender.nodes import Role
from unrender.values import Resumable, Scanner, Taker

OR = " or "
"""Separator between expected texts in an error message."""
CONTEXT = 40
"""Number of context characters on each side of the position of an error."""
_TEXTS = frozenset((Role.CONTENT, Role.REASONING))
_VALUES = frozenset((Role.ARGUMENT, Role.VALUE))


class Instruction(Protocol):
    """Interface of instructions: frozen data with a `step` method."""

    def step(self, machine: Machine) -> bool | None:
        """Advance the machine. Return True to suspend until more text arrives."""
        ...


Program = tuple[Instruction, ...]


@dataclass(slots=True, eq=False, kw_only=True)
class Machine(Resumable):
    """Runs a program over one answer. The machine suspends at the end of a chunk, and resumes with the next one.

    Positions count characters from the start of the output. Text in the prompt has negative positions.
    """

    program: tuple[Any, ...]
    request: Request
    ids: CallIds
    roles: dict[Role, Role]
    """Replacements for roles. For example, reasoning is returned as content if the caller requests it."""
    policy: Policy = USUAL
    strict: bool = False
    specials: tuple[str, ...] = ()
    """The texts of special tokens, if the caller distinguishes special tokens from text. A special token is never part of a quotation."""
    given: bool = False
    """True if the text before position 0 is part of a generation prompt, so that this text is never content."""
    length_limited: bool = False
    stopped: bool = False
    """True if the engine reported that the model ended its turn."""
    final: bool = False
    halted: bool = False
    pc: int = 0
    steps: int = 0
    """Number of instructions executed so far."""
    buffer: str = ""
    at: int = 0
    """Current index in `buffer`."""
    base: int = 0
    """Position of `buffer[0]` in the output."""
    past: ReadText = field(default_factory=ReadText)
    restart: Restart | None = None
    """The reader of the current run of calls, and where it started. None outside of calls."""
    scanner: Scanner | None = None
    flow: Taker | None = None
    """Fast path for more text with the same role. None if the next text has to be processed by an instruction."""
    events: list[Event | BrokenText] = field(default_factory=list)
    """Events that haven't been released yet."""
    released: int = 0
    """Number of events that have been released."""
    span_roles: list[Role] = field(default_factory=list)
    span_ends: list[int] = field(default_factory=list)
    carried: list[str] = field(default_factory=list)
    """Whitespace between calls, which is content if more content follows."""
    carried_spans: list[int] = field(default_factory=list)
    answered: bool = False
    """True if content has started. Until then, whitespace between parts is layout."""
    thinks: bool = True
    """True if reasoning may start here: at the start of an answer, after a call, and after an end of turn."""
    mentioned: bool = False
    """True if the answer contained a marker of reasoning, which may have been text."""
    split: int = 0
    """Position of an end marker of reasoning without a start marker. Content before it is reasoning. 0 if there is no such marker."""
    unended: int = 0
    """Position before which no start marker of reasoning has an end marker."""
    fenced: bool = False
    """True if a Markdown fence around a call is open."""
    frames: list[Frame] = field(default_factory=list)
    """Open backtracking points, latest last."""
    left: Frame | None = None
    """The frame of a failed attempt, passed to the instruction that added the frame."""
    recover: int = 0
    """Address at which execution continues if parsing fails without a backtracking point."""
    broke: bool = False
    """True if parsing failed and there was no backtracking point."""
    failed_at: int = 0
    """Furthest index in `buffer` that the current attempts reached."""
    wanted: str = ""
    reread: int = 0
    """Number of characters parsed again after backtracking."""
    searched: int = 0
    """Number of characters searched for repairs of calls."""
    barrier: int = 0
    """End of the latest failed call. A quotation can't start before this position."""
    cut_from: int = -1
    """Position of a marker after which the token limit cut off the text. -1 if there is no such marker."""
    call: CallState | None = None
    calls: int = 0
    closed: int = 0
    """Number of end markers consumed for the current call or run of calls."""
    loose: bool = False
    """True if the run of calls started without its outermost start marker."""
    separated: int = -(1 << 30)
    """Position after the latest separator between calls, at which only a call is allowed. Before any text if there is none."""
    listed: int = -1
    """Position after the latest separator in a list of calls. Text that isn't a call is reported there."""
    refused: bool = False
    """True while the parser consumes the rest of a broken call as content."""
    unclear: bool = False
    """True if the refused call has several readings, so that a call inside it may be part of a value."""
    tag: Role | None = None
    """The open tag, whose role applies to consumed text."""

    def resume(self) -> None:
        """Start the reader of a copied machine, which reads its text again."""
        if self.restart is not None and self.restart.run is None:
            self.restart.resume(self)

    def feed(self, text: str) -> list[Event | BrokenText]:
        """Execute instructions on more text until one suspends or halts. Return the final events."""
        self.resume()
        self.forget()
        self.buffer = self.buffer + text if self.buffer else text
        return self.run()

    def run(self) -> list[Event | BrokenText]:
        """Execute instructions until one suspends or halts. Return the final events."""
        program, steps = self.program, 0
        self.flow = None
        while not self.halted:
            steps += 1
            if program[self.pc].step(self):
                break
        self.steps += steps
        return self.take_final()

    def finish(self, text: str = "") -> list[Event | BrokenText]:
        """Parse the remaining text, up to the end of the answer, and return the final events."""
        events: list[Event | BrokenText] = []
        self.resume()
        if self.length_limited:
            # Text that is still undecided at this point was cut off by the limit.
            events, text = self.feed(text), ""
            for frame in self.frames:
                frame.cut = True
            if self.call:
                self.call.cut = True
        self.final = True
        events += self.feed(text)
        # With `tool_choice="required"`, a missing call is reported at the end of the answer. If the token limit truncated the answer, don't
        # report the missing call.
        expected = instead_of_silence(self.request, self.calls)
        if not expected or self.length_limited:
            return events
        self.malformed("", expected)
        return [*events, *self.take_final()]

    def take_final(self) -> list[Event | BrokenText]:
        """Return the final events, i.e. those before the first backtracking point. A strict parser raises `ParseError` for the first
        deviation.
        """
        # `Snapshot.events` counts all events, but `self.events` no longer contains the released ones.
        count = self.frames[0].start.events - self.released if self.frames else len(self.events)
        if not count:
            return []  # Don't copy a long list of events if none is final.
        released, self.events = self.events[:count], self.events[count:]
        self.released += count
        if self.strict:
            refuse(released)
        return released

    def go_on(self) -> bool:
        """Continue with the next instruction. Always return False, so that a step can end with `return machine.go_on()`."""
        self.pc += 1
        return False

    def go_to(self, target: int) -> bool:
        """Continue at another instruction. Always return False, so that a step can end with `return machine.go_to(…)`."""
        self.pc = target
        return False

    def malformed(self, text: str, wanted: str, failed: ToolCall | None = None, at: int | None = None) -> None:
        """Report text that the format doesn't allow, and the call that failed in this text. A strict parser raises `ParseError`.

        `at` is the position of the text if it was consumed earlier. In that case, a strict parser raises the error when the event becomes
        final.
        """
        position = self.position if at is None else at
        if self.strict and at is None:
            # If an earlier deviation is final, raise the error for that deviation first, as would happen with smaller chunks.
            refuse(self.events[: self.frames[0].start.events - self.released] if self.frames else self.events)
            around = self.buffer[max(0, self.at - CONTEXT) : self.at + CONTEXT]
            raise ParseError(position, wanted, around)
        self.events.append(Malformed(text, position, wanted, failed))

    @property
    def position(self) -> int:
        """Current position in the output."""
        return self.base + self.at

    def may_begin(self, text: str) -> bool:
        """Return whether the rest of the buffer may be the start of `text`. At the end of the output, return False."""
        return not self.final and text.startswith(self.buffer[self.at : self.at + len(text)])

    def needed_from(self) -> int:
        """Return the position of the first character that is still needed.

        Text is needed after a backtracking point, in a value whose end is uncertain, and in a call that becomes content if it fails.
        """
        first = self.base + self.at - (self.scanner.behind if self.scanner else 0)
        if self.restart is not None:
            first = min(first, self.restart.needed)
        if self.frames:
            first = min(first, self.frames[0].at)
        if (call := self.call) is not None:
            if call.value is not None:
                first = min(first, call.value)
            if self._may_become_content(call):
                first = min(first, call.start)
        return first

    def forget(self) -> None:
        """Remove consumed text from the buffer. Text that is still needed moves to `past`."""
        if size := self.at:
            self.past.add(self.buffer[:size], self.base, self.needed_from())
            self.buffer = self.buffer[size:]
            self._shift(-size)

    def recall(self, position: int) -> None:
        """Prepend earlier text to the buffer, so that the buffer starts at or before `position`."""
        if position < self.base:
            text = self.past.take_back(self.base - position)
            self.buffer = text + self.buffer
            self._shift(len(text))

    def return_to(self, position: int) -> None:
        """Move back to `position`, and remove all spans after it. No event may have a position after `position`."""
        self.recall(position)
        roles, ends = self.span_roles, self.span_ends
        while ends and (ends[-2] if len(ends) > 1 else 0) >= position:
            del roles[-1], ends[-1]
        if ends and ends[-1] > position:
            ends[-1] = position
        self.at = position - self.base

    def _shift(self, size: int) -> None:
        """Adjust indices after `size` characters were prepended to the buffer. If `size` is negative, characters were removed."""
        self.base -= size
        self.at += size
        self.failed_at += size

    def recent(self, begin: int, end: int) -> str:
        """Return the text between two positions. Text that is no longer stored is missing from the result.

        The buffer doesn't change, so indices stay valid.
        """
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
        """Return the text from `position` to the current position. This text must still be stored (see `needed_from`)."""
        return self.recent(position, self.position)

    def context(self, position: int, spans: int, limit: int) -> str:
        """Return up to `limit` characters of the free text that ends at `position`. `spans` is the number of spans before `position`.

        The result is empty directly after a marker, layout or a call. The text after `position` must still be stored (see `needed_from`).
        """
        ends, roles, first = self.span_ends, self.span_roles, spans
        while first and roles[first - 1] in _TEXTS and (first == spans or position - ends[first - 1] < limit):
            first -= 1
        begin = max(position - limit, ends[first - 1] if first else position - limit)
        begin = max(begin, self.barrier or begin)
        if self.given:  # Leave out the text of a generation prompt, which isn't part of the answer.
            begin = max(begin, 0)
        return "" if first == spans or begin >= position else self.recent(begin, position)

    # Methods that consume text. Each method assigns a role to the text, and may emit events.

    def take(self, role: Role, end: int) -> None:
        """Consume the text up to `end` with the given role, without an event."""
        if end <= self.at:
            return
        if self.tag is not None:
            self.take_value(end, None)
            return
        self.at = end
        roles = self.span_roles
        # Inlined from `add_span`, because most instructions end here.
        if self.carried_spans or not roles:
            self.add_span(role, self.base + end)
        elif roles[-1] is role:
            self.span_ends[-1] = self.base + end
        else:
            roles.append(role)
            self.span_ends.append(self.base + end)

    def take_value(self, end: int, value: str | None) -> None:
        """Consume the text up to `end`, with the role of the open tag, if any. `value` is the JSON of the text, if the text was parsed as a
        value.
        """
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
        """Consume the text up to `end`, and emit it with the given role."""
        start = self.at
        if end <= start:
            return
        if self.roles:
            role = self.roles.get(role, role)
        if self.carried and role is Role.CONTENT:
            self.bring()
        # Text in the prompt, such as `<answer>` or `Sure, `, isn't content.
        if self.given and role is Role.CONTENT and start < -self.base:
            start = -self.base
        if text := self.buffer[start:end]:
            self.events.append(ReasoningText(text) if role is Role.REASONING else ContentText(text))
            self.thinks = self.thinks and text.isspace()
        self.add_span(role, self.base + end)
        self.at = end

    def carry(self, end: int) -> None:
        """Consume whitespace between calls, which is layout unless there is content on both sides of the calls."""
        # In `A<call>\n<call>B`, the line break is content because B follows. Whitespace in the prompt is never content.
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
        """Emit the carried whitespace as content."""
        self.events.append(ContentText("".join(self.carried)))
        for index in self.carried_spans:
            self.span_roles[index] = Role.CONTENT
        self.carried, self.carried_spans = [], []

    def add_span(self, role: Role, end: int) -> None:
        """Assign the role to all text before `end` that isn't in a span yet. Carried whitespace keeps its own spans."""
        roles = self.span_roles
        apart = not roles or roles[-1] is not role or (self.carried_spans and self.carried_spans[-1] == len(roles) - 1)
        if apart:
            roles.append(role)
            self.span_ends.append(end)
        else:
            self.span_ends[-1] = end

    @property
    def span_end(self) -> int:
        """End of the latest span."""
        return self.span_ends[-1] if self.span_ends else 0

    def final_spans(self) -> list[tuple[Role, int]]:
        """Return the roles and ends of the final spans, which backtracking can't change."""
        spans = list(zip(self.span_roles, self.span_ends, strict=True))
        if self.split and self.final:  # Until the end, spans are final too, and describe the events.
            spans = [
                (Role.REASONING if role is Role.CONTENT and end <= self.split else role, end) for role, end in spans
            ]
        if self.frames:
            frame = self.frames[0]
            del spans[frame.spans :]
            if spans:
                # The last span may contain text that isn't final. In `a <b`, which is one span of content, only the text before `<` is
                # final, because `<b` may start a marker.
                spans[-1] = (spans[-1][0], frame.start.span_end)
        return up_to(spans, self.final_end)

    @property
    def final_end(self) -> int:
        """End of the last final span. Carried whitespace isn't final, and neither is a call that becomes content if it fails."""
        first = self.frames[0] if self.frames else None
        end = self.span_end if first is None else first.start.span_end if first.spans else 0
        if self.carried_spans and not self.final:
            carried = self.carried_spans[0]
            end = min(end, self.span_ends[carried - 1] if carried else 0)
        return min(end, self.call.start) if self.call and self._may_become_content(self.call) else end

    def way_back(self, targets: tuple[int, ...], otherwise: int) -> Frame:
        """Add a backtracking point at the current position, and return it. The `targets` are tried in order, then `otherwise`."""
        frame = Frame(targets, otherwise, Snapshot.of(self))
        # If one attempt was cut off, other attempts at the same position are cut off too.
        frame.cut = frame.at == self.cut_from
        self.frames.append(frame)
        return frame

    def fail(self, wanted: str) -> bool:
        """Return to the latest backtracking point, or continue at `recover` if there is none.

        `wanted` is the expected text. The result is always False, so that a step can end with `return machine.fail(…)`.
        """
        call = self.call
        # Calls of unoffered tools were already reported at the tool name.
        if not (self.frames and call and call.unoffered):
            self.failed_here(wanted)
        if not self.frames:
            return self.break_off(wanted)
        frame = self.frames[-1]
        if frame.quotation and not frame.whole and call and call.committed:
            # Earlier calls of the run may be quoted too, so treat all calls of the run as text.
            if self.calls - call.begun > frame.start.calls:
                return self.quote()
            # A committed call fails without backtracking, even if it may be quoted.
            self.frames.pop()
            return self.break_off(wanted)
        # Count each attempt towards the backtracking limit, even if the attempt consumed no text.
        self.reread += 1 + self.position - frame.at
        if self.exhausted():
            return False
        frame.alone |= call is not None and call.name != ""
        frame.limited = self.cut_at(frame)
        if frame.limited and call and call.name:
            frame.call = call
            call.begun = False  # Backtracking removes the event for the start of the call.
        frame.start.restore(self)
        # Try the other alternatives at the same position. For example, two syntaxes may start with `<call>`.
        if frame.targets:
            return self.go_to(frame.next_target())
        self.left = self.frames.pop()
        return self.go_to(frame.otherwise)

    def failed_here(self, wanted: str) -> None:
        """Record the text that was expected where parsing failed."""
        # The furthest failed attempt determines the expected text. At the same position, expected texts are joined: "'{' or '<f='".
        if self.at > self.failed_at or not self.wanted:
            self.wanted = wanted
        elif self.at == self.failed_at and wanted not in self.wanted.split(OR):
            self.wanted += OR + wanted
        self.failed_at = max(self.at, self.failed_at)

    def break_off(self, wanted: str) -> bool:
        """Continue at `recover`, because no backtracking point is left. Always return False, so that a step can return the result."""
        self.wanted, self.broke = wanted, True
        self.scanner = None
        return self.go_to(self.recover)

    def exhausted(self) -> bool:
        """Return whether the backtracking limit is exceeded. If it is, return to the first backtracking point and continue at `recover`."""
        if self.reread <= MAX_GIVEN_BACK * max(self.base + self.failed_at, 0) + FREE_REREADS:
            return False
        if self.frames:
            self.frames[0].start.restore(self)
            self.frames.clear()
        self.break_off("text that needs less backtracking")
        return True

    @property
    def rereads(self) -> bool:
        """True if the backtracking limit allows parsing text again after a failure."""
        return self.reread <= self.position + FREE_REREADS

    def cut_at(self, opened: Frame | CallState) -> bool:
        """Return whether the token limit cut off the output inside `opened`, which is an attempt or a call."""
        return self.length_limited and self.final and (opened.cut or self.failed_at >= len(self.buffer))

    # Calls that may be quoted.

    @property
    def quotation(self) -> Quotation | None:
        """The open quotation before the current call. None if no quotation is open."""
        return self.frames[-1].quotation if self.frames else None

    def quote(self) -> bool:
        """Treat the text since the start of a quoted call as free text. Always return False, so that a step can return the result."""
        frame, end = self.frames.pop(), self.position
        frame.start.restore(self)
        self.malformed(self.buffer[self.at : end - self.base], "an unquoted call")
        self.answered = self.answered or frame.role is Role.CONTENT
        self.scanner, self.fenced = None, False
        self.carried, self.carried_spans = [], []
        self.text(frame.role, end - self.base)
        return self.go_to(frame.hub)

    @property
    def current(self) -> CallState:
        """The current call, which must exist."""
        assert self.call is not None
        return self.call

    def given_as_written(self, call: CallState) -> bool:
        """Return whether the call is streamed, i.e. whether its start is emitted before the call ends."""
        given = self.policy.tool_calls == "streamed" and not call.unoffered
        return given and bool(call.name) and not self.surplus(call)

    def _may_become_content(self, call: CallState) -> bool:
        """Return whether the text of the call becomes content if the call fails."""
        # A streamed call with a name can't become content, even if it's incomplete: `{"name": "f", "arguments": {"a": 1}, "id":`.
        return not call.begun and not self.given_as_written(call)

    def surplus(self, call: CallState) -> bool:
        """Return whether the request allows only one call, and this isn't the first one."""
        return not call.begun and self.calls > 0 and self.request._one_call

    def arguments(self, text: str) -> None:
        """Store a fragment of the arguments. If the start of the call was emitted, emit the fragment too."""
        call = self.current
        if not text:
            return
        call.arguments.append(text)
        if call.begun:
            self.events.append(ArgumentsText(self.calls - 1, text))
