"""The instructions of a grammar made by hand: frozen data, each with the step that it takes.

Such a program also uses those of `instructions` that take a marker or layout, and that go on elsewhere.
Rules: a step that cannot decide returns True and leaves the machine as it was; one that does not match calls `machine.fail`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from unrender.limits import MAX_NAME, MAX_STACK
from unrender.machine.handmade.tagged import IN_CALLS
from unrender.machine.interpreter import Machine
from unrender.nodes import Role
from unrender.values.finder import Finder, Flow, end_of
from unrender.values.resumable import DONE, MORE
from unrender.values.scanner import LiteralScanner, LiteralStyle

UNLIMITED = -1
_TEXTS = (Role.CONTENT, Role.REASONING)

OptionGuard = re.Pattern[str] | None
"""What the next character must match for an option to be tried; None for anything, the end of the output included."""


def at_edge(machine: Machine) -> bool:
    """Return whether only more text can tell what comes next."""
    return machine.at == len(machine.buffer) and not machine.final


@dataclass(frozen=True, slots=True)
class Count:
    """Begin to count characters, or rounds."""

    def step(self, machine: Machine) -> bool:
        machine.push(count=0)
        return machine.go_on()


@dataclass(frozen=True, slots=True)
class CharRun:
    """`[a-z]{minimum,maximum}`, after `Count`: as many characters as match."""

    pattern: re.Pattern[str]
    """Zero or more of the characters."""
    minimum: int
    maximum: int
    wanted: str

    def step(self, machine: Machine) -> bool:
        before = machine.top.count
        limit = len(machine.buffer) if self.maximum == UNLIMITED else machine.at + self.maximum - before
        size = end_of(self.pattern, machine.buffer, machine.at, limit) - machine.at
        machine.take(Role.MARKER, machine.at + size)
        count = before + size
        if machine.at == len(machine.buffer) and count != self.maximum and not machine.final:
            machine.pop()
            machine.push(count=count)  # The next chunk goes on counting.
            return True
        machine.pop()
        return machine.fail(self.wanted) if count < self.minimum else machine.go_on()


@dataclass(frozen=True, slots=True)
class UpTo:
    """`(!stop .)*`: all text before the first of the finder's literals."""

    finder: Finder
    flow: Flow
    """What goes straight through."""

    @classmethod
    def first_of(cls, stops: tuple[str, ...]) -> UpTo:
        """Return the instruction that reads up to the first of `stops`."""
        return cls(Finder(stops), Flow(stops))

    def step(self, machine: Machine) -> bool:
        buffer, here = machine.buffer, machine.at
        at, _ = self.finder.find(buffer, here)
        waits = at < 0 and not machine.final
        if at < 0:
            at = self.finder.undecided_from(buffer, here) if waits else len(buffer)
        machine.take(Role.MARKER, at)
        if waits:
            if machine.tag in _TEXTS and machine.span_roles[-1:] == [machine.tag]:
                machine.flow = self.flow
            return True
        return machine.go_on()


@dataclass(frozen=True, slots=True)
class Value:
    """One JSON or Python value."""

    style: LiteralStyle
    wanted: str
    first: str = ""
    """When given, the character with which the value must begin."""

    def step(self, machine: Machine) -> bool:
        if machine.scanner is None:
            if self.first and not machine.buffer.startswith(self.first, machine.at):
                return at_edge(machine) or machine.fail(self.wanted)
            machine.scanner = LiteralScanner(self.style)
        end, text, status = machine.scanner.scan(machine.buffer, machine.at, final=machine.final)
        machine.take_value(end, text)
        if status is MORE and not machine.final:
            return True
        machine.scanner = None
        return machine.go_on() if status is DONE else machine.fail(self.wanted)


@dataclass(frozen=True, slots=True)
class Try:
    """`a / b / c`: try the options in turn, without those that the next character rules out."""

    options: tuple[tuple[OptionGuard, int], ...]
    wanted: str
    guarded: bool
    """Some option depends on the next character."""

    def step(self, machine: Machine) -> bool:
        here = machine.at
        if self.guarded and at_edge(machine):
            return True
        # `"<a>" / [0-9]+` at a "7": only the second is tried, so no way back is open and text streams.
        viable = tuple(target for guard, target in self.options if guard is None or guard.match(machine.buffer, here))
        if not viable or _too_deep(machine):
            return machine.fail(self.wanted)
        serial = machine.serial + 1 if len(viable) > 1 else 0
        machine.push(way=serial)
        if serial:
            machine.open(viable[1:])
        return machine.go_to(viable[0])


def _too_deep(machine: Machine) -> bool:
    return machine.stack is not None and machine.stack.depth >= MAX_STACK


@dataclass(frozen=True, slots=True)
class Chosen:
    """The end of an option: the others are no longer tried."""

    target: int

    def step(self, machine: Machine) -> bool:
        machine.close(machine.pop().way)
        return machine.go_to(self.target)


@dataclass(frozen=True, slots=True)
class Round:
    """`a{minimum,maximum}`, after `Count`: read another round, or go on."""

    minimum: int
    maximum: int
    guards: tuple[OptionGuard, OptionGuard]
    """For the first round, and for those that begin with the separator."""
    targets: tuple[int, int]
    otherwise: int

    def step(self, machine: Machine) -> bool:
        count = machine.top.count
        if count == self.maximum:
            return machine.go_to(self.otherwise)
        again = min(count, 1)
        # A round that has to come needs no way back.
        if count < self.minimum:
            self._begin(machine, count, 0)
            return machine.go_to(self.targets[again])
        guard = self.guards[again]
        if guard is not None:
            if at_edge(machine):
                return True
            if not guard.match(machine.buffer, machine.at):
                return machine.go_to(self.otherwise)
        # A way back for each round: `("a" "b")* "a"` reads "aba" only by giving the second round up.
        serial = machine.open((self.otherwise,))
        self._begin(machine, count, serial)
        return machine.go_to(self.targets[again])

    def _begin(self, machine: Machine, count: int, serial: int) -> None:
        machine.pop()
        machine.push(count=count, start=machine.position, way=serial)


@dataclass(frozen=True, slots=True)
class Again:
    """The end of a round: another one follows, unless this one took no text."""

    head: int
    otherwise: int

    def step(self, machine: Machine) -> bool:
        entry = machine.pop()
        machine.close(entry.way)
        machine.push(count=entry.count + 1)
        # `(a?)*` matches nothing at all any number of times: one such round is enough.
        return machine.go_to(self.head if machine.position > entry.start else self.otherwise)


@dataclass(frozen=True, slots=True)
class Counted:
    """The end of a loop."""

    def step(self, machine: Machine) -> bool:
        machine.pop()
        return machine.go_on()


@dataclass(frozen=True, slots=True)
class Enter:
    """Read the rule at `target`, then go on here."""

    target: int

    def step(self, machine: Machine) -> bool:
        if _too_deep(machine):
            return machine.fail(f"at most {MAX_STACK} rules inside each other")
        machine.push(address=machine.pc + 1)
        return machine.go_to(self.target)


@dataclass(frozen=True, slots=True)
class Return:
    """The end of a rule."""

    def step(self, machine: Machine) -> bool:
        return machine.go_to(machine.pop().address)


@dataclass(frozen=True, slots=True)
class Tagged:
    """The beginning of a tag: the text inside it has its role."""

    role: Role

    def step(self, machine: Machine) -> bool:
        machine.push(tag=machine.tag)
        machine.tag = self.role
        if self.role is Role.NAME:
            machine.name = ""
        if self.role in IN_CALLS:
            machine.open_tag(self.role)
        return machine.go_on()


@dataclass(frozen=True, slots=True)
class Untagged:
    """The end of a tag. A tag of a call's name fails unless a tool of that name is offered."""

    role: Role

    def step(self, machine: Machine) -> bool:
        if self.role is Role.NAME and not _is_name(machine):
            return machine.fail("the name of a tool")
        if self.role in IN_CALLS:
            machine.close_tag(self.role)
        machine.tag = machine.pop().tag
        return machine.go_on()


def _is_name(machine: Machine) -> bool:
    return machine.request.calls_allowed and len(machine.name) <= MAX_NAME and machine.offers(machine.name)


@dataclass(frozen=True, slots=True)
class Never:
    """Nothing matches."""

    wanted: str

    def step(self, machine: Machine) -> bool:
        return machine.fail(self.wanted)


@dataclass(frozen=True, slots=True)
class Begin:
    """The first instruction of a grammar made by hand."""

    start: int
    """Where the answer is read."""
    rest: int
    """Where the text is read on which the grammar cannot go on."""
    has_ids: bool
    """Calls may have ids of their own."""

    def step(self, machine: Machine) -> bool:
        machine.rest, machine.has_ids = self.rest, self.has_ids
        machine.answered = True
        return machine.go_to(self.start)


@dataclass(frozen=True, slots=True)
class BreakOff:
    """The reading broke off here: the rest is plain content."""

    def step(self, machine: Machine) -> bool:
        if at_edge(machine):
            return True
        machine.report()
        return machine.go_on()


# What is tried as a whole: lookaheads, atoms and cuts.


@dataclass(frozen=True, slots=True)
class Guarded:
    """The start of a lookahead or an atom. A cut inside ends there; on failure, reading goes on at `otherwise`."""

    otherwise: int

    def step(self, machine: Machine) -> bool:
        # It holds: a cut inside must not close the way back that leads out of the lookahead.
        serial = machine.open((self.otherwise,), holds=True)
        machine.push(way=serial)
        return machine.go_on()


@dataclass(frozen=True, slots=True)
class PeekEnd:
    """The end of `&a`: go back to its beginning, then on at `target`."""

    target: int

    def step(self, machine: Machine) -> bool:
        return machine.rewind(machine.pop().way) and machine.go_to(self.target)


@dataclass(frozen=True, slots=True)
class Refused:
    """The end of `!a`: `a` has matched, so the lookahead fails."""

    wanted: str

    def step(self, machine: Machine) -> bool:
        return machine.rewind(machine.pop().way) and machine.fail(self.wanted)
