"""The machine's instructions for text and markers: frozen data, each with the step that it takes.

Rules: a step that cannot decide returns True and leaves the machine as it was; one that fails calls `machine.fail`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from unrender.limits import MAX_BLANK, MAX_NAME
from unrender.machine.interpreter import Machine
from unrender.machine.policy import CallsInReasoning
from unrender.nodes import Role
from unrender.values.finder import Finder, Flow, end_of

SPACE = re.compile(r"\s*")
BACKQUOTES = "```"
FENCE = re.compile(r"```\w{0,32}+")
"""Three backquotes and a language; the longest name of one that is known has 23 letters."""
_FENCE_LINE = re.compile(r"\s{0,64}+```\w{0,32}+(?!\w)[ \t]{0,64}+\n?")


@dataclass(frozen=True, slots=True)
class FreeText:
    """`(!marker .)*`: free text of `role`.

    At a marker, reading goes on where `table` says; at the end of the output, at `end`.
    """

    role: Role
    finder: Finder
    table: Mapping[str, int]
    end: int
    ending: str
    """Layout that ends a turn: no part of the text when nothing follows."""
    flow: Flow
    """What goes straight through."""

    def step(self, machine: Machine) -> bool:
        buffer = machine.buffer
        if not machine.final and self.finder.absent(buffer, machine.at):
            self._emit(machine, self._before_ending(machine, len(buffer)) if self.ending else len(buffer))
            machine.flow = self.flow
            return True
        limit, literal = self._marker(machine)
        if literal:
            self._emit(machine, limit)
            machine.take(Role.LAYOUT, limit)
            machine.pc = self.table[literal]
            return False
        self._emit(machine, self._before_ending(machine, limit) if self.ending else limit)
        if not machine.final:
            machine.flow = self.flow
            return True
        machine.take(Role.LAYOUT, len(buffer))
        machine.pc = self.end
        return False

    def _marker(self, machine: Machine) -> tuple[int, str]:
        """Return where the first marker begins, and the marker; (n, "") when there is none, and text up to n."""
        buffer = machine.buffer
        if not machine.final:
            return self.finder.decided(buffer, machine.at, whole=True)
        at, literal = self.finder.find(buffer, machine.at)
        return (at, literal) if literal else (len(buffer), "")

    def _before_ending(self, machine: Machine, limit: int) -> int:
        sizes = (len(self.ending),) if machine.final else range(len(self.ending), 0, -1)
        found = (size for size in sizes if machine.buffer.endswith(self.ending[:size], machine.at))
        return min(limit, len(machine.buffer) - next(found, 0))

    def _emit(self, machine: Machine, end: int) -> None:
        if not machine.answered and self.role is Role.CONTENT:
            blank = end - machine.at < MAX_BLANK and not machine.buffer[machine.at : end].strip()
            if blank:
                return
            machine.answered = True
        machine.text(self.role, end)


@dataclass(frozen=True, slots=True)
class Attempt:
    """`a / b / text`: try the targets in order; if none matches, the marker is text."""

    targets: tuple[int, ...]
    otherwise: int
    reported: bool
    sealed: int = -1
    """When not -1: hold back everything until all calls are read, then go there."""

    def step(self, machine: Machine) -> bool:
        holds = self.sealed >= 0
        if holds and machine.policy.calls_in_reasoning is CallsInReasoning.IGNORE:
            machine.failed_at = machine.at
            machine.pc = self.otherwise
            return False
        machine.attempt(
            self.targets, self.otherwise, holds=holds, sealed=self.sealed, reported=self.reported and not holds
        )
        return False


@dataclass(frozen=True, slots=True)
class Hold:
    """Hold the whole call back until it has been read."""

    def step(self, machine: Machine) -> bool:
        machine.hold()
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Loosen:
    """The calls begin here without their outermost marker."""

    def step(self, machine: Machine) -> bool:
        machine.loose = True
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Ahead:
    """`&"text"`: one character that must follow, and is not consumed."""

    text: str

    def step(self, machine: Machine) -> bool:
        if machine.at >= len(machine.buffer) and not machine.final:
            return True
        if machine.buffer.startswith(self.text, machine.at):
            machine.pc += 1
        else:
            machine.fail(repr(self.text))
        return False


@dataclass(frozen=True, slots=True)
class Named:
    """Where a call may begin with its tool's name: no content comes before it, and the name is that of a tool."""

    def step(self, machine: Machine) -> bool:
        named = not machine.answered and tool_at(machine, machine.at)
        if named is None:
            return True
        if named:
            machine.pc += 1
        else:
            machine.fail("the name of a tool")
        return False


def tool_at(machine: Machine, at: int) -> bool | None:
    """Return whether the name of a tool begins at `at`; None while that is not certain.

    When any name counts as a tool, it is any word.
    """
    tools = machine.request.tools
    text = machine.buffer[at : at + MAX_NAME]
    if tools is not None and any(text.startswith(tool.name) for tool in tools):
        return True
    if not machine.final and (not text or any(tool.name.startswith(text) for tool in tools or ())):
        return None
    return tools is None and text[:1].isidentifier()


@dataclass(frozen=True, slots=True)
class Skip:
    """Take the marker that was found. Markers of reasoning are text when reasoning stays in the content."""

    size: int
    role: Role = Role.MARKER

    def step(self, machine: Machine) -> bool:
        _take_marker(machine, self.role, Role.MARKER, machine.at + self.size)
        machine.pc += 1
        return False


def _take_marker(machine: Machine, role: Role, otherwise: Role, end: int) -> None:
    """Take a marker, or layout beside it; where its role is read as text (and the model wrote it), it is text too."""
    if role in machine.roles and machine.base + machine.at >= 0:
        machine.answered = True
        machine.text(role, end)
    else:
        machine.take(otherwise, end)


@dataclass(frozen=True, slots=True)
class Lit:
    """`"text"`"""

    text: str

    def step(self, machine: Machine) -> bool:
        return take_literal(machine, self.text)


def take_literal(machine: Machine, text: str) -> bool:
    """Take the marker `text` if it is here. Suspends if more text may complete it, and fails otherwise."""
    buffer, at = machine.buffer, machine.at
    if buffer.startswith(text, at):
        machine.take(Role.MARKER, at + len(text))
        machine.pc += 1
    elif not machine.final and text.startswith(buffer[at : at + len(text)]):
        return True
    else:
        machine.fail(repr(text))
    return False


@dataclass(frozen=True, slots=True)
class Maybe:
    """`"text"?`"""

    text: str

    def step(self, machine: Machine) -> bool:
        buffer, at = machine.buffer, machine.at
        if buffer.startswith(self.text, at):
            machine.take(Role.MARKER, at + len(self.text))
        elif not machine.final and self.text.startswith(buffer[at : at + len(self.text)]):
            return True
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Unless:
    """`&marker`: go elsewhere if one of the markers is here."""

    markers: Finder
    target: int

    def step(self, machine: Machine) -> bool:
        rest = machine.at < len(machine.buffer)
        if not machine.final and (not rest or self.markers.may_grow(machine.buffer, machine.at)):
            return True
        machine.pc = self.target if self.markers.at(machine.buffer, machine.at) else machine.pc + 1
        return False


@dataclass(frozen=True, slots=True)
class MaybeFence:
    """The opening of a Markdown fence, if there is one: three backquotes and a language."""

    def step(self, machine: Machine) -> bool:
        buffer, at = machine.buffer, machine.at
        found = FENCE.match(buffer, at)
        end = found.end() if found else at
        begins = len(buffer) - at < len(BACKQUOTES) and BACKQUOTES.startswith(buffer[at:])
        if not machine.final and (end == len(buffer) or begins):
            return True
        if found:
            machine.fenced = True
            machine.take(Role.MARKER, end)
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class OpenFence:
    """A Markdown fence that opens the answer, with its line break."""

    def step(self, machine: Machine) -> bool:
        found = _FENCE_LINE.match(machine.buffer, machine.at)
        if not found or machine.answered:
            machine.fail("a Markdown fence")
            return False
        if found.end() == len(machine.buffer) and not machine.final and not found.group().endswith("\n"):
            return True
        machine.take(Role.MARKER, found.end())
        machine.commit()
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class AtEnd:
    """The end of the output, or of the turn; everything tried for it is now final."""

    ends: Finder

    def step(self, machine: Machine) -> bool:
        rest = machine.at < len(machine.buffer)
        if not machine.final and (not rest or self.ends.may_grow(machine.buffer, machine.at)):
            return True
        if rest and not self.ends.at(machine.buffer, machine.at):
            machine.fail("the end of the output")
            return False
        machine.commit()
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Space:
    """White space, if there is any."""

    def step(self, machine: Machine) -> bool:
        if take_space(machine):
            return True
        machine.pc += 1
        return False


def take_space(machine: Machine) -> bool:
    """Take white space, if there is any; True where there may be more."""
    buffer, at = machine.buffer, machine.at
    if at < len(buffer) and not buffer[at].isspace():
        return False
    end = end_of(SPACE, buffer, at)
    machine.take(Role.LAYOUT, end)
    return end == len(buffer) and not machine.final


@dataclass(frozen=True, slots=True)
class Soft:
    """As much of the layout `text` as is here. Next to verbatim text, not one character more is taken."""

    text: str
    role: Role = Role.LAYOUT

    def step(self, machine: Machine) -> bool:
        buffer, start = machine.buffer, machine.at
        size = len(self.text) if buffer.startswith(self.text, start) else 0
        while size < len(self.text) and buffer.startswith(self.text[size], start + size):
            size += 1
        if start + size == len(buffer) and size < len(self.text) and not machine.final:
            return True
        _take_marker(machine, self.role, Role.LAYOUT, start + size)
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Jump:
    """Go on elsewhere."""

    target: int

    def step(self, machine: Machine) -> bool:
        machine.pc = self.target
        return False


@dataclass(frozen=True, slots=True)
class Halt:
    """The end of the output."""

    wanted: str = ""
    """What is missing when the output ends here."""

    def step(self, machine: Machine) -> bool:
        if self.wanted:
            machine.malformed("", self.wanted)
        machine.halted = True
        return True


@dataclass(frozen=True, slots=True)
class SealAtEnd:
    """Calls inside reasoning count if only the end of reasoning follows them; otherwise they are reasoning."""

    markers: Finder
    hub: int

    def step(self, machine: Machine) -> bool:
        buffer = machine.buffer
        machine.take(Role.LAYOUT, end_of(SPACE, buffer, machine.at))
        if not machine.final and (machine.at == len(buffer) or self.markers.may_grow(buffer, machine.at)):
            return True
        if marker := self.markers.at(buffer, machine.at):
            machine.take(Role.MARKER, machine.at + len(marker))
            return False
        if machine.at < len(buffer):
            machine.fail("the end of the output")
            return False
        machine.release()
        machine.pc = self.hub
        return False
