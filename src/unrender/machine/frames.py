"""Defines the state of a machine: backtracking points, open rules and tags, the current call, and the parsed text with its roles.

A `Restart` stores where a reader started, so that a copy of its machine can read the text again. A coroutine can't be copied or pickled. A
copy returns to the state at the start of the reader, and reads the text since then again. A machine keeps the text of the current call. The
text of a whole answer, which a handwritten grammar reads, is in the parser's transcript.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any, Self

from unrender.limits import MAX_CONTEXT
from unrender.machine.quotation import Quotation
from unrender.messages import Tool
from unrender.nodes import Role
from unrender.values import Resumable
from unrender.values.coercion import ArgumentTypes


@dataclass(frozen=True, slots=True)
class Span:
    """The role of a piece of the output. `start` and `end` are character indices in the output."""

    role: Role
    start: int
    end: int


@dataclass(slots=True, eq=False)
class ReadText(Resumable):
    """Text before a machine's buffer, stored in pieces to avoid copies."""

    needed: deque[str] = field(default_factory=deque)
    """Text that may have to be parsed again."""
    start: int = 0
    """Position of the first piece."""
    looked: int = 0
    """The argument `first` of the last call of `add`."""
    gone: deque[str] = field(default_factory=deque)
    """The end of the text that is no longer needed, kept as context."""
    gone_size: int = 0

    def add(self, text: str, start: int, first: int) -> None:
        """Store `text`, which starts at the position `start`. Text from the position `first` on is still needed."""
        if first != self.looked:
            self._drop(first, start)
        kept = first - start
        if kept > 0:
            end = min(kept, len(text))
            self._put_by(text[max(end - MAX_CONTEXT, 0) : end])
        if kept < len(text):
            self.needed.append(text[max(kept, 0) :])
            self.start = max(first, start) if len(self.needed) == 1 else self.start

    def _drop(self, first: int, end: int) -> None:
        """Drop the pieces before the position `first`. The last piece ends at `end`."""
        self.looked = first
        # Don't split the piece that contains `first`, because each further chunk would copy the rest again.
        while self.needed and (first >= end or self.start + len(self.needed[0]) <= first):
            text = self.needed.popleft()
            self.start += len(text)
            self._put_by(text)

    def _put_by(self, text: str) -> None:
        gone = self.gone
        gone.append(text[-MAX_CONTEXT:])
        self.gone_size += len(gone[-1])
        while self.gone_size - len(gone[0]) >= MAX_CONTEXT:
            self.gone_size -= len(gone.popleft())

    def take_back(self, size: int) -> str:
        """Remove and return at least the last `size` characters."""
        pieces: list[str] = []
        while size > 0:
            pieces.append(self.needed.pop())
            size -= len(pieces[-1])
        return "".join(reversed(pieces))

    def __iter__(self) -> Iterator[str]:
        """Yield the pieces in reverse order."""
        return chain(reversed(self.needed), reversed(self.gone))


def relabel(roles: list[Role], ends: list[int], start: int, end: int, role: Role) -> None:
    """Set the role of all text from `start` to `end`. Spans are represented by two lists of their roles and ends.

    >>> roles, ends = [Role.CONTENT, Role.MARKER], [2, 9]
    >>> relabel(roles, ends, 4, 6, Role.CONTENT)
    >>> ends
    [2, 4, 6, 9]
    """
    # Replace all spans from `first` to `last`. The parts of these spans outside the given range keep their role.
    first, last = bisect_right(ends, start), bisect_left(ends, end)
    begins = ends[first - 1] if first else 0
    new = [(roles[first], start)] if start > begins else []
    new.append((role, end))
    if ends[last] > end:
        new.append((roles[last], ends[last]))
    roles[first : last + 1] = [role for role, _ in new]
    ends[first : last + 1] = [stop for _, stop in new]


def up_to(spans: list[tuple[Role, int]], end: int) -> list[tuple[Role, int]]:
    """Return the roles and ends of the spans before the position `end`. A span that contains the position is shortened."""
    cut = next((i for i, (_, stop) in enumerate(spans) if stop > end), None)
    if cut is None:
        return spans
    kept = spans[:cut]
    return kept if kept and kept[-1][1] == end else [*kept, (spans[cut][0], end)]


IN_CALLS: Mapping[Role, Role] = {
    Role.CALL: Role.MARKER,
    Role.NAME: Role.NAME,
    Role.ID: Role.ID,
    Role.KEY: Role.ARGUMENT,
    Role.VALUE: Role.ARGUMENT,
    Role.ARGUMENT: Role.ARGUMENT,
}
"""Tags that are allowed only inside a call, each mapped to the span role of its text."""


@dataclass(slots=True)
class Snapshot(Resumable):
    """The state of a machine at one position in the text, to which backtracking returns."""

    position: int
    events: int
    """Number of events found before this position, including those already released."""
    spans: int
    span_end: int
    calls: int
    call: CallState | None
    carried: tuple[str, ...]
    carried_spans: tuple[int, ...]
    values: tuple[Any, ...]
    """Values of the fields `_RESTORED`."""

    @classmethod
    def of(cls, machine: Any) -> Self:
        """Return the state of a machine."""
        return cls(
            machine.base + machine.at,
            machine.released + len(machine.events),
            len(machine.span_ends),
            machine.span_end,
            machine.calls,
            machine.call.kept() if machine.call else None,
            tuple(machine.carried),
            tuple(machine.carried_spans),
            _restored_values(machine),
        )

    def restore(self, machine: Any) -> None:
        """Undo all changes of the machine since this state."""
        del machine.events[max(self.events - machine.released, 0) :]
        del machine.span_roles[self.spans :], machine.span_ends[self.spans :]
        # Restore the end of the last span, because later text may have extended the span. For example, `a <b` is one span of content.
        if machine.span_ends:
            machine.span_ends[-1] = self.span_end
        # Whitespace that was carried may have become content since then.
        for index in self.carried_spans:
            machine.span_roles[index] = Role.LAYOUT
        machine.carried, machine.carried_spans = list(self.carried), list(self.carried_spans)
        machine.recall(self.position)
        machine.at, machine.scanner = self.position - machine.base, None
        machine.calls, machine.call = self.calls, self.call.restored() if self.call else None
        for name, value in zip(_RESTORED, self.values, strict=True):
            setattr(machine, name, value)


_RESTORED = (
    *("tag", "answered", "thinks", "mentioned", "split"),
    *("fenced", "closed", "loose", "separated", "listed", "refused", "unclear"),
)
"""Fields of a machine to whose values backtracking returns, besides texts, spans, events and the call. Other fields, such as the limit of
backtracking and the reported position of a failure, keep what an attempt has changed.
"""
_restored_values = attrgetter(*_RESTORED)


@dataclass(slots=True)
class Frame(Resumable):
    """A backtracking point: a position in the text, and the remaining alternatives."""

    targets: tuple[int, ...]
    """Addresses of the remaining alternatives."""
    otherwise: int
    """Address at which execution continues if no alternative is left."""
    start: Snapshot
    """The state of the machine at this point."""
    holds: bool = False
    """True if a commit doesn't close this frame."""
    sealed: int = -1
    """Address at which execution continues after all calls held by this frame are parsed."""
    reported: bool = True
    alone: bool = True
    """True if the marker at this point always indicates a call, or if a tool name was found."""
    whole: bool = False
    """True if the frame holds exactly one call and is closed at the end of the call."""
    hub: int = -1
    """Address of the free text around the call if the call may be quoted, otherwise -1."""
    role: Role = Role.CONTENT
    """The role of the free text around the call."""
    anchored: bool = False
    """True if only the position on a line indicates a call."""
    quotation: Quotation | None = None
    """The open quotation before the call. The call is buffered until the following text shows whether the call is quoted."""
    thought: bool = False
    """True for the start marker of reasoning that is text if its end marker is missing."""
    cut: bool = False
    """True if the frame was open when the token limit cut off the output."""
    limited: bool = False
    """True if the last attempt reached the end of a truncated output."""
    call: CallState | None = None
    """The call that was cut off after this point, if its name is known."""

    @property
    def at(self) -> int:
        """Position in the output at which the alternatives start (see `Machine.base`)."""
        return self.start.position

    @property
    def spans(self) -> int:
        """Number of spans before this point."""
        return self.start.spans

    def kept(self) -> Self:
        """Return a copy that shares the state at this point, which never changes."""
        return type(self)(*_frame_values(self))

    def next_target(self) -> int:
        """Remove and return the next alternative."""
        first, *rest = self.targets
        self.targets = tuple(rest)
        # The next alternative sets these fields again if necessary.
        if self.whole or self.quotation:
            self.holds = self.whole = False
            self.quotation = None
        return first


_frame_values = attrgetter(*(part.name for part in fields(Frame)))


@dataclass(slots=True, eq=False)
class CallState(Resumable):
    """The state of the current call."""

    name: str = ""
    id: str = ""
    tool: Tool | None = None
    offered: bool = True
    unoffered: bool = False
    """True if no such tool is offered, so that the call's text is content."""
    types: ArgumentTypes = field(default_factory=partial(ArgumentTypes, None))
    begun: bool = False
    """True if `ToolCallStarted` was emitted."""
    arguments: list[str] = field(default_factory=list)
    """Fragments of the arguments, which are emitted after the start of the call."""
    count: int = 0
    """Number of arguments parsed so far."""
    key: str = ""
    keys: set[str] = field(default_factory=set)
    """Names of the arguments that have a value."""
    kind: str = ""
    """Text of the `TYPE` slot, i.e. the type that the model wrote for the current value."""
    value: int | None = None
    """Start of the current value, if the value can be interpreted only after its end."""
    start: int = 0
    """Start of the call, including its start markers, as an index in the output."""
    before: str = ""
    """Name of an argument directly before the call."""
    separated: int = 0
    """Number of arguments before the latest separator."""
    closed: bool = False
    """True if the arguments are complete."""
    ended: bool = False
    """True if the fence or brackets around the arguments are closed too."""
    repaired: bool = False
    """True if an end marker of the call or of one of its values is missing or damaged."""
    unclear: bool = False
    """True if a value has several readings, so that the call can't be repaired."""
    committed: bool = False
    """True if the text before the arguments is final."""
    broken: tuple[str, str, int] | None = None
    """The expected text, the text found instead, and the position of the failure. Set while the parser searches for the end of the call."""
    cut: bool = False
    """True if the call was incomplete when the token limit cut off the output."""
    written: str = ""
    """For handwritten grammars: "whole" if one value contains all arguments, "entries" for separate arguments, "" if not known yet."""
    tags: frozenset[Role] = frozenset()
    """Tags of the call that have been parsed."""
    pieces: list[str] = field(default_factory=list)
    """Text of the open tag, if it wasn't parsed as a value."""
    streamed: bool = False
    """True if the text of the open tag was parsed as a value."""
    sizes: tuple[int, int] = (0, 0)
    """Lengths of `arguments` and `pieces` when this copy was made."""

    def kept(self) -> Self:
        """Return a copy for backtracking.

        Copies share their lists, which only grow, so copying a long call is cheap.
        """
        made = self._same()
        made.sizes = len(self.arguments), len(self.pieces)
        return made

    def restored(self) -> Self:
        """Return the call with the state of this copy, for backtracking."""
        del self.arguments[self.sizes[0] :], self.pieces[self.sizes[1] :]
        return self._same()

    def _same(self) -> Self:
        return type(self)(*_call_values(self))

    @property
    def missing(self) -> tuple[str, ...]:
        """The declared arguments that have no value yet."""
        return tuple(key for key in self.types.declared if key not in self.keys)


_call_values = attrgetter(*(part.name for part in fields(CallState)))


_STATE = ("pc", "unended", "left", "recover", "broke", "wanted", "reread", "searched", "barrier", "cut_from")
"""Fields of a machine that a reader may change, besides its backtracking points and those of a `Snapshot`."""
_state_of = attrgetter(*_STATE)


@dataclass(slots=True, eq=False)
class Restart(Resumable):
    """A reader of calls or of a handwritten grammar, and the state of its machine when the reader started."""

    reader: Any
    """None in a copy, like `run`."""
    run: Any
    """The coroutine of the reader."""
    start: Snapshot
    needed: int
    """Position of the first character that was needed at the start."""
    failed_at: int
    """Furthest position that the attempts before the start reached."""
    wanted: str
    """The text that the attempts before the start expected."""
    state: tuple[Any, ...]
    """Values of the fields `_STATE`."""
    frames: list[Frame]
    made_ids: int

    @classmethod
    def of(cls, machine: Any, reader: Any, *, keeps: bool = True) -> Self:
        """Return the state of `machine` at the start of `reader`. If `keeps` is False, the machine doesn't keep the reader's text."""
        return cls(
            reader=reader,
            run=reader.run(),
            start=Snapshot.of(machine),
            needed=machine.needed_from() if keeps else sys.maxsize,
            failed_at=machine.base + machine.failed_at,
            wanted=machine.wanted,
            state=_state_of(machine),
            frames=[frame.kept() for frame in machine.frames],
            made_ids=len(machine.ids.made),
        )

    def resume(self, machine: Any) -> None:
        """Read the text since the start of the reader again. `machine` is a copy, in which the reader isn't running."""
        self.start.restore(machine)
        machine.released = min(machine.released, self.start.events)
        for name, value in zip(_STATE, self.state, strict=True):
            setattr(machine, name, value)
        machine.failed_at = self.failed_at - machine.base
        machine.frames, machine.restart = self.frames, None
        # Calls whose start was already emitted keep their ids.
        ids, steps = machine.ids, machine.steps
        made, make = iter(ids.made[self.made_ids :]), ids.make
        del ids.made[self.made_ids :]
        ids.make = lambda position, name: next(made, None) or make(position, name)
        machine.run()  # The original machine has already returned these events.
        ids.make, machine.steps = make, steps

    def copy(self) -> Self:
        """Return a copy without the coroutine."""
        # A bare `super()` fails, because `slots=True` creates a new class.
        other = super(Restart, self).copy()
        other.reader = other.run = None
        return other

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._names} | {"reader": None, "run": None}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
