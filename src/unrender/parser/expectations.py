"""Describes the text that a parser allows next."""

from __future__ import annotations

from collections.abc import Iterable

from unrender.machine.events import BrokenText, Event, Malformed
from unrender.machine.instructions import FreeText
from unrender.machine.interpreter import Machine
from unrender.nodes import Role

_NO_MARKER = "\0"
_TEXT = {Role.CONTENT: "text", Role.REASONING: "reasoning"}


def expected_by(machine: Machine, *, by_hand: bool) -> tuple[str, ...]:
    """Return descriptions of the text that is allowed next: quoted literals, and names of free parts.

    The result is empty after the end of the output.
    """
    if machine.final:
        return ()
    asked = machine.copy()
    if asked.restart is not None and asked.restart.run is None:
        asked.restart.resume(asked)
    reader = asked.restart.reader if asked.restart else None
    stops = reader.stops if reader and by_hand else ()
    asked.strict, asked.wanted, asked.failed_at = False, "", asked.at
    # Feed a copy a character that no marker contains. If a marker is expected, the copy fails and reports the expected text.
    wanted = _wanted(asked, asked.feed(_NO_MARKER))
    if by_hand:
        return (asked.wanted,) if asked.wanted else ("text", *_quoted(stops))
    if not wanted and asked.scanner is not None:
        reader = asked.restart.reader if asked.restart else None
        suffix = reader.view.suffix if reader and reader.valued else None
        return ("more of the value", *_quoted(getattr(suffix, "literals", ())))
    after = asked.program[asked.pc]
    if not wanted and isinstance(after, FreeText):
        return (_TEXT[after.role], *_quoted(after.table))
    # An uncertain call may still become text.
    return (wanted or _wanted(asked, asked.finish()), *(["text"] if machine.frames else []))


def _wanted(asked: Machine, events: list[Event | BrokenText]) -> str:
    """Return the text that was expected instead of the text fed last, or "" if any text is allowed."""
    return next((event.expected for event in events if isinstance(event, Malformed)), asked.wanted)


def _quoted(markers: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(repr(core) for marker in markers if (core := marker.strip())))
