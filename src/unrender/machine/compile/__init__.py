"""Compiles an answer tree (`answer`) into a program: a tuple of instructions, each with its address.

Read `program` first: it compiles free text, with tables of the markers that interrupt the text. Calls and handwritten grammars become one
instruction each, which reads them with a coroutine. `combinators` prepares handwritten grammars for it.

Rules: a program depends on the format and the request. Programs don't depend on the tools, unless only a tool's name identifies a call.
Therefore, programs are compiled once and shared. Whitespace inside and between markers is flexible, but it must match exactly next to raw
values.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from unrender.machine.interpreter import Instruction, Program


@dataclass(slots=True, eq=False)
class Code:
    """Collects instructions. `emit` and `reserve` return addresses."""

    _instructions: list[Instruction | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._instructions)

    def emit(self, *instructions: Instruction) -> int:
        """Append instructions, and return the address of the first one."""
        at = len(self._instructions)
        self._instructions.extend(instructions)
        return at

    def reserve(self) -> int:
        """Reserve one address, which is filled by `put`."""
        self._instructions.append(None)
        return len(self._instructions) - 1

    def put(self, at: int, instruction: Instruction) -> None:
        """Fill a reserved address."""
        self._instructions[at] = instruction

    def finished(self) -> Program:
        """Return the program. All reserved addresses must have been filled."""
        done = tuple(instruction for instruction in self._instructions if instruction is not None)
        assert len(done) == len(self._instructions)
        return done
