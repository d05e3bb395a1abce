r"""Reads arguments written as a JSON string, as they stream, as JSON text.

Strategy: the inside (`{\"city\": …`) is decoded piece by piece, and a scanner of its own reads what comes out. Text that
this scanner cannot decide yet stays in the buffer. So positions say where in the output a value breaks, at every chunking.
"""

from __future__ import annotations

import json
import re

from unrender.values.finder import end_of
from unrender.values.scanner import LiteralScanner, LiteralStyle, Status

_PLAIN = re.compile(r'[^"\\]*')
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^u])", re.DOTALL)
_LONGEST_ESCAPE = len(r"\ud83c\udf0d")


class QuotedScanner:
    """Reads a JSON string that holds a JSON object, and gives the object.

    An empty string means no arguments: `{}`.
    """

    __slots__ = ("done", "inner", "opened")

    def __init__(self, style: LiteralStyle) -> None:
        self.inner: LiteralScanner = LiteralScanner(style)
        self.opened: bool = False
        self.done: bool = False
        """The value is complete; only white space may follow."""

    def copy(self) -> QuotedScanner:
        """Return an independent scanner in the same state."""
        other = QuotedScanner(self.inner.style)
        other.inner = self.inner.copy()
        other.opened, other.done = self.opened, self.done
        return other

    @property
    def flow(self) -> None:
        """None: every character may be half of an escape."""

    @property
    def duplicate(self) -> str:
        """A key that comes twice in one object inside; "" where none does."""
        return self.inner.duplicate

    def scan(self, text: str, start: int, *, final: bool) -> tuple[int, str, Status]:
        """Read as much of `text` from `start` on as can be decided. With `final`, no more text will come."""
        at = start if self.opened else start + 1
        self.opened = True
        inside = _Inside(text, at, final=final)
        ended = text.startswith('"', inside.end)
        used, result = 0, ""
        head = inside.decoded.lstrip()
        if self.inner.untouched and head and not head.startswith("{"):
            return inside.place(len(inside.decoded) - len(head)), "", Status.FAILED
        if not self.done:
            used, result, status = self.inner.scan(inside.decoded, 0, final=final or ended)
            if ended and self.inner.untouched and used == len(inside.decoded):
                return inside.end + 1, "{}", Status.DONE
            if status is not Status.DONE:
                return inside.place(used), result, Status.FAILED if ended else status
            self.done = True
        rest = inside.decoded[used:].lstrip()
        if rest:
            return inside.place(len(inside.decoded) - len(rest)), result, Status.FAILED
        return (inside.end + 1, result, Status.DONE) if ended else (inside.end, result, Status.MORE)


class _Inside:
    """The inside of a JSON string as far as it is there: decoded, and where each piece of it is in the text."""

    __slots__ = ("decoded", "end", "starts")

    def __init__(self, text: str, at: int, *, final: bool) -> None:
        pieces: list[str] = []
        self.starts: list[tuple[int, int]] = []
        size = 0
        while at < len(text) and text[at] != '"':
            end, piece = _piece(text, at, final=final)
            if end == at:
                break
            self.starts.append((size, at))
            pieces.append(piece)
            size += len(piece)
            at = end
        self.decoded = "".join(pieces)
        self.end = at

    def place(self, index: int) -> int:
        """Return where in the text the decoded character at `index` is."""
        if index >= len(self.decoded):
            return self.end
        size, at = next((size, at) for size, at in reversed(self.starts) if size <= index)
        # Only a piece without escapes is longer than one character, or stays as it is.
        return at + index - size


def _piece(text: str, at: int, *, final: bool) -> tuple[int, str]:
    """Read plain text or one escape: where it ends (`at` when it is not all there) and what it says."""
    end = end_of(_PLAIN, text, at)
    if end > at:
        return end, text[at:end]
    if len(text) - at < _LONGEST_ESCAPE and not final and not _certain(text, at):
        return at, ""
    found = _ESCAPE.match(text, at)
    if not found:
        return at + 1, "\\"
    try:
        return found.end(), str(json.loads(f'"{found.group()}"', strict=False))
    except json.JSONDecodeError:
        return at + 1, "\\"


def _certain(text: str, at: int) -> bool:
    """True when an escape is all there, whatever follows."""
    kind = text[at + 1 : at + 2]
    if kind != "u":
        return bool(kind)
    surrogate = text[at + 2 : at + 3] in ("d", "D", "")
    return not surrogate and len(text) - at >= len(r"\u0000")
