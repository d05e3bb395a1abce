"""The machine's instructions for text and markers: frozen data, each with the step it makes.

Rules: a step that cannot decide returns True and leaves the machine as it was; one that fails calls `machine.fail`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from unrender.grammar.nodes import Role
from unrender.parsing.cleaning import BrokenText
from unrender.parsing.finder import Finder
from unrender.parsing.machine import Machine
from unrender.parsing.policy import CallsInReasoning

MAX_BLANK = 64
"""White space held back at a boundary, in characters; more of it is content."""

MAX_NAME = 1200
"""Longest tool or argument name, in characters."""

SPACE = re.compile(r"\s*")
FENCE = re.compile(r"```\w*")
_FENCE_LINE = re.compile(r"\s*```\w*[ \t]*\n?")
_FENCE_END = re.compile(r"\s*```\s*")


@dataclass(frozen=True, slots=True)
class Text:
    """`(!marker .)*`: free text of `role`; at a marker, go where `table` says; at the end of the output, to `end`."""

    role: Role
    finder: Finder
    table: Mapping[str, int]
    end: int
    ending: str = ""
    """Layout that ends a turn: no part of the text when nothing follows."""

    def step(self, machine: Machine) -> bool:
        buffer = machine.buffer
        if not machine.final and self.finder.absent(buffer, machine.at):
            self._emit(machine, self._before_ending(machine, len(buffer)) if self.ending else len(buffer))
            return True
        limit, literal = self._marker(machine)
        if literal:
            self._emit(machine, limit)
            machine.take(Role.LAYOUT, limit)
            machine.pc = self.table[literal]
            return False
        self._emit(machine, self._before_ending(machine, limit) if self.ending else limit)
        if not machine.final:
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
    """`a / b / text`: try the targets in order; when none matches, the marker is text."""

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
class TextRun:
    """What could not be read as a call is text, up to where the reading failed, or to where the same marker begins again."""

    role: Role
    hub: int
    finder: Finder

    def step(self, machine: Machine) -> bool:
        failed = min(max(machine.at + 1, machine.failed_at), len(machine.buffer))
        end = self._again(machine, failed)
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
class BrokenRun:
    """What began as a call and broke off, up to a closing brace (and what closes a call) or the next call."""

    hub: int
    ends: Finder
    closers: Finder

    def step(self, machine: Machine) -> bool:
        buffer = machine.buffer
        searched = max(machine.at + 1, machine.failed_at)
        pc = machine.pc
        end, literal = (self.ends.find if machine.final else self.ends.decided)(buffer, searched)
        if not literal and not machine.final:
            machine.failed_at = end
            return True
        machine.pc = self.hub
        if not literal:
            machine.answered = True
            machine.text(Role.CONTENT, len(buffer))
            return False
        end = end + 1 if literal == "}" else end
        behind = SPACE.match(buffer, end).end()  # type: ignore[union-attr]
        if not machine.final and (behind == len(buffer) or self.closers.may_grow(buffer, behind)):
            machine.pc = pc
            return True
        while closer := self.closers.at(buffer, behind):
            end = behind + len(closer)
            behind = SPACE.match(buffer, end).end()  # type: ignore[union-attr]
            if not machine.final and (behind == len(buffer) or self.closers.may_grow(buffer, behind)):
                machine.pc = pc
                return True
        machine.events.append(BrokenText(buffer[machine.at : end]))
        machine.take(Role.MALFORMED, end)
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
    """`&"text"`: one character that must follow."""

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
    """A call that begins with its tool's name may stand here: no content before it, and the name of a tool."""

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
    """Return whether a tool's name (where every name is one, a word) begins at `at`; None for not known yet."""
    tools = machine.request.tools
    text = machine.buffer[at : at + MAX_NAME]
    if tools is not None and any(text.startswith(tool.name) for tool in tools):
        return True
    if not machine.final and (not text or any(tool.name.startswith(text) for tool in tools or ())):
        return None
    return tools is None and text[:1].isidentifier()


@dataclass(frozen=True, slots=True)
class Skip:
    """Take a marker that has been found; markers of reasoning stay text where reasoning is left in content."""

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
    """Take the marker `text` if it stands here; suspends while it may, fails when it does not."""
    buffer, at = machine.buffer, machine.at
    if buffer.startswith(text, at):
        machine.take(Role.MARKER, at + len(text))
        machine.pc += 1
    elif not machine.final and text.startswith(buffer[at:]):
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
        elif not machine.final and self.text.startswith(buffer[at:]):
            return True
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class MaybeFence:
    """The opening of a Markdown fence, if there is one: three backquotes and a language."""

    def step(self, machine: Machine) -> bool:
        found = FENCE.match(machine.buffer, machine.at)
        end = found.end() if found else machine.at
        if not machine.final and (end == len(machine.buffer) or "```".startswith(machine.buffer[machine.at :])):
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
        if found and not machine.final and "\n" not in found.group():
            return True
        if not found or machine.answered:
            machine.fail("a Markdown fence")
            return False
        machine.take(Role.MARKER, found.end())
        machine.commit()
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class CloseFence:
    """A Markdown fence that ends the answer."""

    def step(self, machine: Machine) -> bool:
        found = _FENCE_END.match(machine.buffer, machine.at)
        end = found.end() if found else machine.at
        if found and end == len(machine.buffer) and not machine.final:
            return True
        if not found or end < len(machine.buffer):
            machine.fail("the end of the output")
            return False
        machine.take(Role.MARKER, end)
        machine.commit()
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Space:
    """White space, if there is any."""

    def step(self, machine: Machine) -> bool:
        end = SPACE.match(machine.buffer, machine.at).end()  # type: ignore[union-attr]
        machine.take(Role.LAYOUT, end)
        if end == len(machine.buffer) and not machine.final:
            return True
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Soft:
    """As much of the layout `text` as is there: beside verbatim text not one character more."""

    text: str
    role: Role = Role.LAYOUT

    def step(self, machine: Machine) -> bool:
        buffer, start = machine.buffer, machine.at
        size = 0
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
    """Calls inside reasoning count when nothing follows but the end of reasoning; else they are reasoning."""

    markers: tuple[str, ...]
    hub: int

    def step(self, machine: Machine) -> bool:
        at = machine.at
        while True:
            at = SPACE.match(machine.buffer, at).end()  # type: ignore[union-attr]
            marker = next((text for text in self.markers if machine.buffer.startswith(text, at)), "")
            if not marker:
                break
            at += len(marker)
        rest = machine.buffer[at:]
        if not machine.final and any(text.startswith(rest) for text in self.markers):
            return True
        if rest:
            machine.at = at
            machine.fail("the end of the output")
            return False
        machine.release()
        machine.pc = self.hub
        return False
