"""One instruction on one buffer → what it did: for tests of instructions without a format around them."""

from __future__ import annotations

from typing import Any

from unrender.machine.ids import CallIds, numbered_id
from unrender.machine.interpreter import Instruction, Machine
from unrender.machine.policy import CallRelease, Policy
from unrender.messages.wire import Request, Tool

HERE, FAILED = 10, 99
"""Where the instruction is, and where a failure leads."""
TOOLS = (Tool(name="now"), Tool(name="nowhere"))


def machine_at(text: str, *, at: int = 0, final: bool = False, begun: int = 0, **fields: Any) -> Machine:
    """Return a machine that has read `text` up to `at`, with a way back there; `begun` characters are the prompt's."""
    request = fields.pop("request", Request(tools=TOOLS))
    roles = fields.pop("roles", {})
    machine = Machine((), request, strict=False, ids=CallIds(numbered_id), roles=roles)
    machine.buffer, machine.at, machine.base, machine.final = text, at, -begun, final
    machine.pc = HERE
    machine.policy = Policy(calls=CallRelease.WRITTEN)  # What a step says of a call is seen at once.
    machine.attempt((HERE,), FAILED, holds=False, sealed=-1, reported=False)
    for name, value in fields.items():
        setattr(machine, name, value)
    return machine


def step(instruction: Instruction, machine: Machine) -> str:
    """Make one step; returns "waits", "fails: …" with what was wanted, or "to N" with the place where it goes on."""
    waits = instruction.step(machine)
    if waits:
        return "waits" if machine.pc == HERE else f"waits at {machine.pc}"
    if machine.pc == FAILED:
        return f"fails: {machine.wanted}"
    return "on" if machine.pc == HERE + 1 else f"to {machine.pc}"
