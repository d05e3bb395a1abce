"""Defines the state of a machine: backtracking points, open rules and tags, and the current call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Self

from unrender.machine.quotation import Quotation
from unrender.messages.wire import Tool
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
"""The tags that only a call has, and the role of their text in a span."""


@dataclass(frozen=True, slots=True)
class StackEntry:
    """One entry of the stack of a grammar made by hand. The stack is a linked list, so ways back share the entries below."""

    below: StackEntry | None
    depth: int
    address: int = 0
    """A rule: where to return to."""
    count: int = 0
    """A loop: rounds made so far; a span: characters taken so far."""
    start: int = 0
    """A loop: where this round began."""
    way: int = 0
    """A choice, loop, lookahead or atom: the serial number of its way back."""
    tag: Role | None = None
    """A tag: the one around it."""


@dataclass(slots=True)
class Frame(Resumable):
    """A way back: the position in the text, and the alternatives that are left."""

    targets: tuple[int, ...]
    """Program counters still to be tried."""
    otherwise: int
    """The instruction when none is left."""
    at: int
    """Characters from the output's beginning, as `Machine.base` counts."""
    events: int
    """The number of events that had been found, with those that are out."""
    spans: int
    span_end: int
    calls: int
    holds: bool = False
    """A commit does not close this frame; only its own end does."""
    sealed: int = -1
    """The instruction when all calls that this frame holds have been read: a program counter."""
    reported: bool = True
    alone: bool = True
    """True if the text identifies a call by itself, or if the name of a tool followed."""
    whole: bool = False
    """Holds one whole call, and closes with it."""
    hub: int = -1
    """The place where the free text goes on in which a call was found that may be quoted; -1 where none may be."""
    role: Role = Role.CONTENT
    """The role of that text."""
    anchored: bool = False
    """Nothing but its place on a line shows a call here."""
    quotation: Quotation | None = None
    """The quotation that is open before the call: the call is held until the text after it decides."""
    serial: int = 0
    """Counts the ways back that a grammar made by hand opens."""
    stack: StackEntry | None = None
    tag: Role | None = None
    cut: bool = False
    """Open where the token limit has cut the output off."""
    limited: bool = False
    """True if the last attempt from here has come up to that place."""
    call: CallState | None = None
    """The call that was cut off here, if its name was read."""
    saved: CallState | None = None
    """The call that was open here, as it was."""

    def next_target(self) -> int:
        """Take the next alternative; it says itself whether it holds a call."""
        first, *rest = self.targets
        self.targets = tuple(rest)
        # `Hold` is the first instruction of a target: the next one decides anew.
        if self.whole or self.quotation:
            self.holds = self.whole = False
            self.quotation = None
        return first


@dataclass(slots=True, eq=False)
class CallState(Resumable):
    """The call that is being read."""

    name: str = ""
    id: str = ""
    tool: Tool | None = None
    offered: bool = True
    unoffered: bool = False
    """No such tool is offered: the call's text is content."""
    types: ArgumentTypes = field(default_factory=partial(ArgumentTypes, None))
    begun: bool = False
    """`ToolCallStarted` is out."""
    arguments: list[str] = field(default_factory=list)
    """Argument text so far; it waits for the call to begin."""
    count: int = 0
    """Arguments read so far."""
    key: str = ""
    keys: set[str] = field(default_factory=set)
    """The arguments that have a value."""
    kind: str = ""
    """The TYPE slot's word for the current value."""
    value: int | None = None
    """The beginning of the current value, if its text is looked at when it has ended."""
    mark: int = 0
    """The beginning of the id's text, in characters from the output's beginning."""
    start: int = 0
    """The beginning of the call's text, its opening markers included, in characters from the output's beginning."""
    separated: int = 0
    """The number of arguments that came before the separator that was read last."""
    closed: bool = False
    """The arguments are complete."""
    ended: bool = False
    """True if the marks around the arguments have been closed as well: a fence, or brackets."""
    repaired: bool = False
    """A marker that closes the call, or a value of it, is missing or torn."""
    committed: bool = False
    """Nothing before the arguments is taken back."""
    broken: tuple[str, str, int] | None = None
    """The expectation where the call broke, the text that was met, and the position, while its end is looked for."""
    cut: bool = False
    """Open where the token limit has cut the output off."""
    written: str = ""
    """With tags: how the arguments are written: "whole" in one value, or as "entries"; "" for not known yet."""
    tags: frozenset[Role] = frozenset()
    """The tags that were read."""
    pieces: list[str] = field(default_factory=list)
    """Text of the tag that is open, where it was not read as a value."""
    streamed: bool = False
    """The tag that is open was read as a value."""
    sizes: tuple[int, int] = (0, 0)
    """The numbers of arguments and pieces when this copy was kept."""

    def kept(self) -> Self:
        """Return a copy to come back to. It shares the texts, which only grow, so that a way back costs the same in a long call."""
        made = self._same()
        made.sizes = len(self.arguments), len(self.pieces)
        return made

    def restored(self) -> Self:
        """Return the call as it was when this copy was kept."""
        del self.arguments[self.sizes[0] :], self.pieces[self.sizes[1] :]
        return self._same()

    def _same(self) -> Self:
        other = object.__new__(type(self))
        for name in self._names:
            setattr(other, name, getattr(self, name))
        return other

    @property
    def missing(self) -> tuple[str, ...]:
        """The declared arguments that have no value yet."""
        return tuple(key for key in self.types.declared if key not in self.keys)
