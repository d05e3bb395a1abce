"""Stores where a reader started, so that a copy of its machine can read the text again.

A coroutine can't be copied or pickled. A copy returns to the state at the start of the reader, and reads the text since then again. A machine
keeps the text of the current call. The text of a whole answer, which a handwritten grammar reads, is in the parser's transcript.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Self

from unrender.machine.frames import Frame, Snapshot
from unrender.values.resumable import Resumable

_STATE = ("pc", "unended", "left", "recover", "broke", "wanted", "reread", "searched", "barrier", "cut_from")
"""Fields of a machine that a reader may change, besides its backtracking points and those of a `Snapshot`."""
_state_of = attrgetter(*_STATE)


@dataclass(slots=True, eq=False)
class Restart(Resumable):
    """A reader of calls or of a handwritten grammar, and the state of its machine when the reader started."""

    reader: Any
    """None in a copy, like `run`."""
    run: Any
    """The coroutine of the reader."""
    start: Snapshot
    needed: int
    """Position of the first character that was needed at the start."""
    failed_at: int
    """Furthest position that the attempts before the start reached."""
    wanted: str
    """The text that the attempts before the start expected."""
    state: tuple[Any, ...]
    """Values of the fields `_STATE`."""
    frames: list[Frame]
    made_ids: int

    @classmethod
    def of(cls, machine: Any, reader: Any, *, keeps: bool = True) -> Self:
        """Return the state of `machine` at the start of `reader`. If `keeps` is False, the machine doesn't keep the reader's text."""
        return cls(
            reader=reader,
            run=reader.run(),
            start=Snapshot.of(machine),
            needed=machine.needed_from() if keeps else sys.maxsize,
            failed_at=machine.base + machine.failed_at,
            wanted=machine.wanted,
            state=_state_of(machine),
            frames=[frame.kept() for frame in machine.frames],
            made_ids=len(machine.ids.made),
        )

    def resume(self, machine: Any) -> None:
        """Read the text since the start of the reader again. `machine` is a copy, in which the reader isn't running."""
        self.start.restore(machine)
        machine.released = min(machine.released, self.start.events)
        for name, value in zip(_STATE, self.state, strict=True):
            setattr(machine, name, value)
        machine.failed_at = self.failed_at - machine.base
        machine.frames, machine.restart = self.frames, None
        # Calls whose start was already emitted keep their ids.
        ids, steps = machine.ids, machine.steps
        made, make = iter(ids.made[self.made_ids :]), ids.make
        del ids.made[self.made_ids :]
        ids.make = lambda position, name: next(made, None) or make(position, name)
        machine.run()  # The original machine has already returned these events.
        ids.make, machine.steps = make, steps

    def copy(self) -> Self:
        """Return a copy without the coroutine."""
        other = super(Restart, self).copy()
        other.reader = other.run = None
        other.frames = [frame.copy() for frame in self.frames]
        return other

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._names} | {"reader": None, "run": None}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
