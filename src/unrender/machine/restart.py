"""Stores where the reader of a call started, so that a copy of its machine can read the call again.

A coroutine can't be copied or pickled. A copy returns to the state at the start of the reader, and reads the text since then again.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from unrender.machine.frames import CallState, Frame
from unrender.nodes import Role
from unrender.values.resumable import Resumable

_STATE = (
    *(
        "pc",
        "answered",
        "thinks",
        "mentioned",
        "split",
        "unended",
        "fenced",
        "serial",
        "left",
        "recover",
        "broke",
        "wanted",
        "reread",
        "searched",
    ),
    *("barrier", "cut_from", "calls", "closed", "loose", "separated", "refused", "stack", "tag", "counted"),
)
"""Fields of a machine that a reader of calls may change, besides its texts, spans, events and backtracking points."""


@dataclass(slots=True, eq=False)
class Restart(Resumable):
    """A reader of calls, and the state of its machine when the reader started."""

    reader: Any
    """None in a copy, like `run`."""
    run: Generator[None, None, None] | None
    position: int
    needed: int
    """Position of the first character that was needed at the start."""
    failed_at: int
    """Furthest position that the attempts before the start reached."""
    state: dict[str, Any]
    """Other fields of the machine."""
    frames: list[Frame]
    events: int
    """Number of events before the start."""
    spans: int
    span_end: int
    call: CallState | None
    carried: list[str]
    carried_spans: list[int]
    made_ids: int

    @classmethod
    def of(cls, machine: Any, reader: Any, run: Generator[None, None, None]) -> Self:
        """Return the state of `machine` at the start of a reader, whose coroutine is `run`."""
        return cls(
            reader=reader,
            run=run,
            position=machine.position,
            needed=machine.needed_from(),
            failed_at=machine.base + machine.failed_at,
            state={name: getattr(machine, name) for name in _STATE},
            frames=[frame.copy() for frame in machine.frames],
            events=machine.released + len(machine.events),
            spans=len(machine.span_ends),
            span_end=machine.span_end,
            call=machine.call.kept() if machine.call else None,
            carried=machine.carried.copy(),
            carried_spans=machine.carried_spans.copy(),
            made_ids=len(machine.ids.made),
        )

    def resume(self, machine: Any) -> None:
        """Read the text since the start of the reader again, if `machine` is a copy."""
        if self.run is not None:
            return
        del machine.span_roles[self.spans :], machine.span_ends[self.spans :]
        if machine.span_ends:
            machine.span_ends[-1] = self.span_end
        for index in self.carried_spans:
            machine.span_roles[index] = Role.LAYOUT
        machine.recall(self.position)
        for name, value in self.state.items():
            setattr(machine, name, value)
        machine.at, machine.failed_at = self.position - machine.base, self.failed_at - machine.base
        del machine.events[max(0, self.events - machine.released) :]
        machine.released = min(machine.released, self.events)
        machine.frames, machine.carried, machine.carried_spans = self.frames, self.carried, self.carried_spans
        machine.call, machine.scanner, machine.restart = self.call and self.call.restored(), None, None
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
