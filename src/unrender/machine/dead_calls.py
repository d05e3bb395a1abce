"""Instructions for text that could not be read as a call: content, or text with the shape of a call, kept apart.

Rules: as in `instructions`. Text that broke off is searched for another beginning a bounded number of times.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from unrender.limits import MAX_BLANK, MAX_BROKEN
from unrender.machine.instructions import SPACE
from unrender.machine.interpreter import Machine
from unrender.machine.leftovers import BrokenText
from unrender.nodes import Role
from unrender.values.finder import Finder, end_of

_WORD = re.compile(rf"[^\s{{}}]{{0,{MAX_BROKEN}}}")
_NOWHERE, _UNDECIDED = -1, -2


@dataclass(frozen=True, slots=True)
class TextRun:
    """Reads what could not be read as a call as text.

    The text goes up to the place where reading failed, or to the next beginning of the same marker.
    """

    role: Role
    hub: int
    finder: Finder
    closers: Finder
    """What ends the text wherever it is, also where a call was looked for."""

    def step(self, machine: Machine) -> bool:
        failed = min(max(machine.at + 1, machine.failed_at), len(machine.buffer))
        end = self._again(machine, failed) if machine.rereads else failed
        closed, closer = self.closers.find(machine.buffer, machine.at + 1, end + self.closers.longest)
        end = closed if closer and closed < end else end
        if not machine.final and self.finder.undecided_from(machine.buffer, machine.at + 1) < end:
            return True
        if self.role is Role.CONTENT:
            machine.answered = True
        machine.text(self.role, end)
        machine.pc = self.hub
        return False

    def _again(self, machine: Machine, failed: int) -> int:
        """Return where, before `failed`, the marker comes again, or one that outlasts it begins in it, as in `>>>>`."""
        buffer, start = machine.buffer, machine.at
        marker = self.finder.at(buffer, start)
        core = marker.strip()
        inside = start + len(marker)
        limit = max(failed, inside)
        at, literal = self.finder.find(buffer, start + 1, limit + self.finder.longest)
        while literal and at < limit:
            same = core and at >= inside and literal.strip().startswith(core)
            if same or at < inside < at + len(literal):
                return at
            at, literal = self.finder.find(buffer, at + 1, limit + self.finder.longest)
        return failed


@dataclass(frozen=True, slots=True)
class BrokenRun:
    """Reads text with the shape of a call that could not be read as one.

    It goes from the call's marker to a closing brace and the call's closers. Without these it is text.
    """

    text: TextRun
    ends: Finder
    """The closing brace, and what begins another call."""
    closers: Finder

    def step(self, machine: Machine) -> bool:
        buffer = machine.buffer
        end = self._brace(machine)
        if end == _NOWHERE:
            return self.text.step(machine)
        if end == _UNDECIDED:
            return True
        closer = "}"
        while closer:
            after = end_of(SPACE, buffer, end, end + MAX_BLANK)
            if not machine.final and (after == len(buffer) or self.closers.may_grow(buffer, after)):
                return True
            closer = self.closers.at(buffer, after)
            end = after + len(closer) if closer else end
        # What a generation prompt wrote is never content.
        if text := buffer[max(machine.at, -machine.base) if machine.given else machine.at : end]:
            machine.events.append(BrokenText(text))
        machine.take(Role.MALFORMED, end)
        machine.pc = self.text.hub
        return False

    def _brace(self, machine: Machine) -> int:
        """Return where the brace has closed that opens after the marker, with at most a word between."""
        buffer, failed = machine.buffer, max(machine.at + 1, machine.failed_at)
        opened = buffer.find("{", machine.at, failed)
        if opened < 0:
            opened = end_of(_WORD, buffer, failed)
            if opened == len(buffer) and opened - failed < MAX_BROKEN and not machine.final:
                return _UNDECIDED
            if not buffer.startswith("{", opened):
                return _NOWHERE
        inside = max(opened + 1, failed)
        limit = inside + MAX_BROKEN
        search = self.ends.find if machine.final else self.ends.decided
        at, literal = search(buffer, inside)
        if literal == "}" and at < limit:
            return at + 1
        return _NOWHERE if literal or machine.final or len(buffer) >= limit else _UNDECIDED
