"""Reads a value that begins with a quotation mark where the format has none, as JSON text.

Strategy: models that write code quote their strings, and some strings begin with a quotation mark. What follows the closing
one decides: where the call can go on, the value was quoted; anywhere else it is raw text, quotation marks included. So
the text waits until its quotation is closed.
"""

from __future__ import annotations

from unrender.values.flow import Taker
from unrender.values.raw import RawScanner
from unrender.values.scanner import DONE, MORE, LiteralScanner, LiteralStyle, Status


class CodeValueScanner:
    """Reads one value up to (not including) its end.

    It is read as a quoted string if that fits, otherwise as `raw` reads it.
    """

    __slots__ = ("closed", "held", "literal", "raw", "said", "settled")

    def __init__(self, raw: RawScanner) -> None:
        self.raw: RawScanner = raw
        self.literal: LiteralScanner = LiteralScanner(LiteralStyle())
        self.held: list[str] = []
        """The quotation, as it was written."""
        self.said: list[str] = []
        """The quotation as JSON text."""
        self.closed: bool = False
        """The closing mark has been read."""
        self.settled: bool = False
        """The value is raw text."""

    def copy(self) -> CodeValueScanner:
        """Return an independent scanner in the same state."""
        other = CodeValueScanner(self.raw.copy())
        other.literal = self.literal.copy()
        other.held, other.said = list(self.held), list(self.said)
        other.closed, other.settled = self.closed, self.settled
        return other

    @property
    def flow(self) -> Taker | None:
        """The fast path of raw text, once it is certain that the value is raw."""
        return self.raw.flow if self.settled else None

    @property
    def duplicate(self) -> str:
        """A key that comes twice in one object of the value; "" where none does."""
        return self.raw.duplicate

    def scan(self, text: str, start: int, *, final: bool) -> tuple[int, str, Status]:
        """Read as much of `text` from `start` on as can be decided. With `final`, no more text will come."""
        if self.settled:
            return self.raw.scan(text, start, final=final)
        if not self.closed:
            end, said, status = self.literal.scan(text, start, final=final)
            self.held.append(text[start:end])
            self.said.append(said)
            if status is not DONE:
                return end, "".join(self.said) if final else "", status
            start, self.closed = end, True
        return self._decide_after_quotation(text, start, final=final)

    def _decide_after_quotation(self, text: str, start: int, *, final: bool) -> tuple[int, str, Status]:
        """Decide by what follows the quotation."""
        finder = self.raw.finder
        end, mark = (finder.find if final else finder.decided)(text, start)
        between = text[start : end if end >= 0 else len(text)]
        if not between.strip() and (mark or final):
            return start, "".join(self.said), DONE
        if not between.strip():
            return start, "", MORE
        self.settled = True
        quotation = self.raw.begin("".join(self.held))
        end, rest, status = self.raw.scan(text, start, final=final)
        return end, quotation + rest, status
