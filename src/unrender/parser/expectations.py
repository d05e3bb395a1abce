"""Says what may come next in a reading that waits for more text, in the format's words.

Strategy: a copy is fed a character that no marker holds. What it says it wanted instead is what may come, in the same words as
in `MalformedOutput`. Where any character is text, the markers are named that would end it.
"""

from __future__ import annotations

from collections.abc import Iterable

from unrender.machine.events import Event, Malformed
from unrender.machine.handmade.steps import UpTo
from unrender.machine.instructions import FreeText
from unrender.machine.interpreter import Machine
from unrender.machine.leftovers import BrokenText
from unrender.nodes import Role

_NO_MARKER = "\0"
_TEXT = {Role.CONTENT: "text", Role.REASONING: "reasoning"}


def expected_by(machine: Machine) -> tuple[str, ...]:
    """Return what may come now: texts in quotes, and names of free parts.

    It is empty after the end of the output.
    """
    if machine.final:
        return ()
    now = machine.program[machine.pc]
    asked = machine.copy()
    asked.strict, asked.wanted, asked.failed_at = False, "", asked.at
    wanted = _wanted(asked, asked.feed(_NO_MARKER))
    if asked.rest:
        stops = now.finder.literals if isinstance(now, UpTo) else ()
        return (asked.wanted,) if asked.wanted else ("text", *_quoted(stops))
    if not wanted and asked.scanner is not None:
        return ("more of the value", *_quoted(getattr(getattr(now, "suffix", None), "literals", ())))
    after = asked.program[asked.pc]
    if not wanted and isinstance(after, FreeText):
        return _text(after)
    # A call that is not certain yet may still turn out to be text.
    return (wanted or _wanted(asked, asked.finish()), *(["text"] if machine.frames else []))


def _wanted(asked: Machine, events: list[Event | BrokenText]) -> str:
    """Return what was wanted in the place of the text that was fed; empty where that is text, or nothing is certain."""
    return next((event.expected for event in events if isinstance(event, Malformed)), asked.wanted)


def _text(hub: FreeText) -> tuple[str, ...]:
    return (_TEXT[hub.role], *_quoted(hub.table))


def _quoted(markers: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(repr(core) for marker in markers if (core := marker.strip())))
