"""The instructions of a grammar made by hand: frozen data, each with the step that it takes.

Such a program also uses those of `instructions` that take a marker or layout, and that go on elsewhere.
Rules: a step that cannot decide returns True and leaves the machine as it was; one that does not match calls `machine.fail`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from unrender.limits import MAX_NAME, MAX_STACK
from unrender.machine.calls import fail_call, offers
from unrender.machine.frames import IN_CALLS
from unrender.machine.handmade.tagged import close_tag, open_tag
from unrender.machine.interpreter import Machine
from unrender.messages.wire import CallStatus
from unrender.nodes import Role
from unrender.values.finder import Finder, Flow, end_of
from unrender.values.resumable import DONE, MORE
from unrender.values.scanner import LiteralScanner, LiteralStyle

UNLIMITED = 1 << 60
_TEXTS = (Role.CONTENT, Role.REASONING)

OptionGuard = re.Pattern[str] | None
"""What the next character must match for an option to be tried; None for anything, the end of the output included."""


def at_edge(machine: Machine) -> bool:
    """Return whether only more text can tell what comes next."""
    return machine.at == len(machine.buffer) and not machine.final


@dataclass(frozen=True, slots=True)
class CharRun:
    """`[a-z]{minimum,maximum}`: as many characters as match."""

    pattern: re.Pattern[str]
    """Zero or more of the characters."""
    minimum: int
    maximum: int
    wanted: str

    def step(self, machine: Machine) -> bool:
        limit = machine.at + self.maximum - machine.counted
        end = end_of(self.pattern, machine.buffer, machine.at, limit)
        machine.counted += end - machine.at
        machine.take(Role.MARKER, end)
        if at_edge(machine) and machine.counted < self.maximum:
            return True  # The next chunk goes on counting.
        count, machine.counted = machine.counted, 0
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
    guarded: bool = False
    """Some option depends on the next character."""
    holds: bool = False
    """A cut inside ends there: the way back leads out of a lookahead, or of what is read as a whole."""

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
            machine.open(viable[1:], holds=self.holds)
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
class Loop:
    """`a{minimum,maximum}`: read another round, or go on."""

    minimum: int
    maximum: int
    guards: tuple[OptionGuard, OptionGuard]
    """For the first round, and for those that begin with the separator."""
    targets: tuple[int, int]
    otherwise: int

    def step(self, machine: Machine) -> bool:
        return self.round(machine, 0)

    def round(self, machine: Machine, count: int) -> bool:
        """Begin a round after `count` others, if one is here; return True to suspend."""
        again, serial = min(count, 1), 0
        if count == self.maximum:
            return machine.go_to(self.otherwise)
        # A round that has to come needs no way back.
        if count >= self.minimum:
            guard = self.guards[again]
            if guard is not None:
                if at_edge(machine):
                    return True
                if not guard.match(machine.buffer, machine.at):
                    return machine.go_to(self.otherwise)
            # A way back for each round: `("a" "b")* "a"` reads "aba" only by giving the second round up.
            serial = machine.open((self.otherwise,))
        machine.push(count=count, start=machine.position, way=serial)
        return machine.go_to(self.targets[again])


@dataclass(frozen=True, slots=True)
class Again:
    """The end of a round: another one follows, unless this one took no text."""

    loop: Loop

    def step(self, machine: Machine) -> bool:
        stack, entry = machine.stack, machine.pop()
        machine.close(entry.way)
        # `(a?)*` matches nothing at all any number of times: one such round is enough.
        if machine.position == entry.start:
            return machine.go_to(self.loop.otherwise)
        waits = self.loop.round(machine, entry.count + 1)
        if waits:
            machine.stack = stack
        return waits


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
            open_tag(machine, self.role)
        return machine.go_on()


@dataclass(frozen=True, slots=True)
class Untagged:
    """The end of a tag. A tag of a call's name fails unless a tool of that name is offered."""

    role: Role
    waits: bool = False
    """Calls may have ids of their own, and begin with both."""

    def step(self, machine: Machine) -> bool:
        if self.role is Role.NAME and not _is_name(machine):
            return machine.fail("the name of a tool")
        if self.role in IN_CALLS:
            close_tag(machine, self.role, waits=self.waits)
        machine.tag = machine.pop().tag
        return machine.go_on()


def _is_name(machine: Machine) -> bool:
    return machine.request.calls_allowed and len(machine.name) <= MAX_NAME and offers(machine, machine.name)


@dataclass(frozen=True, slots=True)
class BreakOff:
    """The reading broke off here: the rest is plain content."""

    def step(self, machine: Machine) -> bool:
        if at_edge(machine):
            return True
        machine.tag = None
        # What a caller sees depends on the text alone: one character is the same in any chunks.
        met = machine.buffer[machine.at : machine.at + 1]
        if machine.call is None:
            machine.malformed(met, machine.wanted)
        else:  # The call that is open ends.
            fail_call(machine, CallStatus.INVALID if met else CallStatus.TRUNCATED, machine.wanted, met)
        return machine.go_on()


@dataclass(frozen=True, slots=True)
class Rewind:
    """The end of a lookahead: go back to its beginning, then on at `target`."""

    target: int

    def step(self, machine: Machine) -> bool:
        if not machine.rewind(machine.pop().way):
            return False
        machine.pop()  # The way back has the entry of its choice on the stack.
        return machine.go_to(self.target)


@dataclass(frozen=True, slots=True)
class Never:
    """Nothing matches."""

    wanted: str

    def step(self, machine: Machine) -> bool:
        return machine.fail(self.wanted)
