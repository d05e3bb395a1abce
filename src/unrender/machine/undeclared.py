"""Instructions for the markers of reasoning that the format does not have.

Rules: an opener of undeclared reasoning counts only at the very start of an answer. A closer without an opener counts once, where
a line ends with it and no such marker was mentioned before: prose and examples keep theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from unrender.limits import MAX_BLANK
from unrender.machine.instructions import SPACE
from unrender.machine.interpreter import Machine
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
        # `\n<think>`: white space before a marker says nothing yet, so it waits, but only so much of it.
        blank = at == len(buffer) and at - machine.at < MAX_BLANK
        if not machine.final and (blank or self.finder.may_grow(buffer, at)):
            return True
        marker = self.finder.at(buffer, at)
        machine.pc = self.table.get(marker, self.otherwise) if _reads(machine) else self.otherwise
        if machine.pc != self.otherwise:
            machine.take(Role.LAYOUT, at)
            # From here on a second `<think>` or `</think>`, after this reasoning, is text.
            machine.malformed(marker, "an answer without reasoning, or one that begins as the format has it")
            machine.mentioned = True
        return False


@dataclass(frozen=True, slots=True)
class Mention:
    """A marker of reasoning that the format does not have, in content: text.

    A closer that was never opened is a marker once, at the end of a line.
    """

    size: int
    hub: int
    closes: bool = False

    def step(self, machine: Machine) -> bool:
        # "…</think>" may be followed by a line break, or by a comma: "</think>, the closer, is …".
        end = machine.at + self.size
        counts = self.closes and not machine.mentioned
        if counts and end == len(machine.buffer) and not machine.final:
            return True
        ends_line = end == len(machine.buffer) or machine.buffer.startswith("\n", end)
        machine.mentioned = True
        if not counts or not ends_line or not _reads(machine):
            machine.answered = True
            machine.text(Role.CONTENT, end)
            return machine.go_to(self.hub)
        machine.malformed(machine.buffer[machine.at : end], "what opens reasoning, before what closes it")
        return machine.go_on()


def _reads(machine: Machine) -> bool:
    return machine.policy.undeclared_reasoning == "read"
