"""One step of the engine on one buffer → what it did: for tests of its instructions without a grammar around them."""

from __future__ import annotations

from typing import Any

from unrender.parsing.engine import Engine, Program, Step

HERE, FAILED, TEXT = 10, 99, 50
"""Where the instruction is, where a failure leads, and where the rest is read as text."""


def engine_at(
    text: str, *, at: int = 0, final: bool = False, names: tuple[str, ...] | None = None, **fields: Any
) -> Engine:
    """Return an engine that has read `text` up to `at`, with a way back there."""
    engine = Engine(Program((), 0, TEXT, False), None if names is None else frozenset(names))
    engine.buffer, engine.at, engine.final, engine.pc = text, at, final, HERE
    engine.open((FAILED,))
    for name, value in fields.items():
        setattr(engine, name, value)
    return engine


def step(instruction: Step, engine: Engine) -> str:
    """Make one step; returns "waits", "fails: …" with what was wanted, "on", or "to N"."""
    if instruction.step(engine):
        return "waits" if engine.pc == HERE else f"waits at {engine.pc}"
    if engine.pc == FAILED:
        return f"fails: {engine.wanted}"
    return "on" if engine.pc == HERE + 1 else f"to {engine.pc}"
