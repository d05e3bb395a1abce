"""The machine: runs a program over text that arrives in pieces, and emits events.

Strategy: an LPeg-style machine whose whole state is plain data. An instruction that runs out of input leaves everything
as it is and suspends; the next piece resumes it, so nothing is parsed twice (see `buffer`). `steps` counts instructions,
so that tests can assert linear work.

There are two kinds of programs. A format's program is free text with parts in it: it tries a call where one may begin
(`attempt`), and ends the call that breaks off. A grammar made by hand may nest its parts at will, and any of them may fail:
its program keeps a stack and opens ways back at any depth (`open`). Without a way back it breaks off, and the rest is text.

Rules:
- Only `fail` goes back, and only to the latest frame; what is committed is never undone.
- No instruction of a format looks again at text that it has looked at, beyond a bounded number of characters.
- What a grammar made by hand may give back is bounded by the text's length. The bound depends on the text alone, never on
  its chunks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from unrender.errors import MalformedOutput
from unrender.limits import FREE_REREADS, MAX_CONTEXT, MAX_GIVEN_BACK
from unrender.machine.buffer import Buffer, merged_spans
from unrender.machine.events import (
    ArgumentsText,
    BrokenText,
    Event,
    Malformed,
    ToolCallFinished,
    ToolCallStarted,
)
from unrender.machine.failed_calls import cut_short_at, end_failed, fate, read_so_far
from unrender.machine.frames import CallState, Frame, StackEntry
from unrender.machine.handmade import tagged
from unrender.machine.ids import CallIds
from unrender.machine.policy import (
    USUAL,
    Policy,
    instead_of_call,
    instead_of_silence,
    refuse,
)
from unrender.machine.quotation import Quotation, going_on, opened
from unrender.messages.wire import CallStatus, Request, ToolCall
from unrender.nodes import Role
from unrender.values.coercion import ArgumentTypes
from unrender.values.resumable import Scanner

ABANDONED = 1 << 30
"""Counts as more closing markers than any call has: none is missed."""


OR = " or "
"""Between what could have been at one place."""

_BETWEEN = frozenset((Role.MARKER, Role.LAYOUT))
"""Roles of what may be between the text before a call and the call."""


class Instruction(Protocol):
    """One instruction: frozen data, with the step that it takes."""

    def step(self, machine: Machine) -> bool | None:
        """Advance the machine; return True to suspend it until there is more text."""
        ...


Program = tuple[Instruction, ...]


@dataclass(slots=True, eq=False, kw_only=True)
class Machine(Buffer):
    """Runs a program over one answer. It stops where the text ends, and goes on with the next chunk."""

    # Declared in `Buffer` and written here: said again, or type checkers of who installs us would have to infer these.
    pc: int = 0
    name: str = ""
    failed_at: int = 0
    scanner: Scanner | None = None
    events: list[Event | BrokenText] = field(default_factory=list)
    request: Request
    ids: CallIds
    policy: Policy = USUAL
    specials: tuple[str, ...] = ()
    """Texts of special tokens, where the caller tells them from text: such a marker is never a quotation."""
    reread: int = 0
    """Characters that were read for nothing, and then again."""
    length_limited: bool = False
    cut_from: int = -1
    """The position of a marker after which the token limit has cut the output off."""
    separated: int = -1
    """The position after the latest separator between calls: nothing but a call may be there."""
    call: CallState | None = None
    calls: int = 0
    closed: int = 0
    """Closing markers of the current call, or section, that have been consumed."""
    loose: bool = False
    """The run of calls was begun without its outermost marker."""
    mentioned: bool = False
    """A marker of reasoning that the format does not have has been met."""
    fenced: bool = False
    """A Markdown fence around a call is open."""
    wanted: str = ""
    refused: int = -1
    """Where the end of a call is read that broke, and is content to its end."""
    stack: StackEntry | None = None
    """The rules, choices, loops and tags of a grammar made by hand that are open."""
    serial: int = 0
    """Ways back that such a grammar has opened."""
    has_ids: bool = False
    """Its calls have ids of their own."""

    def finish(self, text: str = "") -> list[Event | BrokenText]:
        """Run to the end of the answer, over the last of the text: no more will come."""
        events: list[Event | BrokenText] = []
        if self.length_limited:
            # What is undecided behind all of the text is what the limit has cut off.
            events, text = self.feed(text), ""
            for frame in self.frames:
                frame.cut = True
            if self.call:
                self.call.cut = True
        events += super(Machine, self).finish(text)
        # With `tool_choice="required"`, the answer "Hello!" is wrong only now that it is over. One that was
        # cut off might have called later.
        expected = instead_of_silence(self.request, self.calls)
        if not expected or self.length_limited:
            return events
        self.malformed("", expected)
        return [*events, *self.take_final()]

    def needed_from(self) -> int:
        """Return the position from which text is still needed.

        Ways back need it, and so do a value whose end is in doubt, and a call that may fail, whose text may become content.
        """
        first = super(Machine, self).needed_from()
        if self.call is None:
            return first
        if self.call.value is not None:
            first = min(first, self.call.value)
        return min(first, self.call.start) if self._may_become_content(self.call) else first

    def _may_become_content(self, call: CallState) -> bool:
        """Return whether the text of a call is content if the call fails.

        A call that is given as it is written stays one as soon as it has a name, even if it is told of only when its id has come:
        `{"name": "f", "arguments": {"a": 1}, "id":`.
        """
        return not call.begun and not self.given_as_written(call)

    def given_as_written(self, call: CallState) -> bool:
        """Return whether the caller has been told of the call's beginning, or will be before its end."""
        given = self.policy.calls == "written" and not call.unoffered
        return given and bool(call.name) and not self.surplus(call)

    def surplus(self, call: CallState) -> bool:
        """Return whether a call comes after the only one that the request allows."""
        return not call.begun and self.calls > 0 and self.request.one_call

    # What instructions do to the machine.

    def attempt(
        self, targets: tuple[int, ...], otherwise: int, *, holds: bool, sealed: int, reported: bool, alone: bool
    ) -> Frame:
        """Try `targets` in turn from here; when all fail, come back and go on at `otherwise`. Return the way back."""
        frame = self._way_back(targets[1:], otherwise)
        frame.holds, frame.sealed, frame.reported, frame.alone = holds, sealed, reported, alone
        self.failed_at, self.wanted = self.at, ""
        self.loose = False
        self.pc = targets[0]
        return frame

    def _way_back(self, targets: tuple[int, ...], otherwise: int) -> Frame:
        """Open a way back to this place, and return it."""
        events = self.released + len(self.events)
        frame = Frame(targets, otherwise, self.base + self.at, events, len(self.span_ends), self.span_end, self.calls)
        # What was tried from here was cut off; if something else is tried from here, it is as well.
        frame.cut = frame.at == self.cut_from
        self.frames.append(frame)
        return frame

    def go_on(self) -> bool:
        """Go on with the next instruction: what a step returns."""
        self.pc += 1
        return False

    def go_to(self, target: int) -> bool:
        """Go on elsewhere: what a step returns."""
        self.pc = target
        return False

    def fail(self, wanted: str) -> bool:
        """Handle a mismatch: go back to the latest frame, or end the call if it is committed. Return False, as a step does."""
        if not (self.frames and self.call and self.call.unoffered):  # It failed at its name, before this.
            self.failed_here(wanted)
        if not self.frames:
            self.break_off(wanted)
            return False
        frame = self.frames[-1]
        if frame.quotation and not frame.whole and self.call and self.call.recover:
            if self.calls - self.call.begun > frame.calls:  # Nobody knows whether the calls before this one are quoted.
                return self.quote()
            # The call may be quoted, and breaks: it fails like any other.
            self.frames.pop()
            self.break_off(wanted)
            return False
        # A grammar made by hand pays for each attempt, even where it has read nothing; a format's are bounded in number.
        self.reread += self.base + (1 + self.at if self.rest else max(self.at, self.failed_at)) - frame.at
        if self.exhausted():
            return False
        frame.alone |= self.call is not None and self.call.name != ""
        cut = not self.rest and self.cut_at(frame)
        if cut and self.call and self.call.name:
            frame.call = self.call
            frame.call.begun = False  # If it has begun, going back takes that back as well.
        self.go_back(frame)
        # Two syntaxes may begin with `<call>`: the other one is tried from the same place.
        if frame.targets:
            return self.go_to(frame.next_target())
        self.frames.pop()
        self.pc = frame.otherwise
        if cut and cut_short_at(self, frame):
            return False
        if quotation := self.quotation:
            # Text follows a call that may be quoted, and not another call.
            if quotation.any_text:
                return self.quote()
            self.unquote()
        # Prose does not write `<tool_call>`, nor `<function=now`: where no call follows it, somebody should know.
        if frame.reported and frame.alone:
            self.malformed(self.buffer[self.at : self.failed_at] or self.buffer[self.at : self.at + 1], self.wanted)
            self.wanted = ""
        return False

    def failed_here(self, wanted: str) -> None:
        """Keep what was wanted where reading failed."""
        # Of several attempts that failed, the one that came furthest says what was wanted; those at one place are joined:
        # "'{' or '<function='".
        if self.at > self.failed_at or not self.wanted:
            self.wanted = wanted
        elif self.at == self.failed_at and wanted not in self.wanted.split(OR):
            self.wanted += OR + wanted
        self.failed_at = max(self.at, self.failed_at)

    def go_back(self, frame: Frame) -> None:
        """Undo everything read since the way back was opened, including a call that began."""
        super(Machine, self).go_back(frame)
        # A call that began after the way back never was. Only a grammar made by hand opens ways back inside of one.
        self.calls, self.call = frame.calls, None
        if self.rest:
            self.stack, self.tag, self.name = frame.stack, frame.tag, frame.name
            self.call = frame.call.restored() if isinstance(frame.call, tagged.TaggedCall) else None

    @property
    def rereads(self) -> bool:
        """Whether text that broke off may be searched for another beginning.

        That is allowed a bounded number of times.
        """
        return self.reread <= self.base + self.at + FREE_REREADS

    def commit(self) -> None:
        """Close the ways back, except those that hold a whole call."""
        # A call inside reasoning is committed, and still may turn out to be a thought: its holding frame stays.
        while self.frames and not self._is_quoted(self.frames[-1]) and not self.frames[-1].holds:
            self.frames.pop()

    def hold(self) -> None:
        """Keep the latest way back open until the call has been read."""
        frame = self.frames[-1]
        if not frame.holds:
            frame.holds = frame.whole = True

    def seal(self) -> None:
        """End a call that was held: its text is final, unless several calls are held together, or it may be quoted."""
        if self.frames and self.frames[-1].whole and not self.frames[-1].quotation:
            self.frames.pop()

    # Calls that may be quoted.

    def _is_quoted(self, frame: Frame) -> bool:
        """Return whether a quotation is open where the way back was opened; then it holds what follows."""
        if frame.hub < 0 or frame.quotation:
            return frame.quotation is not None
        (before, thought), call = self._text_before(frame), self.since(frame.at)
        cut = len(before) >= MAX_CONTEXT
        before += call[: len(call) - len(call.lstrip())]
        found = opened(before, cut=cut, anchored=frame.anchored and not thought)
        frame.quotation = going_on(found) if thought and found else found
        if frame.quotation is None:
            frame.hub = -1
            return False
        frame.holds = True
        return True

    def _text_before(self, frame: Frame) -> tuple[str, bool]:
        """Return the free text before a way back, and whether it is a thought that has ended."""
        position, spans, line = frame.at, frame.spans, ""
        while spans:
            role = self.span_roles[spans - 1]
            before = "" if role in _BETWEEN else self.context(position, spans, MAX_CONTEXT)
            if before.strip() or (role not in _BETWEEN and not before):
                return before + line, role is not frame.role
            # Of "`<|im_start|>assistant <call>`" the header is dropped: it hides no quotation.
            spans -= 1
            begin = self.span_ends[spans - 1] if spans else 0
            line = "\n" if "\n" in self.recent(max(begin, position - MAX_CONTEXT), position) else line
            position = begin
        return "", False

    @property
    def quotation(self) -> Quotation | None:
        """What is open before the call that is being read; None where it cannot be quoted."""
        return self.frames[-1].quotation if self.frames else None

    def unquote(self) -> None:
        """Let a call be a call that was held because it might have been quoted."""
        frame = self.frames[-1]
        frame.quotation = None
        if self.call is None or not frame.whole:
            self.frames.pop()

    def quote(self) -> bool:
        """Make all that was read since the quotation began text. Return False, as a step does."""
        frame, end = self.frames.pop(), self.base + self.at
        self.go_back(frame)
        self.malformed(self.buffer[self.at : end - self.base], "a call that is not quoted")
        self.answered = self.answered or frame.role is Role.CONTENT
        self.scanner, self.fenced = None, False
        self.carried, self.carried_spans = [], []
        self.text(frame.role, end - self.base)
        return self.go_to(frame.hub)

    def release(self) -> None:
        """Close the holding frame: what it held is final."""
        self.frames.pop()

    def leave_calls(self, otherwise: int) -> None:
        """Go on with the code after a run of calls."""
        self.pc = self.frames[-1].sealed if self.frames else otherwise

    # What instructions of a grammar made by hand do to it.

    def push(self, **held: int | Role | None) -> None:
        """Put an entry on the stack."""
        depth = self.stack.depth + 1 if self.stack else 1
        self.stack = StackEntry(self.stack, depth, **held)  # type: ignore[arg-type]

    @property
    def top(self) -> StackEntry:
        """The latest entry of the stack, for what only runs above one."""
        assert self.stack is not None
        return self.stack

    def pop(self) -> StackEntry:
        """Remove the latest entry from the stack, and return it."""
        entry = self.top
        self.stack = entry.below
        return entry

    def open(self, targets: tuple[int, ...], *, holds: bool = False) -> int:
        """Open a way back to `targets`, which are tried in turn with the present stack; return its serial number."""
        self.serial += 1
        frame = self._way_back(targets[:-1], targets[-1])
        frame.holds, frame.reported, frame.serial = holds, False, self.serial
        frame.stack, frame.tag, frame.name = self.stack, self.tag, self.name
        frame.call = self.call.kept() if isinstance(self.call, tagged.TaggedCall) else None
        return self.serial

    def open_tag(self, role: Role) -> None:
        """Begin a call, or a part of one."""
        tagged.open_tag(self, role)

    def add_text(self, text: str, value: str | None) -> None:
        """Give text of the open tag to its call; `value` is its JSON, where it is read as a value."""
        tagged.add_text(self, text, value)

    def close_tag(self, role: Role) -> None:
        """End a call, or a part of one."""
        tagged.close_tag(self, role)

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
        self.reread += 1 + self.base + self.at - frame.at
        self.go_back(frame)
        return not self.exhausted()

    def exhausted(self) -> bool:
        """Return whether a grammar made by hand gave back too much; then it has ended where the first way back begins."""
        if not self.rest or self.reread <= MAX_GIVEN_BACK * max(self.base + self.failed_at, 0) + FREE_REREADS:
            return False
        if self.frames:
            self.go_back(self.frames[0])
            self.frames.clear()
        self.break_off("text that the grammar reads in fewer attempts")
        return True

    def break_off(self, wanted: str) -> None:
        """Go on where there is no way back: end the call of a format; read the rest after a grammar made by hand."""
        if not self.rest:
            self.abandon_call(wanted)
            return
        self.wanted = wanted
        self.stack = None
        self.scanner = None
        self.pc = self.rest

    def report(self) -> None:
        """Report that a grammar made by hand broke off here, and end the call that is open."""
        self.tag = None
        # What a caller sees depends on the text alone: one character is the same in any chunks.
        met = self.buffer[self.at : self.at + 1]
        if self.call is None:
            self.malformed(met, self.wanted)
        else:
            self.fail_call(CallStatus.INVALID if met else CallStatus.TRUNCATED, self.wanted, met)

    # Calls.

    @property
    def current(self) -> CallState:
        """The call that is being read, for what is only done inside of one."""
        assert self.call is not None
        return self.call

    def malformed(self, text: str, wanted: str, failed: ToolCall | None = None, at: int | None = None) -> None:
        """Report text that the format does not allow, and the call that failed there; raises `MalformedOutput` when strict.

        `at` is where the text is, if it was read before: that is refused when it is final.
        """
        position = self.base + self.at if at is None else at
        if self.strict and at is None:
            # An earlier deviation that is already final comes first, as it would with smaller chunks.
            # The events before the first way back are final: what was found there is older than this.
            refuse(self.events[: self.frames[0].events - self.released] if self.frames else self.events)
            raise MalformedOutput(position, wanted, self.around())
        self.events.append(Malformed(text, position, wanted, failed))

    def begin_call(self) -> CallState:
        """Start to read a call."""
        # The way back was opened at the call's first marker: the text of a call that fails begins there.
        self.call = CallState(start=self.frames[-1].at if self.frames else self.base + self.at)
        self.closed = 0
        return self.call

    def named(self, name: str) -> bool:
        """Give the call its name.

        Return False, and leave the call unchanged, when no such tool is offered.
        """
        call = self.current
        tool = self.request.tool(name)
        if not self.offers(name):
            return False
        call.name, call.tool, call.known = name, tool, self.request.tools is None or tool is not None
        call.types = ArgumentTypes.of(tool)
        return True

    def offers(self, name: str) -> bool:
        """Return whether a call may have this name."""
        request = self.request
        any_name = request.tools is None or self.policy.unknown_tools == "call"
        return bool(name) and (any_name or request.tool(name) is not None)

    def start_call(self) -> None:
        """Emit the start of the call, unless calls are given when they are complete."""
        if self.given_as_written(self.current):
            self._tell_of_call()

    def _tell_of_call(self) -> None:
        """Emit the start of the call, and the arguments that waited for it."""
        call = self.current
        if call.begun:
            return
        call.begun = True
        call.id = self.ids.give(self.calls, call.name, call.id)
        self.events.append(ToolCallStarted(self.calls, call.id, call.name, call.known))
        if expected := instead_of_call(self.request, call.name):
            # A strict parser refuses it when it is final: what is read of it here may yet be taken back.
            self.events.append(Malformed(call.name, call.start, expected))
        self.calls += 1
        # `{"arguments": {…}, "name": "f"}`: the arguments were read before there was a call to give them to.
        if waiting := "".join(call.arguments):
            self.events.append(ArgumentsText(self.calls - 1, waiting))

    def arguments(self, text: str) -> None:
        """Keep argument text, and emit it if the caller was told of the call."""
        call = self.current
        if not text:
            return
        call.arguments.append(text)
        if call.begun:
            self.events.append(ArgumentsText(self.calls - 1, text))

    def end_call(self, status: CallStatus, text: str = "") -> None:
        """Emit the end of the call, and all of it that has waited."""
        self._tell_of_call()
        self.events.append(ToolCallFinished(self.calls - 1, status, text))
        self.call = None

    def complete_call(self) -> None:
        """Give a call that was read to its end, unless the request allows no more."""
        if self.current.unoffered:
            self.frames.clear()  # It is text, quoted or not.
            self.fail_call(CallStatus.INVALID, "", "")
            self.closed = ABANDONED
        elif self.surplus(self.current):
            self.fail_call(CallStatus.INVALID, "no more than one call", self.current.name, self.current.start)
        else:
            self.end_call(CallStatus.COMPLETE)

    def open_call(self) -> ToolCall | None:
        """Return the call that is being read, as far as the caller was not told of it."""
        call = self.call
        # With a way back from before the call still open, it may yet be text: nobody is told of it.
        if call is None or not call.name or call.begun or call.unoffered:
            return None
        if self.frames and self.frames[0].at <= call.start:
            return None
        return read_so_far(call, CallStatus.OPEN)

    def abandon_call(self, wanted: str) -> None:
        """End a committed call that does not go on as it must; the rest of the text is read on its own."""
        call = self.call or self.begin_call()
        # `{"a": ` at the end of the output was cut off; `{"a": ;` was broken before it ended.
        truncated = self.final and self.failed_at >= len(self.buffer)
        # Only one character: how many more have come depends on the chunks.
        met = self.buffer[self.at : self.at + 1]
        status = CallStatus.TRUNCATED if truncated or self.cut_off else CallStatus.INVALID
        self.scanner = None
        if status is CallStatus.INVALID and not self.strict and fate(self, call, False) != "content":
            call.broken = (wanted, met, self.position)
            self.pc = call.recover
            return
        self.fail_call(status, wanted, met)
        self.closed = ABANDONED
        self.pc = call.recover
        self.refused = call.recover if status is CallStatus.INVALID else -1

    @property
    def cut_off(self) -> bool:
        """Whether the token limit has cut the output off in the call that is being read."""
        return self.cut_at(self.call) if self.call else False

    def cut_at(self, opened: Frame | CallState) -> bool:
        return self.length_limited and self.final and (opened.cut or self.failed_at >= len(self.buffer))

    def fail_call(self, status: CallStatus, wanted: str, met: str, at: int | None = None) -> None:
        """End a call that cannot be completed, and report it; `at` is where it failed, if more was read since."""
        end_failed(self, status, wanted, met, at)
        self.barrier = self.base + self.at if at is None else at

    def call_failed(self) -> bool:
        """Whether the latest call has failed, so that its closing markers are content."""
        return (
            self.closed == ABANDONED
            and self.policy.calls == "complete"
            and self.policy.failed_calls in ("auto", "content")
        )

    # What is final.

    def final_spans(self) -> list[tuple[Role, int]]:
        """Return the role and the end of each final span."""
        spans = super(Machine, self).final_spans()
        # Whether a failed call is next to content or becomes part of it would depend on the chunks.
        return merged_spans(spans) if self.rest else spans

    @property
    def final_end(self) -> int:
        """The end of the last final span. A call that may fail is not final: it may become content."""
        end = super(Machine, self).final_end
        return min(end, self.call.start) if self.call and self._may_become_content(self.call) else end
