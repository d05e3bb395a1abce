"""The engine's instructions: frozen data, each with the step that it takes.

Rules: a step that cannot decide returns True and leaves the engine as it was; one that does not match calls `engine.fail`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from unrender.machine.handmade.engine import MAX_DEPTH, MAX_NAME, Closed, Engine, Opened
from unrender.nodes import Role
from unrender.values.finder import Finder, end_of
from unrender.values.scanner import DONE, FAILED, LiteralScanner, LiteralStyle

_SPACE = re.compile(r"\s*")
UNLIMITED = -1

Guard = re.Pattern[str] | None
"""What the next character must match for an option to be tried; None for anything, the end of the output included."""


@dataclass(frozen=True, slots=True)
class Exactly:
    """`"text"`"""

    text: str

    def step(self, engine: Engine) -> bool:
        here = engine.at
        if engine.buffer.startswith(self.text, here):
            engine.take(Role.MARKER, len(self.text))
            engine.pc += 1
            return False
        left = len(engine.buffer) - here
        if not engine.final and left < len(self.text) and self.text.startswith(engine.buffer[here:]):
            return True
        engine.fail(repr(self.text))
        return False


@dataclass(frozen=True, slots=True)
class Blank:
    """White space, if there is any."""

    def step(self, engine: Engine) -> bool:
        end = end_of(_SPACE, engine.buffer, engine.at)
        engine.take(Role.LAYOUT, end - engine.at)
        if engine.at == len(engine.buffer) and not engine.final:
            return True
        engine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class AtMost:
    """As much of the layout `text` as is here."""

    text: str

    def step(self, engine: Engine) -> bool:
        buffer, here, size = engine.buffer, engine.at, 0
        while size < len(self.text) and buffer.startswith(self.text[size], here + size):
            size += 1
        if here + size == len(buffer) and size < len(self.text) and not engine.final:
            return True
        engine.take(Role.LAYOUT, size)
        engine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Count:
    """Begin to count characters, or rounds."""

    def step(self, engine: Engine) -> bool:
        engine.push(count=0)
        engine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Span:
    """`[a-z]{minimum,maximum}`, after `Count`: as many characters as match."""

    pattern: re.Pattern[str]
    """Zero or more of the characters."""
    minimum: int
    maximum: int
    wanted: str

    def step(self, engine: Engine) -> bool:
        assert engine.stack is not None
        before = engine.stack.count
        limit = len(engine.buffer) if self.maximum == UNLIMITED else engine.at + self.maximum - before
        size = end_of(self.pattern, engine.buffer, engine.at, limit) - engine.at
        engine.take(Role.MARKER, size)
        count = before + size
        if engine.at == len(engine.buffer) and count != self.maximum and not engine.final:
            engine.pop()
            engine.push(count=count)
            return True
        engine.pop()
        engine.pc += 1
        if count < self.minimum:
            engine.fail(self.wanted)
        return False


@dataclass(frozen=True, slots=True)
class UpTo:
    """`(!stop .)*`: all text before the first of the finder's literals."""

    finder: Finder

    def step(self, engine: Engine) -> bool:
        buffer, here = engine.buffer, engine.at
        at, _ = self.finder.find(buffer, here)
        if at < 0:
            at = len(buffer) if engine.final else self.finder.undecided_from(buffer, here)
            engine.take(Role.MARKER, at - here)
            if not engine.final:
                return True
        else:
            engine.take(Role.MARKER, at - here)
        engine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Value:
    """One JSON or Python value."""

    style: LiteralStyle
    wanted: str
    first: str = ""
    """When given, the characters with which the value must begin."""

    def step(self, engine: Engine) -> bool:
        if engine.scanner is None:
            if self.first and not self._begins(engine):
                return engine.at == len(engine.buffer) and not engine.final
            engine.scanner = LiteralScanner(self.style)
        end, text, status = engine.scanner.scan(engine.buffer, engine.at, final=engine.final)
        engine.take(Role.MARKER, end - engine.at, text)
        if status == DONE:
            engine.scanner = None
            engine.pc += 1
        elif status == FAILED or engine.final:
            engine.scanner = None
            engine.fail(self.wanted)
        else:
            return True
        return False

    def _begins(self, engine: Engine) -> bool:
        if engine.at < len(engine.buffer) and engine.buffer[engine.at] in self.first:
            return True
        if engine.at < len(engine.buffer) or engine.final:
            engine.fail(self.wanted)
        return False


@dataclass(frozen=True, slots=True)
class Try:
    """`a / b / c`: try the options in turn, without those that the next character rules out."""

    options: tuple[tuple[Guard, int], ...]
    wanted: str
    guarded: bool
    """Some option depends on the next character."""

    def step(self, engine: Engine) -> bool:
        here = engine.at
        if self.guarded and here == len(engine.buffer) and not engine.final:
            return True
        viable = tuple(target for guard, target in self.options if guard is None or guard.match(engine.buffer, here))
        if not viable or _too_deep(engine):
            engine.fail(self.wanted)
            return False
        serial = engine.serial + 1 if len(viable) > 1 else 0
        engine.push(way=serial)
        if serial:
            engine.open(viable[1:])
        engine.pc = viable[0]
        return False


def _too_deep(engine: Engine) -> bool:
    return engine.stack is not None and engine.stack.depth >= MAX_DEPTH


@dataclass(frozen=True, slots=True)
class Chosen:
    """The end of an option: the others are no longer tried."""

    target: int

    def step(self, engine: Engine) -> bool:
        engine.close(engine.pop().way)
        engine.pc = self.target
        return False


@dataclass(frozen=True, slots=True)
class Round:
    """`a{minimum,maximum}`, after `Count`: read another round, or go on."""

    minimum: int
    maximum: int
    guards: tuple[Guard, Guard]
    """For the first round, and for those that begin with the separator."""
    targets: tuple[int, int]
    otherwise: int

    def step(self, engine: Engine) -> bool:
        assert engine.stack is not None
        count = engine.stack.count
        if count == self.maximum:
            engine.pc = self.otherwise
            return False
        again = min(count, 1)
        if count < self.minimum:
            self._begin(engine, count, 0)
            engine.pc = self.targets[again]
            return False
        guard = self.guards[again]
        if guard is not None:
            if engine.at == len(engine.buffer) and not engine.final:
                return True
            if not guard.match(engine.buffer, engine.at):
                engine.pc = self.otherwise
                return False
        serial = engine.open((self.otherwise,))
        self._begin(engine, count, serial)
        engine.pc = self.targets[again]
        return False

    def _begin(self, engine: Engine, count: int, serial: int) -> None:
        engine.pop()
        engine.push(count=count, start=engine.position, way=serial)


@dataclass(frozen=True, slots=True)
class Again:
    """The end of a round: another one follows, unless this one took no text."""

    head: int
    otherwise: int

    def step(self, engine: Engine) -> bool:
        entry = engine.pop()
        engine.close(entry.way)
        engine.push(count=entry.count + 1)
        engine.pc = self.head if engine.position > entry.start else self.otherwise
        return False


@dataclass(frozen=True, slots=True)
class Counted:
    """The end of a loop."""

    def step(self, engine: Engine) -> bool:
        engine.pop()
        engine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Enter:
    """Read the rule at `target`, then go on here."""

    target: int

    def step(self, engine: Engine) -> bool:
        if _too_deep(engine):
            engine.fail(f"at most {MAX_DEPTH} rules inside each other")
            return False
        engine.push(address=engine.pc + 1)
        engine.pc = self.target
        return False


@dataclass(frozen=True, slots=True)
class Return:
    """The end of a rule."""

    def step(self, engine: Engine) -> bool:
        engine.pc = engine.pop().address
        return False


@dataclass(frozen=True, slots=True)
class Tagged:
    """The beginning of a tag: the text inside it has its role."""

    role: Role

    def step(self, engine: Engine) -> bool:
        engine.push(role=engine.role)
        engine.role = self.role
        if self.role is Role.NAME:
            engine.name = ""
        if self.role is Role.CALL:
            engine.call = engine.position
        engine.events.append(Opened(self.role, engine.position))
        engine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Untagged:
    """The end of a tag. A tag of a call's name fails unless a tool of that name is offered."""

    def step(self, engine: Engine) -> bool:
        assert engine.role is not None
        if engine.role is Role.NAME and not _is_name(engine):
            engine.fail("the name of a tool")
            return False
        text = engine.end_call() if engine.role is Role.CALL else ""
        engine.events.append(Closed(engine.role, engine.position, text))
        engine.role = engine.pop().role
        engine.pc += 1
        return False


def _is_name(engine: Engine) -> bool:
    if engine.names is not None:
        return engine.name in engine.names
    return 0 < len(engine.name) <= MAX_NAME


@dataclass(frozen=True, slots=True)
class Ended:
    """`!.`: the end of the output."""

    def step(self, engine: Engine) -> bool:
        if engine.at == len(engine.buffer) and not engine.final:
            return True
        engine.pc += 1
        if engine.at < len(engine.buffer):
            engine.fail("the end of the output")
        return False


@dataclass(frozen=True, slots=True)
class Never:
    """Nothing matches."""

    wanted: str

    def step(self, engine: Engine) -> bool:
        engine.fail(self.wanted)
        return False


@dataclass(frozen=True, slots=True)
class BreakOff:
    """The reading broke off here: the rest is plain content."""

    def step(self, engine: Engine) -> bool:
        if engine.at == len(engine.buffer) and not engine.final:
            return True
        engine.report()
        engine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Halt:
    """The output has been read."""

    def step(self, engine: Engine) -> bool:
        engine.halted = True
        return True


@dataclass(frozen=True, slots=True)
class Jump:
    """Go on elsewhere."""

    target: int

    def step(self, engine: Engine) -> bool:
        engine.pc = self.target
        return False
