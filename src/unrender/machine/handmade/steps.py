"""The instructions of a grammar made by hand: frozen data, each with the step that it takes.

Such a program also uses those of `instructions` that take a marker or layout, and that go on elsewhere.
Rules: a step that cannot decide returns True and leaves the machine as it was; one that does not match calls `machine.fail`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from unrender.limits import MAX_NAME, MAX_STACK
from unrender.machine.handmade.tagged import IN_CALLS, Closed, Opened
from unrender.machine.interpreter import Machine
from unrender.nodes import Role
from unrender.values.finder import Finder, Flow, end_of
from unrender.values.scanner import DONE, FAILED, LiteralScanner, LiteralStyle

UNLIMITED = -1
_TEXTS = (Role.CONTENT, Role.REASONING)

OptionGuard = re.Pattern[str] | None
"""What the next character must match for an option to be tried; None for anything, the end of the output included."""


@dataclass(frozen=True, slots=True)
class Count:
    """Begin to count characters, or rounds."""

    def step(self, machine: Machine) -> bool:
        machine.push(count=0)
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class CharRun:
    """`[a-z]{minimum,maximum}`, after `Count`: as many characters as match."""

    pattern: re.Pattern[str]
    """Zero or more of the characters."""
    minimum: int
    maximum: int
    wanted: str

    def step(self, machine: Machine) -> bool:
        assert machine.stack is not None
        before = machine.stack.count
        limit = len(machine.buffer) if self.maximum == UNLIMITED else machine.at + self.maximum - before
        size = end_of(self.pattern, machine.buffer, machine.at, limit) - machine.at
        machine.take(Role.MARKER, machine.at + size)
        count = before + size
        if machine.at == len(machine.buffer) and count != self.maximum and not machine.final:
            machine.pop()
            machine.push(count=count)
            return True
        machine.pop()
        machine.pc += 1
        if count < self.minimum:
            machine.fail(self.wanted)
        return False


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
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Value:
    """One JSON or Python value."""

    style: LiteralStyle
    wanted: str
    first: str = ""
    """When given, the characters with which the value must begin."""

    def step(self, machine: Machine) -> bool:
        if machine.scanner is None:
            if self.first and not self._begins(machine):
                return machine.at == len(machine.buffer) and not machine.final
            machine.scanner = LiteralScanner(self.style)
        end, text, status = machine.scanner.scan(machine.buffer, machine.at, final=machine.final)
        machine.take_value(end, text)
        if status == DONE:
            machine.scanner = None
            machine.pc += 1
        elif status == FAILED or machine.final:
            machine.scanner = None
            machine.fail(self.wanted)
        else:
            return True
        return False

    def _begins(self, machine: Machine) -> bool:
        if machine.at < len(machine.buffer) and machine.buffer[machine.at] in self.first:
            return True
        if machine.at < len(machine.buffer) or machine.final:
            machine.fail(self.wanted)
        return False


@dataclass(frozen=True, slots=True)
class Try:
    """`a / b / c`: try the options in turn, without those that the next character rules out."""

    options: tuple[tuple[OptionGuard, int], ...]
    wanted: str
    guarded: bool
    """Some option depends on the next character."""

    def step(self, machine: Machine) -> bool:
        here = machine.at
        if self.guarded and here == len(machine.buffer) and not machine.final:
            return True
        viable = tuple(target for guard, target in self.options if guard is None or guard.match(machine.buffer, here))
        if not viable or _too_deep(machine):
            machine.fail(self.wanted)
            return False
        serial = machine.serial + 1 if len(viable) > 1 else 0
        machine.push(way=serial)
        if serial:
            machine.open(viable[1:])
        machine.pc = viable[0]
        return False


def _too_deep(machine: Machine) -> bool:
    return machine.stack is not None and machine.stack.depth >= MAX_STACK


@dataclass(frozen=True, slots=True)
class Chosen:
    """The end of an option: the others are no longer tried."""

    target: int

    def step(self, machine: Machine) -> bool:
        machine.close(machine.pop().way)
        machine.pc = self.target
        return False


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
        assert machine.stack is not None
        count = machine.stack.count
        if count == self.maximum:
            machine.pc = self.otherwise
            return False
        again = min(count, 1)
        if count < self.minimum:
            self._begin(machine, count, 0)
            machine.pc = self.targets[again]
            return False
        guard = self.guards[again]
        if guard is not None:
            if machine.at == len(machine.buffer) and not machine.final:
                return True
            if not guard.match(machine.buffer, machine.at):
                machine.pc = self.otherwise
                return False
        serial = machine.open((self.otherwise,))
        self._begin(machine, count, serial)
        machine.pc = self.targets[again]
        return False

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
        machine.pc = self.head if machine.position > entry.start else self.otherwise
        return False


@dataclass(frozen=True, slots=True)
class Counted:
    """The end of a loop."""

    def step(self, machine: Machine) -> bool:
        machine.pop()
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Enter:
    """Read the rule at `target`, then go on here."""

    target: int

    def step(self, machine: Machine) -> bool:
        if _too_deep(machine):
            machine.fail(f"at most {MAX_STACK} rules inside each other")
            return False
        machine.push(address=machine.pc + 1)
        machine.pc = self.target
        return False


@dataclass(frozen=True, slots=True)
class Return:
    """The end of a rule."""

    def step(self, machine: Machine) -> bool:
        machine.pc = machine.pop().address
        return False


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
            machine.events.append(Opened(self.role, machine.position))
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Untagged:
    """The end of a tag. A tag of a call's name fails unless a tool of that name is offered."""

    role: Role

    def step(self, machine: Machine) -> bool:
        if self.role is Role.NAME and not _is_name(machine):
            machine.fail("the name of a tool")
            return False
        if self.role in IN_CALLS:
            machine.events.append(Closed(self.role, machine.position))
        machine.tag = machine.pop().tag
        machine.pc += 1
        return False


def _is_name(machine: Machine) -> bool:
    return machine.request.calls_allowed and len(machine.name) <= MAX_NAME and machine.offers(machine.name)


@dataclass(frozen=True, slots=True)
class Ended:
    """`!.`: the end of the output."""

    def step(self, machine: Machine) -> bool:
        if machine.at == len(machine.buffer) and not machine.final:
            return True
        machine.pc += 1
        if machine.at < len(machine.buffer):
            machine.fail("the end of the output")
        return False


@dataclass(frozen=True, slots=True)
class Never:
    """Nothing matches."""

    wanted: str

    def step(self, machine: Machine) -> bool:
        machine.fail(self.wanted)
        return False


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
        machine.pc = self.start
        return False


@dataclass(frozen=True, slots=True)
class BreakOff:
    """The reading broke off here: the rest is plain content."""

    def step(self, machine: Machine) -> bool:
        if machine.at == len(machine.buffer) and not machine.final:
            return True
        machine.report()
        machine.pc += 1
        return False


# What is tried as a whole: lookaheads, atoms and cuts.


@dataclass(frozen=True, slots=True)
class Guarded:
    """The start of a lookahead or an atom. A cut inside ends there; on failure, reading goes on at `otherwise`."""

    otherwise: int

    def step(self, machine: Machine) -> bool:
        serial = machine.open((self.otherwise,), holds=True)
        machine.push(way=serial)
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class PeekEnd:
    """The end of `&a`: go back to its beginning, then on at `target`."""

    target: int

    def step(self, machine: Machine) -> bool:
        if machine.rewind(machine.pop().way):
            machine.pc = self.target
        return False


@dataclass(frozen=True, slots=True)
class Refused:
    """The end of `!a`: `a` has matched, so the lookahead fails."""

    wanted: str

    def step(self, machine: Machine) -> bool:
        if machine.rewind(machine.pop().way):
            machine.fail(self.wanted)
        return False


@dataclass(frozen=True, slots=True)
class Final:
    """A cut: what was read is final."""

    def step(self, machine: Machine) -> bool:
        machine.commit()
        machine.pc += 1
        return False
