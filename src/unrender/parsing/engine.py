"""The engine: runs compiled combinators over text that arrives in pieces, and gives notes of what was read.

Strategy: an LPeg-style machine whose whole state is data. A step that runs out of input leaves everything as it is and
suspends; the next piece resumes it, so nothing is read twice. While a way back is open, notes wait; when it closes they
are final. What was consumed while a way back is open is kept in pieces, and joined again only when the engine goes back.

Rules:
- A step moves `at` and `pc`, and returns True only to suspend. It never suspends once `final` is set.
- Only `fail` goes back, and only to the latest way. `furthest` and `spent` depend on the text alone, never on its chunks.
- Positions count characters from where the output begins; `base` is the position of `buffer[0]`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Protocol

from unrender.grammar.nodes import Role
from unrender.parsing.machine import CONTEXT

MAX_NAME = 1200
"""Longest name of a call, in characters."""
MAX_DEPTH = 100_000
"""Entries on the stack: rules, choices, loops and tags that are open at once."""
MAX_SPENT = 64
"""How many characters may be given back in all, for each character read; what needs more is malformed."""
FREE = 10_000
"""Characters that may be given back whatever the text's length."""


class Step(Protocol):
    """One instruction: frozen data, and the step that it makes."""

    def step(self, engine: Engine) -> bool | None:
        """Advance the engine; True suspends it until there is more text."""
        ...


class Scanner(Protocol):
    """A resumable reader of one value."""

    def copy(self) -> Scanner:
        """Return an independent scanner in the same state."""
        ...

    def scan(self, text: str, start: int, *, final: bool) -> tuple[int, str, int]:
        """Take what can be decided of `text` from `start` on."""
        ...


@dataclass(frozen=True, slots=True)
class Note:
    """Text that was read as `role`; `value` is its JSON where a value was read."""

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
    """The latest tag that is open ends, at `position`; `text` is a whole call's, markers included."""

    role: Role
    position: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Broken:
    """Nothing in the grammar goes on from here: what follows is plain content. `text` is the call's that broke off."""

    met: str
    """The character that was met."""
    position: int
    expected: str
    at_end: bool
    text: str
    around: str = field(compare=False)
    """What stands before and after, for an error's message."""


Notice = Note | Opened | Closed | Broken


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the stack, a linked list: ways back share what is below them."""

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
    """A way back: where the text was, and what is left to be tried there."""

    targets: tuple[int, ...]
    at: int
    notes: int
    spans: int
    span_end: int
    stack: Entry | None
    role: Role | None
    name: str
    call: int | None
    serial: int
    barrier: bool
    """A cut leaves it open."""


class Engine:
    """The state of one reading."""

    __slots__ = (
        "at",
        "base",
        "buffer",
        "call",
        "final",
        "furthest",
        "given",
        "halted",
        "name",
        "names",
        "notes",
        "past",
        "past_start",
        "pc",
        "program",
        "released",
        "role",
        "scanner",
        "serial",
        "span_ends",
        "span_roles",
        "spent",
        "stack",
        "steps",
        "text",
        "wanted",
        "wanted_at",
        "ways",
    )

    def __init__(self, program: Program, names: frozenset[str] | None, *, begun: int = 0, given: bool = False) -> None:
        self.program = program.steps
        self.text = program.text
        """Where plain content is read."""
        self.names = names
        """The names that a call may have; None for any."""
        self.pc = program.start
        self.buffer = ""
        self.at = self.base = self.past_start = self.furthest = -begun
        self.past: deque[str] = deque()
        """What lies between `past_start` and `base`."""
        self.given = given
        """Text left of position 0 was written by a generation prompt: it is never content."""
        self.call: int | None = None
        """Where the call that is open begins; its text is kept until it ends."""
        self.final = False
        self.halted = False
        self.ways: list[Way] = []
        self.notes: list[Notice] = []
        self.released = 0
        """How many notes are out."""
        self.span_roles: list[Role] = []
        self.span_ends: list[int] = []
        self.stack: Entry | None = None
        self.role: Role | None = None
        self.name = ""
        """The name of the call that is being read, as far as it is known."""
        self.scanner: Scanner | None = None
        self.serial = 0
        self.spent = 0
        self.steps = 0
        self.wanted = ""
        self.wanted_at = -begun

    def copy(self) -> Engine:
        """Return an independent engine in the same state."""
        other = Engine.__new__(Engine)
        for slot in self.__slots__:
            value = getattr(self, slot)
            setattr(other, slot, value.copy() if isinstance(value, list | deque) else value)
        other.scanner = self.scanner.copy() if self.scanner else None
        return other

    def feed(self, text: str) -> list[Notice]:
        """Run over more text; returns the notes that are final."""
        taken = self.at - self.base
        if taken:
            self._keep(self.buffer[:taken])
            self.buffer = self.buffer[taken:]
            self.base = self.at
        self.buffer = self.buffer + text if self.buffer else text
        return self.run()

    def finish(self) -> list[Notice]:
        """Run to the end: no more text will come."""
        self.final = True
        return self.run()

    def run(self) -> list[Notice]:
        """Run until the engine suspends or halts; returns the notes that are final."""
        program = self.program
        while not self.halted:
            self.steps += 1
            if program[self.pc].step(self):
                break
        count = self.ways[0].notes - self.released if self.ways else len(self.notes)
        if not count:
            return []
        released, self.notes = self.notes[:count], self.notes[count:]
        self.released += count
        return released

    def _keep(self, consumed: str) -> None:
        """Keep what was consumed while there is a way back into it, or a call that began in it is open."""
        self.past.append(consumed)
        first = self.ways[0].at if self.ways else self.at
        if self.call is not None:
            first = min(first, self.call)
        while self.past and self.past_start + len(self.past[0]) <= first:
            self.past_start += len(self.past.popleft())

    @property
    def here(self) -> int:
        """Where in `buffer` the engine is."""
        return self.at - self.base

    def final_spans(self) -> list[tuple[Role, int]]:
        """Return role and end of each stretch that no way back can undo."""
        spans = list(zip(self.span_roles, self.span_ends, strict=True))
        if self.ways:
            way = self.ways[0]
            del spans[way.spans :]
            if spans:
                spans[-1] = (spans[-1][0], way.span_end)
        return spans

    @property
    def final_end(self) -> int:
        """Where the last of the final spans ends, without a look at the others."""
        if self.ways:
            return self.ways[0].span_end if self.ways[0].spans else 0
        return self.span_ends[-1] if self.span_ends else 0

    # What steps do to the engine.

    def take(self, role: Role, size: int, value: str | None = None) -> None:
        """Consume `size` characters as `role` where no tag is open, else as the tag's role; `value` is their JSON."""
        if size <= 0 and not value:
            return
        here = self.here
        said = self.role or role
        text = self.buffer[here : here + size]
        if self.given and self.at < 0 and said is Role.CONTENT:
            text = text[-self.at :]
        if said is Role.NAME and len(self.name) <= MAX_NAME:
            self.name += text
        if self.role is not None and (text or value):
            as_value = value is not None and said in _IN_CALLS
            self.notes.append(Note(said, value if as_value and value is not None else text, as_value))
        self.at += size
        self._span(_SPANS.get(said, said))

    def _span(self, role: Role) -> None:
        if self.span_roles and self.span_roles[-1] is role:
            self.span_ends[-1] = self.at
        elif self.at > (self.span_ends[-1] if self.span_ends else self.at - 1):
            self.span_roles.append(role)
            self.span_ends.append(self.at)

    def push(self, **held: int | Role | None) -> None:
        """Put an entry on the stack."""
        depth = self.stack.depth + 1 if self.stack else 1
        self.stack = Entry(self.stack, depth, **held)  # type: ignore[arg-type]

    def pop(self) -> Entry:
        """Take the latest entry off the stack."""
        entry = self.stack
        assert entry is not None
        self.stack = entry.below
        return entry

    def open(self, targets: tuple[int, ...], *, barrier: bool = False) -> int:
        """Open a way back to `targets`, tried in turn with the stack as it is now; returns its serial number."""
        self.serial += 1
        end = self.span_ends[-1] if self.span_ends else 0
        self.ways.append(
            Way(
                targets,
                self.at,
                self.released + len(self.notes),
                len(self.span_ends),
                end,
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
        """Close the way back of that number, and any opened after it; does nothing when a cut has closed it."""
        while serial and self.ways and self.ways[-1].serial >= serial:
            self.ways.pop()

    def cut(self) -> None:
        """Close all ways back up to the latest barrier."""
        while self.ways and not self.ways[-1].barrier:
            self.ways.pop()

    def rewind(self, serial: int) -> bool:
        """Undo what was read since the way back of that number was opened, and close it; False when that is too much."""
        while self.ways[-1].serial > serial:
            self.ways.pop()
        way = self.ways.pop()
        self.furthest = max(self.furthest, self.at)
        self.spent += 1 + self.at - way.at
        self._restore(way)
        return not self._exhausted()

    def fail(self, wanted: str) -> None:
        """Nothing matches here: go back to the latest way, or end the reading when there is none."""
        if self.at >= self.wanted_at:
            self.wanted_at, self.wanted = self.at, wanted
        self.furthest = max(self.furthest, self.at)
        if not self.ways:
            self._break(wanted)
            return
        way = self.ways[-1]
        self.spent += 1 + self.at - way.at
        if self._exhausted():
            return
        self._restore(way)
        self.pc = way.targets[0]
        if len(way.targets) > 1:
            self.ways[-1] = replace(way, targets=way.targets[1:])
        else:
            self.ways.pop()

    def _exhausted(self) -> bool:
        """Return whether too much was given back; then the reading has ended where the first way back begins."""
        if self.spent <= MAX_SPENT * max(self.furthest, 0) + FREE:
            return False
        if self.ways:
            self._restore(self.ways[0])
            self.ways.clear()
        self._break("text that the grammar reads in fewer attempts")
        return True

    def _restore(self, way: Way) -> None:
        del self.notes[way.notes - self.released :]
        del self.span_roles[way.spans :]
        del self.span_ends[way.spans :]
        if self.span_ends:
            self.span_ends[-1] = way.span_end
        self.stack, self.role, self.name, self.call = way.stack, way.role, way.name, way.call
        self.scanner = None
        self.at = way.at
        if way.at < self.base:
            self._unkeep(way.at)

    def _unkeep(self, at: int) -> None:
        """Put what was consumed since `at` back into the buffer."""
        pieces = [self.buffer]
        while self.base > at:
            pieces.append(self.past.pop())
            self.base -= len(pieces[-1])
        self.buffer = "".join(reversed(pieces))

    def _break(self, wanted: str) -> None:
        """The reading cannot go on: report it, and read the rest as content."""
        self.wanted = wanted
        self.stack = None
        self.scanner = None
        self.pc = self.text

    def end_call(self) -> str:
        """Return the text of the call that is open, markers included; it is not kept any more."""
        assert self.call is not None
        start = max(self.call, 0) if self.given else self.call
        if start < self.base:
            self._unkeep(start)
        text = self.buffer[start - self.base : self.here]
        self.call = None
        return text

    def report(self) -> None:
        """Note that the reading broke off here."""
        text = "" if self.call is None else self.end_call()
        here = self.here
        around = self.buffer[max(0, here - CONTEXT) : here + CONTEXT]
        self.role = None
        met = self.buffer[here : here + 1]
        self.notes.append(Broken(met, self.at, self.wanted, here >= len(self.buffer), text, around))


@dataclass(frozen=True, slots=True)
class Program:
    """Compiled combinators: the steps, where they start, and where plain content is read."""

    steps: tuple[Step, ...]
    start: int
    text: int
    has_ids: bool
    """Calls may have ids of their own."""


_IN_CALLS = frozenset((Role.ARGUMENT, Role.VALUE))
_SPANS = {Role.KEY: Role.ARGUMENT, Role.VALUE: Role.ARGUMENT, Role.CALL: Role.MARKER}
"""What the text of a tag is called in a span, where its own role is only of use inside a call."""
