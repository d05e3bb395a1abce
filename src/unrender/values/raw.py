"""Reads raw argument text as it streams, up to the value's end marker, as JSON text.

Strategy: what can only be a string is released at once, escaped. A list or an object is read as a literal. Where the
type depends on the text (`7`, `true`, `None`), the text is held until the end marker comes, or until it can be no
number and no word any more.

Models that write code quote their strings, though some raw strings begin with a quotation mark too. Text after the closing
mark decides. Where the call can go on, the value was quoted; elsewhere it is raw text, with its quotation marks.
"""

from __future__ import annotations

from unrender.values.atoms import duplicate_key, escape, may_be_word
from unrender.values.coercion import STRING, coerce
from unrender.values.finder import ESCAPED, Finder, Taker
from unrender.values.scanner import DONE, MORE, LiteralScanner, LiteralStyle, Status
from unrender.values.unmarked_ends import Follow

_TEXTUAL = frozenset(("string", "null", "boolean", "integer", "number"))
_LOOSE = LiteralStyle()
_STRUCTURED = frozenset(("object", "array"))
_PUNCTUATION = frozenset('[]{},:"')


class RawScanner:
    """Reads verbatim text up to (not including) an end marker, as a value of one of `types`."""

    __slots__ = ("begun", "blank", "duplicate", "finder", "head", "held", "is_string", "literal", "types")

    def __init__(self, finder: Finder | Follow, types: frozenset[str]) -> None:
        self.finder: Finder | Follow = finder
        self.types: frozenset[str] = types
        self.is_string: bool = types == STRING
        """The value is certain to be a string."""
        self.begun: bool = False
        """The string's opening quote is out."""
        self.held: list[str] = []
        """All text so far, while the value is not certain to be a string."""
        self.head: str = ""
        """What is held without the space around it; inner space may be shortened."""
        self.blank: bool = False
        """The held text ends in space."""
        self.literal: LiteralScanner | None = None
        self.duplicate: str = ""
        """A key that comes twice in one object of the whole value."""

    def copy(self) -> RawScanner:
        """Return an independent scanner in the same state."""
        other = RawScanner(self.finder, self.types)
        other.is_string, other.begun, other.head, other.blank = self.is_string, self.begun, self.head, self.blank
        other.held = list(self.held)
        other.literal = self.literal.copy() if self.literal else None
        return other

    @property
    def flow(self) -> Taker | None:
        """The fast path of a string's text: it stops at a character that may end it, or that JSON writes otherwise."""
        if not self.begun or not isinstance(self.finder, Finder):
            return None
        return self.finder.flow(ESCAPED)

    def scan(self, text: str, start: int, *, final: bool) -> tuple[int, str, Status]:
        """Read as much of `text` from `start` on as can be decided. With `final`, no more text will come."""
        if self.literal or self._is_structured(text, start):
            return self._scan_literal(text, start, final=final)
        end, literal = (self.finder.find if final else self.finder.decided)(text, start)
        if literal:
            return end, self._take(text[start:end]) + self._finish(), DONE
        cut = len(text) if final else end
        return cut, self._take(text[start:cut]), MORE

    def begin(self, text: str) -> str:
        """Take the beginning of the value, which does not hold its end; return JSON text."""
        return self._take(text)

    def _is_structured(self, text: str, start: int) -> bool:
        if self.held or self.begun or text[start : start + 1] not in ("{", "["):
            return False
        # `{` begins an object only where the schema allows no string: code in a string begins so too.
        if self.types <= _STRUCTURED:
            return bool(self.types)
        return "string" not in self.types and not self.types.isdisjoint(_STRUCTURED) and self._ends_like_json()

    def _ends_like_json(self) -> bool:
        """Return whether a list or an object may hold what ends the value, as `]` does in `[[1], 2]]`."""
        finder = self.finder
        return isinstance(finder, Finder) and any(_PUNCTUATION.issuperset(end.strip()) for end in finder.literals)

    def _scan_literal(self, text: str, start: int, *, final: bool) -> tuple[int, str, Status]:
        if self.literal is None:
            self.literal = LiteralScanner(_LOOSE)
        end, said, status = self.literal.scan(text, start, final=final)
        if status is DONE:
            self.duplicate = self.literal.duplicate
        return end, said, status

    def _take(self, piece: str) -> str:
        if not self.is_string:
            self._hold(piece)
            if self._may_be_other():
                return ""
            self.is_string = True
            piece = "".join(self.held)
        quote = "" if self.begun else '"'
        self.begun = True
        return quote + escape(piece)

    def _hold(self, piece: str) -> None:
        if not piece:
            return
        self.held.append(piece)
        if self.head[:1] in ("{", "["):
            return
        # The head is what decides: `4`, then ` 2`, is `4 2`, which is no number; the inner space may be of any width.
        core = piece.strip()
        apart = bool(core and self.head) and (self.blank or piece[0].isspace())
        self.head += " " + core if apart else core
        self.blank = piece[-1].isspace()

    def _may_be_other(self) -> bool:
        if self.head[:1] in ("{", "["):
            return not ("string" in self.types and self.types <= _TEXTUAL)
        return may_be_word(self.head)

    def _finish(self) -> str:
        if self.is_string:
            return '"'
        value = coerce("".join(self.held), self.types)
        self.duplicate = duplicate_key(value)
        return value


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
        """Decide by what follows: `"a", b=1` is quoted, and `"a" and "b"` is raw text with quotation marks in it."""
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
