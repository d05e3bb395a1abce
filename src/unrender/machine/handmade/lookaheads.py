"""The engine's instructions that try a part as a whole: lookaheads, atoms and cuts.

Rules: as for `steps`.
"""

from __future__ import annotations

from dataclasses import dataclass

from unrender.machine.handmade.engine import Engine


@dataclass(frozen=True, slots=True)
class Guarded:
    """The start of a lookahead or an atom. A cut inside ends there; on failure, reading goes on at `otherwise`."""

    otherwise: int

    def step(self, engine: Engine) -> bool:
        serial = engine.open((self.otherwise,), barrier=True)
        engine.push(way=serial)
        engine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Whole:
    """The end of an atom: its text is as final as the text around it."""

    def step(self, engine: Engine) -> bool:
        engine.close(engine.pop().way)
        engine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Seen:
    """The end of `&a`: go back to its beginning."""

    def step(self, engine: Engine) -> bool:
        if engine.rewind(engine.pop().way):
            engine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Refused:
    """The end of `!a`: `a` has matched, so the lookahead fails."""

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
