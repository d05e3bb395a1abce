"""Arguments written as a JSON string: the string's inside, as it streams, in; JSON text out."""

from __future__ import annotations

import json
import re

from unrender.parsing.values import LiteralScanner, LiteralStyle, Status

_INSIDE = re.compile(r'(?:[^"\\]|\\(?:u[0-9a-fA-F]{4}|[^u]))*')


class QuotedScanner:
    """Reads a JSON string that holds a JSON value, and gives the value."""

    __slots__ = ("done", "inner", "opened", "rest")

    def __init__(self, style: LiteralStyle) -> None:
        self.inner = LiteralScanner(style)
        self.opened = False
        self.rest = ""
        """Decoded text that the inner scanner has not taken yet."""
        self.done = False

    def copy(self) -> QuotedScanner:
        """Return an independent scanner in the same state."""
        other = QuotedScanner(self.inner.style)
        other.inner = self.inner.copy()
        other.opened, other.rest, other.done = self.opened, self.rest, self.done
        return other

    def scan(self, text: str, start: int, *, final: bool) -> tuple[int, str, Status]:
        """Take what can be decided of `text` from `start` on; `final` when no more text will come."""
        at = start if self.opened else start + 1
        self.opened = True
        end = _INSIDE.match(text, at).end()  # type: ignore[union-attr]
        ended = text.startswith('"', end)
        piece = _decode(text[at:end])
        if piece is None:
            return at, "", Status.FAILED
        result = self._inner(piece, final=ended or final)
        if result is None:
            return end, "", Status.FAILED
        if ended:
            return end + 1, result, Status.DONE if self.done else Status.FAILED
        return end, result, Status.MORE

    def _inner(self, piece: str, *, final: bool) -> str | None:
        self.rest += piece
        if self.done:
            return None if self.rest.strip() else ""
        at, result, status = self.inner.scan(self.rest, 0, final=final)
        self.rest = self.rest[at:]
        if status is Status.FAILED:
            return None
        self.done = status is Status.DONE
        return result


def _decode(piece: str) -> str | None:
    try:
        return str(json.loads(f'"{piece}"', strict=False))
    except json.JSONDecodeError:
        return None
