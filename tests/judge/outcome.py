"""The judge's verdict, and its view of one reading."""

from __future__ import annotations

from dataclasses import dataclass

from unrender import Event, Message
from unrender.format import CallSyntax, Format
from unrender.types import Span


class Lost(AssertionError):
    """A law that does not hold for one text; `kind` is the same for all texts that break it alike."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind, self.detail = kind, detail


@dataclass(frozen=True)
class Outcome:
    """All that a caller sees of one reading."""

    events: tuple[Event, ...]
    """Neighbours of one kind are one event."""
    message: Message
    spans: tuple[Span, ...]

    def under(self, text: str, role: str) -> list[str]:
        """Return the text under each span of a role."""
        return [text[span.start : span.end] for span in self.spans if span.role.value == role]


def expect(kind: str, holds: bool, *detail: object) -> None:
    """Raise `Lost` unless it holds."""
    if not holds:
        raise Lost(kind, ", ".join(map(repr, detail)))


def syntaxes(format: Format) -> tuple[CallSyntax, ...]:
    """Return all syntaxes in which a Format's calls may be written."""
    return (format.tools, *format.tolerated)
