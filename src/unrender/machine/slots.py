"""The machine's instructions for the slots of a call: its name, its id, its arguments' names.

Rules: as in `instructions`: a step that cannot decide returns True and leaves the machine as it was.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from unrender.format import Slot
from unrender.limits import MAX_NAME, MAX_STOPS, MAX_WORDS
from unrender.machine.instructions import take_literal
from unrender.machine.interpreter import Machine
from unrender.nodes import Role
from unrender.values.finder import Finder

_NAME_END = re.compile(r"""[\s"'{}\[\]()<>,=]""")


@dataclass(frozen=True, slots=True)
class BeginCall:
    """A call may begin here."""

    def step(self, machine: Machine) -> bool:
        machine.begin_call()
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class MarkId:
    """The text of the id begins here."""

    def step(self, machine: Machine) -> bool:
        assert machine.call is not None
        machine.call.mark = machine.base + machine.at
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class EndId:
    """The text of the id ends here."""

    def step(self, machine: Machine) -> bool:
        assert machine.call is not None
        machine.call.id = machine.since(machine.call.mark)
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class ReadName:
    """The tool's name, up to one of `stops` or white space. It fails when no such tool is offered."""

    stops: Finder

    def step(self, machine: Machine) -> bool:
        ends = _word_ends(machine, self.stops)
        if ends is None:
            return True
        for end in ends:
            if machine.named(machine.buffer[machine.at : end]):
                machine.take(Role.NAME, end)
                machine.pc += 1
                return False
        machine.fail("the name of a tool" if machine.request.tools is None else "the name of one of the tools")
        return False


def _word_ends(machine: Machine, stops: Finder) -> list[int] | None:
    """Return where the word that is here may end, nearest first; None when that needs more text."""
    buffer, start = machine.buffer, machine.at
    horizon = start + MAX_NAME
    limit = _NAME_END.search(buffer, start, horizon)
    edge = limit.start() if limit else min(len(buffer), horizon)
    if limit and not machine.final and stops.undecided_from(buffer, start) < edge:
        return None
    ends: list[int] = []
    reach = min(edge + stops.longest, horizon)
    at, literal = stops.find(buffer, start, reach)
    while literal and at <= edge and len(ends) < MAX_STOPS:
        ends.append(at)
        at, literal = stops.find(buffer, at + 1, reach)
    if limit or (machine.final and edge < horizon):
        return [*ends, edge] if edge not in ends else ends
    if edge == horizon:
        return ends
    known = [end for end in ends if machine.request.tool(buffer[start:end])]
    # A stop that begins before these may still come.
    return known if known and stops.undecided_from(buffer, start) >= known[0] else None


@dataclass(frozen=True, slots=True)
class ReadWord:
    """A counter, an id, or the word for a value's type, up to one of `stops` or white space."""

    slot: Slot
    stops: Finder
    types: tuple[str, ...] = ()
    """The words for types that the format has."""

    def step(self, machine: Machine) -> bool:
        ends = _word_ends(machine, self.stops)
        call = machine.call
        assert call is not None
        if ends is None:
            return True
        if not ends or ends[0] == machine.at:
            machine.fail(f"the call's {self.slot.value}")
            return False
        word = machine.buffer[machine.at : ends[0]]
        if self.slot is Slot.ID:
            call.id = word
        elif self.slot is Slot.TYPE:
            call.kind = word
            if self.types and word not in self.types:
                machine.malformed(word, " or ".join(map(repr, self.types)))
        machine.take(Role.ID if self.slot is not Slot.TYPE else Role.MARKER, ends[0])
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class SkipWords:
    """Words without meaning, up to one of `stops`, on one line."""

    stops: Finder

    def step(self, machine: Machine) -> bool:
        buffer, start = machine.buffer, machine.at
        limit = start + MAX_WORDS + self.stops.longest
        end, literal = self.stops.find(buffer, start, limit)
        if literal and not machine.final and self.stops.undecided_from(buffer, start) < end:
            return True
        # What may be the beginning of a stop is not one of the words yet.
        words = buffer[start : end if literal else min(limit, self.stops.undecided_from(buffer, start))]
        if len(words) > MAX_WORDS or "\n" in words or (not literal and machine.final):
            machine.fail(" or ".join(map(repr, self.stops.literals)))
            return False
        if not literal:
            return True
        machine.take(Role.MARKER, end)
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Commit:
    """From here on it is a call, and nothing before is taken back. When the id is also known, the call starts."""

    recover: int
    waits: bool
    """The id comes later; arguments wait for it."""

    def step(self, machine: Machine) -> bool:
        assert machine.call is not None
        machine.call.recover = self.recover
        machine.commit()
        if not self.waits:
            machine.start_call()
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class ReadKey:
    """An argument's name, up to one of `stops`."""

    stops: Finder
    bare: bool
    """The key ends at white space and brackets as well."""

    def step(self, machine: Machine) -> bool:
        buffer, start, call = machine.buffer, machine.at, machine.call
        assert call is not None
        end, literal = self.stops.find(buffer, start, start + MAX_NAME)
        if not literal and not machine.final and len(buffer) - start < MAX_NAME:
            return True
        key = key_of(buffer[start:end]) if literal else ""
        if not key or (self.bare and _NAME_END.search(key)):
            machine.fail("the name of an argument")
            return False
        call.key = key
        machine.take(Role.NAME, end)
        machine.pc += 1
        return False


def key_of(text: str) -> str:
    """Return the argument's name in `text`, without space and quotation marks around it; "" where it cannot be one."""
    key = text.strip().strip("\"'")
    return "" if "\n" in key else key


@dataclass(frozen=True, slots=True)
class RepeatName:
    """The tool's name once more."""

    def step(self, machine: Machine) -> bool:
        assert machine.call is not None
        return take_literal(machine, machine.call.name)


@dataclass(frozen=True, slots=True)
class RepeatKey:
    """The argument's name once more, as in `</city>`."""

    def step(self, machine: Machine) -> bool:
        assert machine.call is not None
        return take_literal(machine, machine.call.key)
