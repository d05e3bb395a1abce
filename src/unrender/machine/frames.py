"""Defines the state of a machine: backtracking points, open rules and tags, and the current call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from operator import attrgetter
from typing import Any, Self

from unrender.machine.quotation import Quotation
from unrender.messages import Tool
from unrender.nodes import Role
from unrender.values.coercion import ArgumentTypes
from unrender.values.resumable import Resumable

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
    *("fenced", "closed", "loose", "separated", "refused"),
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
