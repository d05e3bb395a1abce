"""Raw argument text as it streams: everything up to the value's end marker in, JSON text out.

Strategy: what the schema makes a string is released at once, escaped; a list or an object is read as a literal; where
the type hangs on the text (`7`, `true`, `None`) it is held back until the end marker, or until it is too long to be a
number or a word.
"""

from __future__ import annotations

from unrender.parsing.coercion import STRING, coerce
from unrender.parsing.finder import Finder
from unrender.parsing.values import MAX_WORD, LiteralScanner, LiteralStyle, Status, escape

_TEXTUAL = frozenset(("string", "null", "boolean", "integer", "number"))
_STRUCTURED = frozenset(("object", "array"))


class RawScanner:
    """Reads verbatim text up to (not including) an end marker, as a value of one of `types`."""

    __slots__ = ("finder", "held", "literal", "opened", "types")

    def __init__(self, finder: Finder, types: frozenset[str]) -> None:
        self.finder = finder
        self.types = types
        self.held = ""
        self.opened = False
        self.literal: LiteralScanner | None = None

    def copy(self) -> RawScanner:
        """Return an independent scanner in the same state."""
        other = RawScanner(self.finder, self.types)
        other.held, other.opened = self.held, self.opened
        other.literal = self.literal.copy() if self.literal else None
        return other

    def scan(self, text: str, start: int, *, final: bool) -> tuple[int, str, Status]:
        """Take what can be decided of `text` from `start` on; `final` when no more text will come."""
        if self.literal or self._is_structured(text, start):
            return self._scan_literal(text, start, final=final)
        end, _ = self.finder.find(text, start)
        if end >= 0:
            return end, self._finish(text[start:end]), Status.DONE
        cut = len(text) if final else self.finder.undecided_from(text, start)
        return cut, self._take(text[start:cut]), Status.MORE

    def _is_structured(self, text: str, start: int) -> bool:
        begins = not self.held and not self.opened and text[start : start + 1] in ("{", "[")
        return begins and bool(self.types) and self.types <= _STRUCTURED

    def _scan_literal(self, text: str, start: int, *, final: bool) -> tuple[int, str, Status]:
        if self.literal is None:
            self.literal = LiteralScanner(LiteralStyle())
        return self.literal.scan(text, start, final=final)

    def _take(self, piece: str) -> str:
        if self.types == STRING or self.opened:
            return self._open() + escape(piece)
        self.held += piece
        if self.types and self.types <= _TEXTUAL and "string" in self.types and len(self.held) > MAX_WORD:
            held, self.held = self.held, ""
            return self._open() + escape(held)
        return ""

    def _open(self) -> str:
        if self.opened:
            return ""
        self.opened = True
        return '"'

    def _finish(self, piece: str) -> str:
        if self.types == STRING or self.opened:
            return self._open() + escape(piece) + '"'
        return coerce(self.held + piece, self.types)
