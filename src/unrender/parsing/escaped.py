"""Argument text with entities as it streams: everything up to the value's end marker in, JSON text out.

Strategy: entities are short, so an entity that is not all there waits; everything else is read as raw text is. A list or
an object that is escaped as a whole is held until its end marker.
"""

from __future__ import annotations

from unrender.format.entities import unescape, unescaped_until
from unrender.parsing.coercion import coerce, read_literal
from unrender.parsing.finder import Finder
from unrender.parsing.follow import Follow
from unrender.parsing.raw import RawScanner


class Unescaper:
    """Decodes text that comes in pieces."""

    __slots__ = ("kept",)

    def __init__(self, kept: str = "") -> None:
        self.kept = kept

    def feed(self, text: str) -> str:
        """Return what is certain of the text so far and was not returned before."""
        text = self.kept + text
        cut = unescaped_until(text)
        self.kept = text[cut:]
        return unescape(text[:cut])


class EscapedScanner(RawScanner):
    """Reads escaped text up to an end marker, as a value of one of `types`; `whole`: lists and objects are escaped, too."""

    __slots__ = ("unescaper", "whole")

    def __init__(self, finder: Finder | Follow, types: frozenset[str], *, whole: bool) -> None:
        super().__init__(finder, types)
        self.unescaper = Unescaper()
        self.whole = whole

    def _new(self) -> RawScanner:
        other = EscapedScanner(self.finder, self.types, whole=self.whole)
        other.unescaper = Unescaper(self.unescaper.kept)
        return other

    def _is_structured(self, text: str, start: int) -> bool:
        return not self.whole and super()._is_structured(text, start)

    def _decoded(self, text: str, *, ended: bool = False) -> str:
        return self.unescaper.kept if ended else self.unescaper.feed(text)

    def _coerced(self, text: str) -> str:
        plain = not self.whole and read_literal(text)[0] in ("object", "array")
        return coerce(text if plain else unescape(text), self.types)
