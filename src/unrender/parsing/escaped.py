"""Reads argument text with escapes as it streams, up to the value's end marker, as JSON text.

Strategy: escapes are short, so one that is not all there waits; everything else is read as raw text is. A list or
an object that is escaped as a whole is held until its end marker.
"""

from __future__ import annotations

from unrender.grammar.notations import Decoder
from unrender.parsing.coercion import coerce, read_literal
from unrender.parsing.finder import Finder
from unrender.parsing.flow import ESCAPED, Taker
from unrender.parsing.follow import Follow
from unrender.parsing.raw import RawScanner


def decoded(decoder: Decoder, kept: str, text: str) -> tuple[str, str]:
    """Decode `kept` and `text` as far as is certain; also return the rest, which may be an incomplete escape."""
    text = kept + text
    cut = decoder.undecided_from(text)
    return decoder.decode(text[:cut]), text[cut:]


class EscapedScanner(RawScanner):
    """Reads escaped text up to an end marker, as a value of one of `types`.

    `whole` means that lists and objects are escaped as well.
    """

    __slots__ = ("decoder", "kept", "whole")

    def __init__(self, finder: Finder | Follow, types: frozenset[str], decoder: Decoder, *, whole: bool) -> None:
        super().__init__(finder, types)
        self.decoder: Decoder = decoder
        self.whole: bool = whole
        self.kept: str = ""
        """What may be the beginning of an escape."""

    @property
    def flow(self) -> Taker | None:
        """The fast path of raw text; None inside an escape."""
        return None if self.kept else super().flow

    @property
    def _changed(self) -> str:
        return ESCAPED + self.decoder.leads

    def _new(self) -> RawScanner:
        other = EscapedScanner(self.finder, self.types, self.decoder, whole=self.whole)
        other.kept = self.kept
        return other

    def _is_structured(self, text: str, start: int) -> bool:
        return not self.whole and super()._is_structured(text, start)

    def _decoded(self, text: str, *, ended: bool = False) -> str:
        if ended:
            return self.kept
        text, self.kept = decoded(self.decoder, self.kept, text)
        return text

    def _coerced(self, text: str) -> str:
        plain = not self.whole and read_literal(text)[0] in ("object", "array")
        return coerce(text if plain else self.decoder.decode(text), self.types)
