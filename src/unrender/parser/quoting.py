"""Distinguishes special tokens from equal text, so that quoted markers stay text.

Strategy: in text that is known to be ordinary, the first character of whatever spells a special token is replaced by a
stand-in, one character for one, so that no marker is found there and positions stay. Events get the character back.
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
"""Stand-ins are taken from the last private-use plane, which no model writes."""


@kept(5_000)
def _stand_ins(tokens: frozenset[str]) -> tuple[Finder, Mapping[str, str]]:
    """Return a finder of the tokens, and a replacement for the first character of each."""
    finder = Finder(tokens)
    heads = sorted({token[0] for token in finder.literals})
    return finder, {head: chr(_FIRST_STAND_IN + i) for i, head in enumerate(heads)}


class Quoter(Resumable):
    """Quotes special tokens in ordinary text as it streams, and takes the quotes out of events."""

    __slots__ = ("_back", "_finder", "_stand_ins", "held")

    def __init__(self, tokens: Iterable[str]) -> None:
        self._finder, self._stand_ins = _stand_ins(frozenset(tokens))
        self._back: dict[int, str] = {}
        """Stand-ins that are in use, by code point."""
        self.held: str = ""
        """The end of ordinary text that may continue as a special token."""

    @property
    def tokens(self) -> tuple[str, ...]:
        """The special tokens."""
        return self._finder.literals

    def ordinary(self, text: str) -> str:
        """Take text without special tokens; return the part of it that is certain, quoted."""
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
        """Return the text that was held back: it did not become a token."""
        held, self.held = self.held, ""
        return held

    @property
    def used(self) -> bool:
        """True if something was quoted, so that events need `unquote`."""
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
