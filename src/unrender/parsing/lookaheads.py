"""The engine's instructions that try a part as a whole: lookaheads, atoms and cuts, each with the step that it makes.

Rules: as for `steps`.
"""

from __future__ import annotations

from dataclasses import dataclass

from unrender.parsing.engine import Engine


@dataclass(frozen=True, slots=True)
class Guarded:
    """Begin a lookahead or an atom: a cut inside it ends there; when it fails, go on at `otherwise`."""

    otherwise: int

    def step(self, engine: Engine) -> bool:
        serial = engine.open((self.otherwise,), barrier=True)
        engine.push(way=serial)
        engine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Whole:
    """The end of an atom: what it read is as final as what is around it."""

    def step(self, engine: Engine) -> bool:
        engine.close(engine.pop().way)
        engine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Seen:
    """The end of `&a`: go back to where it began."""

    def step(self, engine: Engine) -> bool:
        if engine.rewind(engine.pop().way):
            engine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Refused:
    """The end of `!a`: what must not follow does."""

    wanted: str

    def step(self, engine: Engine) -> bool:
        if engine.rewind(engine.pop().way):
            engine.fail(self.wanted)
        return False


@dataclass(frozen=True, slots=True)
class Final:
    """A cut: what was read is final."""

    def step(self, engine: Engine) -> bool:
        engine.cut()
        engine.pc += 1
        return False
