"""Distinguishes special tokens from ordinary text that looks like one, so that quoted markers remain text.

Strategy: if ordinary text spells out a special token, the first character of the spelled-out token is replaced by a placeholder. The result
has the same length and contains no marker. In events, the placeholder is replaced by the original character again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from unrender.cache import kept
from unrender.machine.events import (
    ArgumentsText,
    BrokenText,
    ContentText,
    Event,
    Malformed,
    ReasoningText,
    ToolCallStarted,
)
from unrender.values.finder import Finder
from unrender.values.resumable import Resumable

_FIRST_STAND_IN = 0x10F000
"""First placeholder character. It's in the last private-use plane, whose characters models don't write."""


@kept(5_000)
def _stand_ins(tokens: frozenset[str]) -> tuple[Finder, Mapping[str, str]]:
    """Return a finder of the tokens, and a replacement for the first character of each."""
    finder = Finder(tokens)
    heads = sorted({token[0] for token in finder.literals})
    return finder, {head: chr(_FIRST_STAND_IN + i) for i, head in enumerate(heads)}


class Quoter(Resumable):
    """Quotes special tokens in ordinary text as it streams, and removes the quoting from events."""

    __slots__ = ("_back", "_finder", "_stand_ins", "held")

    def __init__(self, tokens: Iterable[str]) -> None:
        self._finder, self._stand_ins = _stand_ins(frozenset(tokens))
        self._back: dict[int, str] = {}
        """Placeholders in use, by code point."""
        self.held: str = ""
        """The end of ordinary text that may become a special token."""

    @property
    def tokens(self) -> tuple[str, ...]:
        """The special tokens."""
        return self._finder.literals

    def ordinary(self, text: str) -> str:
        """Quote ordinary text. Returns the quoted text, but holds back an end that may still become a special token."""
        text = self.held + text
        pieces, at = [], 0
        found, token = self._finder.decided(text, at, whole=True)
        while token:
            # `<think>` becomes `\U0010f000think>`, which has the same length and contains no marker.
            stand_in = self._stand_ins[token[0]]
            self._back[ord(stand_in)] = token[0]
            pieces += [text[at:found], stand_in, token[1:]]
            at = found + len(token)
            found, token = self._finder.decided(text, at, whole=True)
        self.held = text[found:]
        return "".join([*pieces, text[at:found]])

    def release(self) -> str:
        """Return the text that was held back, which didn't become a special token."""
        held, self.held = self.held, ""
        return held

    @property
    def used(self) -> bool:
        """True if something was quoted, so that events must be passed to `unquote`."""
        return bool(self._back)

    def unquote(self, event: Event | BrokenText) -> Event | BrokenText:
        """Return the event with its original characters."""
        match event:
            case ContentText(text) | ReasoningText(text) | ArgumentsText(_, text) | Malformed(text) | BrokenText(text):
                return replace(event, text=text.translate(self._back))
            case ToolCallStarted(name=name):
                return replace(event, name=name.translate(self._back))
            case _:
                return event
