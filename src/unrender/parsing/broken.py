"""The machine's instructions for what began as a call and broke off: it is text, or broken text that may be left out.

Rules: as in `instructions`. Text that broke off is searched for another beginning a bounded number of times.
"""

from __future__ import annotations

from dataclasses import dataclass

from unrender.grammar.nodes import Role
from unrender.parsing.cleaning import BrokenText
from unrender.parsing.finder import Finder
from unrender.parsing.instructions import MAX_BLANK, SPACE
from unrender.parsing.machine import Machine


@dataclass(frozen=True, slots=True)
class TextRun:
    """What could not be read as a call is text, up to where the reading failed, or to where the same marker begins again."""

    role: Role
    hub: int
    finder: Finder

    def step(self, machine: Machine) -> bool:
        failed = min(max(machine.at + 1, machine.failed_at), len(machine.buffer))
        end = self._again(machine, failed) if machine.rereads else failed
        if not machine.final and self.finder.undecided_from(machine.buffer, machine.at + 1) < end:
            return True
        if self.role is Role.CONTENT:
            machine.answered = True
        machine.text(self.role, end)
        machine.pc = self.hub
        return False

    def _again(self, machine: Machine, failed: int) -> int:
        """Return where, before `failed`, the marker stands again, or one that outlasts it begins in it, as in `>>>>`."""
        buffer, start = machine.buffer, machine.at
        marker = self.finder.at(buffer, start)
        inside = start + len(marker)
        limit = max(failed, inside)
        at, literal = self.finder.find(buffer, start + 1, limit + self.finder.longest)
        while literal and at < limit:
            same = at >= inside and literal.strip() == marker.strip()
            if same or at < inside < at + len(literal):
                return at
            at, literal = self.finder.find(buffer, at + 1, limit + self.finder.longest)
        return failed


@dataclass(frozen=True, slots=True)
class BreakOff:
    """What began as a call and broke off: broken text, when it comes to an end; else everything is content."""

    otherwise: int

    def step(self, machine: Machine) -> bool:
        searched = min(max(machine.at + 1, machine.failed_at), len(machine.buffer))
        pc = machine.pc + 1
        machine.attempt((pc,), self.otherwise, holds=True, sealed=-1, reported=False)
        machine.take(Role.MALFORMED, searched)
        return False


@dataclass(frozen=True, slots=True)
class BrokenRun:
    """Broken text, up to a closing brace or the next call."""

    ends: Finder

    def step(self, machine: Machine) -> bool:
        end, literal = (self.ends.find if machine.final else self.ends.decided)(machine.buffer, machine.at)
        if literal:
            machine.take(Role.MALFORMED, end + (literal == "}"))
            machine.pc += 1
        elif machine.final:
            machine.fail("the end of a call")
        else:
            machine.take(Role.MALFORMED, end)
            return True
        return False


@dataclass(frozen=True, slots=True)
class BrokenEnd:
    """What closes a call is part of the broken text."""

    closers: Finder
    hub: int

    def step(self, machine: Machine) -> bool:
        buffer = machine.buffer
        behind = SPACE.match(buffer, machine.at, machine.at + MAX_BLANK).end()  # type: ignore[union-attr]
        if not machine.final and (behind == len(buffer) or self.closers.may_grow(buffer, behind)):
            return behind - machine.at < MAX_BLANK or self._end(machine)
        if closer := self.closers.at(buffer, behind):
            machine.take(Role.MALFORMED, behind + len(closer))
            return False
        return self._end(machine)

    def _end(self, machine: Machine) -> bool:
        machine.events.append(BrokenText(machine.since(machine.frames[-1].at)))
        machine.release()
        machine.pc = self.hub
        return False


@dataclass(frozen=True, slots=True)
class Rest:
    """All that is there is content."""

    hub: int

    def step(self, machine: Machine) -> bool:
        machine.answered = True
        machine.text(Role.CONTENT, len(machine.buffer))
        machine.pc = self.hub
        return False
