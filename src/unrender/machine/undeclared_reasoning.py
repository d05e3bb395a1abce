"""Instructions for markers of reasoning that the format does not have, at the answer's start and in its content.

Rules: an opener counts only at the very start of an answer. A closer without an opener counts once, where a line ends
with it and no such marker was mentioned before: prose and examples keep theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from unrender.limits import MAX_BLANK
from unrender.machine.instructions import SPACE
from unrender.machine.interpreter import Machine
from unrender.machine.policy import UndeclaredReasoning
from unrender.nodes import Role
from unrender.values.finder import Finder, end_of


@dataclass(frozen=True, slots=True)
class OpenUndeclared:
    """The start of an answer: reasoning begins if a known marker is here; otherwise reading goes on."""

    finder: Finder
    """The markers, and the format's own that begin like them."""
    table: Mapping[str, int]
    otherwise: int

    def step(self, machine: Machine) -> bool:
        buffer = machine.buffer
        at = end_of(SPACE, buffer, machine.at, machine.at + MAX_BLANK)
        blank = at == len(buffer) and at - machine.at < MAX_BLANK
        if not machine.final and (blank or self.finder.may_grow(buffer, at)):
            return True
        marker = self.finder.at(buffer, at)
        machine.pc = self.table.get(marker, self.otherwise) if _reads(machine) else self.otherwise
        if machine.pc != self.otherwise:
            machine.take(Role.LAYOUT, at)
            machine.malformed(marker, "an answer without reasoning, or one that begins as the format has it")
            machine.mentioned = True
        return False


@dataclass(frozen=True, slots=True)
class Mention:
    """A marker of reasoning that the format does not have, in content. It is text, and so is its closer."""

    size: int
    hub: int

    def step(self, machine: Machine) -> bool:
        _mention(machine, self.size, self.hub)
        return False


@dataclass(frozen=True, slots=True)
class CloseUndeclared:
    """A closer of reasoning that was never opened.

    It is a marker once, at the end of a line; otherwise it is text.
    """

    size: int
    hub: int

    def step(self, machine: Machine) -> bool:
        end = machine.at + self.size
        if not machine.mentioned and end == len(machine.buffer) and not machine.final:
            return True
        ends_line = end == len(machine.buffer) or machine.buffer.startswith("\n", end)
        if machine.mentioned or not ends_line or not _reads(machine):
            _mention(machine, self.size, self.hub)
            return False
        machine.mentioned = True
        machine.malformed(machine.buffer[machine.at : end], "what opens reasoning, before what closes it")
        machine.pc += 1
        return False


def _mention(machine: Machine, size: int, hub: int) -> None:
    machine.mentioned = machine.answered = True
    machine.text(Role.CONTENT, machine.at + size)
    machine.pc = hub


def _reads(machine: Machine) -> bool:
    return machine.policy.undeclared_reasoning == UndeclaredReasoning.READ
