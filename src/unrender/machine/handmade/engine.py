"""The engine: runs compiled combinators over text that arrives in pieces, and notes what was read.

Strategy: an LPeg-style machine whose whole state is data. A step that runs out of input leaves everything as it is and
suspends; the next piece resumes it, so nothing is read twice (see `reading`). The stack is a linked list that ways back share.

Rules: only `fail` goes back, and only to the latest way. `furthest` and `spent` depend on the text alone, never on its chunks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

from unrender.machine.buffer import Reading
from unrender.nodes import Role
from unrender.values.flow import Scanner

MAX_NAME = 1200
"""Longest name of a call, in characters."""
MAX_DEPTH = 100_000
"""Entries on the stack: rules, choices, loops and tags that are open at once."""
MAX_SPENT = 64
"""How many characters may be given back in all, for each character read; what needs more is malformed."""
FREE = 10_000
"""Characters that may be given back whatever the text's length."""


class Step(Protocol):
    """One instruction: frozen data, with the step that it takes."""

    def step(self, engine: Engine) -> bool | None:
        """Advance the engine; return True to suspend it until there is more text."""
        ...


@dataclass(frozen=True, slots=True)
class Note:
    """Text that was read as `role`; if it is a value, `value` is its JSON."""

    role: Role
    text: str
    value: bool = False


@dataclass(frozen=True, slots=True)
class Opened:
    """A tag begins."""

    role: Role
    position: int


@dataclass(frozen=True, slots=True)
class Closed:
    """The innermost open tag ends at `position`; `text` is the text of a whole call, markers included."""

    role: Role
    position: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Broken:
    """The grammar cannot read on: the rest is plain content.

    `text` is the text of the call that broke off.
    """

    met: str
    """The character that was met."""
    position: int
    expected: str
    at_end: bool
    text: str
    around: str = field(compare=False)
    """What is before and after, for an error's message."""


Notice = Note | Opened | Closed | Broken


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the stack. The stack is a linked list, so ways back share the entries below."""

    below: Entry | None
    depth: int
    address: int = 0
    """A rule: where to return to."""
    count: int = 0
    """A loop: rounds made so far; a span: characters taken so far."""
    start: int = 0
    """A loop: where this round began; a peek: where to go on."""
    way: int = 0
    """A choice, loop, peek or atom: the serial number of its way back."""
    role: Role | None = None
    """A tag: the role around it."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way back: the position in the text, and the alternatives left to try there."""

    targets: tuple[int, ...]
    at: int
    events: int
    spans: int
    span_end: int
    stack: Entry | None
    role: Role | None
    name: str
    call: int | None
    serial: int
    barrier: bool
    """A cut leaves it open."""


class Engine(Reading[Notice, Way]):
    """The state of one reading."""

    at: int
    scanner: Scanner | None
    __slots__ = ("call", "furthest", "name", "names", "role", "serial", "spent", "stack", "text", "wanted", "wanted_at")

    def __init__(self, program: Program, names: frozenset[str] | None, *, begun: int = 0, given: bool = False) -> None:
        super().__init__(program.steps)
        self.pc: int = program.start
        self.base: int = -begun
        self.furthest: int = self.base
        self.given = given
        self.text: int = program.text
        """Where plain content is read."""
        self.names: frozenset[str] | None = names
        """The names that a call may have; None for any."""
        self.call: int | None = None
        """Where the call that is open begins; its text is kept until it ends."""
        self.stack: Entry | None = None
        self.role: Role | None = None
        self.name: str = ""
        """The name of the call that is being read, as far as it is known."""
        self.serial: int = 0
        self.spent: int = 0
        self.wanted: str = ""
        self.wanted_at: int = -begun

    def needed_from(self) -> int:
        """Return the position from which text is still needed.

        Ways back need it, and the call that is open needs its own text.
        """
        first = super().needed_from()
        return first if self.call is None else min(first, self.call)

    # What steps do to the engine.

    def take(self, role: Role, size: int, value: str | None = None) -> None:
        """Consume `size` characters. `value` is their JSON if they are a value.

        Their role is that of the open tag; if none is open, it is `role`.
        """
        said, position = self.role or role, self.base + self.at
        text = self.buffer[self.at : self.at + size]
        if self.given and position < 0 and said is Role.CONTENT:
            text = text[-position:]
        if said is Role.NAME and len(self.name) <= MAX_NAME:
            self.name += text
        if self.role is not None and (text or value):
            as_value = value is not None and said in _IN_CALLS
            self.events.append(Note(said, value if as_value and value is not None else text, as_value))
        self.at += size
        if size:
            self.add_span(_SPANS.get(said, said), position + size)

    def push(self, **held: int | Role | None) -> None:
        """Put an entry on the stack."""
        depth = self.stack.depth + 1 if self.stack else 1
        self.stack = Entry(self.stack, depth, **held)  # type: ignore[arg-type]

    def pop(self) -> Entry:
        """Remove the latest entry from the stack, and return it."""
        entry = self.stack
        assert entry is not None
        self.stack = entry.below
        return entry

    def open(self, targets: tuple[int, ...], *, barrier: bool = False) -> int:
        """Open a way back to `targets`, which are tried in turn with the present stack; return its serial number."""
        self.serial += 1
        self.frames.append(
            Way(
                targets,
                self.position,
                self.released + len(self.events),
                len(self.span_ends),
                self.span_end,
                self.stack,
                self.role,
                self.name,
                self.call,
                self.serial,
                barrier,
            )
        )
        return self.serial

    def close(self, serial: int) -> None:
        """Close the way back with this number, and all later ones; do nothing if a cut has closed it."""
        while serial and self.frames and self.frames[-1].serial >= serial:
            self.frames.pop()

    def cut(self) -> None:
        """Close all ways back up to the latest barrier."""
        while self.frames and not self.frames[-1].barrier:
            self.frames.pop()

    def rewind(self, serial: int) -> bool:
        """Undo everything read since the way back with this number was opened, and close it.

        Return False when too much text was read again already.
        """
        while self.frames[-1].serial > serial:
            self.frames.pop()
        way = self.frames.pop()
        self.furthest = max(self.furthest, self.position)
        self.spent += 1 + self.position - way.at
        self.go_back(way)
        return not self._exhausted()

    def fail(self, wanted: str) -> None:
        """Handle a mismatch: go back to the latest way, or end the reading when there is none."""
        position = self.position
        if position >= self.wanted_at:
            self.wanted_at, self.wanted = position, wanted
        self.furthest = max(self.furthest, position)
        if not self.frames:
            self._break(wanted)
            return
        way = self.frames[-1]
        self.spent += 1 + position - way.at
        if self._exhausted():
            return
        self.go_back(way)
        self.pc = way.targets[0]
        if len(way.targets) > 1:
            self.frames[-1] = replace(way, targets=way.targets[1:])
        else:
            self.frames.pop()

    def _exhausted(self) -> bool:
        """Return whether too much was given back; then the reading has ended where the first way back begins."""
        if self.spent <= MAX_SPENT * max(self.furthest, 0) + FREE:
            return False
        if self.frames:
            self.go_back(self.frames[0])
            self.frames.clear()
        self._break("text that the grammar reads in fewer attempts")
        return True

    def go_back(self, frame: Way) -> None:
        """Undo what was read since the way back was opened."""
        super().go_back(frame)
        self.stack, self.role, self.name, self.call = frame.stack, frame.role, frame.name, frame.call

    def _break(self, wanted: str) -> None:
        """The reading cannot go on: report it, and read the rest as content."""
        self.wanted = wanted
        self.stack = None
        self.scanner = None
        self.pc = self.text

    def end_call(self) -> str:
        """Return the text of the open call, markers included, and stop keeping it."""
        assert self.call is not None
        text = self.since(max(self.call, 0) if self.given else self.call)
        self.call = None
        return text

    def report(self) -> None:
        """Note that the reading broke off here."""
        text = "" if self.call is None else self.end_call()
        self.role = None
        met = self.buffer[self.at : self.at + 1]
        self.events.append(Broken(met, self.position, self.wanted, not met, text, self.around()))


@dataclass(frozen=True, slots=True)
class Program:
    """Compiled combinators: the steps, the address of the first, and the address that reads plain content."""

    steps: tuple[Step, ...]
    start: int
    text: int
    has_ids: bool
    """Calls may have ids of their own."""


_IN_CALLS = frozenset((Role.ARGUMENT, Role.VALUE))
_SPANS = {Role.KEY: Role.ARGUMENT, Role.VALUE: Role.ARGUMENT, Role.CALL: Role.MARKER}
"""What the text of a tag is called in a span, where its own role is only of use inside a call."""
