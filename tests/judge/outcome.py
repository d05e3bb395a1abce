"""The judge's verdict and its view of one reading."""

from __future__ import annotations

from dataclasses import dataclass

from unrender import Event, Message
from unrender.format import CallSyntax, Format
from unrender.types import Span


class Lost(AssertionError):
    """A law that doesn't hold for one text. `kind` is the same for all texts that break it in the same way."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind, self.detail = kind, detail


@dataclass(frozen=True)
class Outcome:
    """Everything that a caller sees of one reading."""

    events: tuple[Event, ...]
    """Events, with adjacent ones of the same kind merged."""
    message: Message
    spans: tuple[Span, ...]

    def under(self, text: str, role: str) -> list[str]:
        """Return the text under each span of a role."""
        return [text[span.start : span.end] for span in self.spans if span.role.value == role]


def expect(kind: str, holds: bool, *detail: object) -> None:
    """Raise `Lost` unless the condition holds."""
    if not holds:
        raise Lost(kind, ", ".join(map(repr, detail)))


def syntaxes(format: Format) -> tuple[CallSyntax, ...]:
    """Return all syntaxes that a Format's calls may use."""
    return (format.tools, *format.tolerated)
