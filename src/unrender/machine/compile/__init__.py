"""Compiles the tree of an answer into the machine's program: a tuple of instructions, each with its address.

In comes the tree of an answer (`answer.nodes`), out goes a `Program`. Open `program` first: it makes the free texts and the
tables of markers that interrupt them. `calls` makes the straight-line code between them: how a run of calls is entered, read
and left, and each argument. `marker_code` makes the code of markers.

Rule: a program depends on the format and the request, but not on its tools, unless only a tool's name identifies a call. So it is compiled
once and shared. White space in and between markers is flexible, beside raw values it is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from unrender.machine.interpreter import Instruction, Program


@dataclass(slots=True, eq=False)
class Code:
    """Collects instructions; `emit` and `reserve` return addresses."""

    _instructions: list[Instruction | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._instructions)

    def emit(self, *instructions: Instruction) -> int:
        """Append instructions; return the address of the first."""
        at = len(self._instructions)
        self._instructions.extend(instructions)
        return at

    def reserve(self) -> int:
        """Reserve one address; `put` fills it."""
        self._instructions.append(None)
        return len(self._instructions) - 1

    def put(self, at: int, instruction: Instruction) -> None:
        """Fill a reserved address."""
        self._instructions[at] = instruction

    def finished(self) -> Program:
        """Return the finished program; every reserved address must have been filled."""
        done = tuple(instruction for instruction in self._instructions if instruction is not None)
        assert len(done) == len(self._instructions)
        return done
