"""Collects the instructions of a program under construction, and reserves addresses for later ones."""

from __future__ import annotations

from unrender.machine.interpreter import Instruction, Program


class Code:
    """Collects instructions; `emit` and `reserve` return addresses."""

    __slots__ = ("_instructions",)

    def __init__(self) -> None:
        self._instructions: list[Instruction | None] = []

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

    def program(self) -> Program:
        """Return the finished program; every reserved address must have been filled."""
        done = tuple(instruction for instruction in self._instructions if instruction is not None)
        assert len(done) == len(self._instructions)
        return done
