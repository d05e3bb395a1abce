"""Defines what the machine keeps: the ways back, the rules and tags that are open, and what is known of a call so far."""

from __future__ import annotations

from dataclasses import dataclass, replace

from unrender.messages.wire import Tool
from unrender.nodes import Role
from unrender.values.coercion import ArgumentTypes


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
class Frame:
    """A way back: the position in the text, and the alternatives that are left."""

    targets: tuple[int, ...]
    """Program counters still to be tried."""
    otherwise: int
    """Where to go when none is left."""
    at: int
    """Characters from the output's beginning, as `Machine.base` counts."""
    events: int
    """How many had been emitted, all in all."""
    spans: int
    span_end: int
    calls: int
    holds: bool = False
    """A commit does not close this frame; only its own end does."""
    sealed: int = -1
    """Where to go when all calls that this frame holds have been read: a program counter."""
    reported: bool = True
    whole: bool = False
    """Holds one whole call, and closes with it."""
    serial: int = 0
    """Counts the ways back that a grammar made by hand opens."""
    stack: StackEntry | None = None
    tag: Role | None = None
    name: str = ""

    def next_target(self) -> int:
        """Take the next of the alternatives. Whether it holds a call, it says itself: what has failed did not hold one."""
        first, *rest = self.targets
        self.targets = tuple(rest)
        if self.whole:
            self.holds = self.whole = False
        return first

    def copy(self) -> Frame:
        """Return an independent frame."""
        return replace(self)


class CallState:
    """The call that is being read."""

    __slots__ = (
        "arguments",
        "begun",
        "closed",
        "count",
        "ended",
        "id",
        "key",
        "keys",
        "kind",
        "known",
        "mark",
        "name",
        "recover",
        "separated",
        "start",
        "tool",
        "types",
    )

    def __init__(self) -> None:
        self.name: str = ""
        self.id: str = ""
        self.tool: Tool | None = None
        self.known: bool = True
        self.types: ArgumentTypes = ArgumentTypes(None)
        self.begun: bool = False
        """`ToolCallStarted` is out."""
        self.arguments: list[str] = []
        """Argument text that waits for the call to begin."""
        self.count: int = 0
        """Arguments read so far."""
        self.key: str = ""
        self.keys: set[str] = set()
        """The arguments that have a value."""
        self.kind: str = ""
        """What the TYPE slot said of the current value."""
        self.mark: int = 0
        """Where the text of the id begins, in characters from the output's beginning."""
        self.start: int = 0
        """Where the call's text begins, its opening markers included, in characters from the output's beginning."""
        self.separated: int = 0
        """The argument before which a separator was read last: how many there were before it."""
        self.closed: bool = False
        """The arguments are complete."""
        self.ended: bool = False
        """What is around the arguments has been closed as well: a fence, or brackets."""
        self.recover: int = 0
        """Where to go on when the committed call breaks."""

    def copy(self) -> CallState:
        """Return an independent copy."""
        other = CallState()
        for name in self.__slots__:
            setattr(other, name, getattr(self, name))
        other.arguments, other.keys = list(self.arguments), set(self.keys)
        return other
