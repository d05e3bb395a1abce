"""Feeds a parser with token ids as they are generated, instead of text.

Strategy: ids are decoded a few at a time; a character that is not all there yet is held until it is (incremental
detokenisation). The ids of special tokens are told apart from text that only spells them, so a quoted `<|im_end|>` ends
nothing.

>>> from unrender import ChatTemplate
>>> class Letters:  # any tokenizer of tokenizers or transformers will do
...     def decode(self, ids, **options):
...         return "".join(map(chr, ids))
>>> parser = ChatTemplate.from_string("{{ messages[-1].content }}").parser()
>>> TokenParser(parser, Letters(), special_ids=()).feed([72, 105])
[ContentText(text='Hi')]
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Protocol

from unrender import Event, Message, Parser
from unrender.limits import MAX_HELD

_HALF = "\ufffd"
"""What decoders write for half a character."""


class Decoder(Protocol):
    """The part of a tokenizer that is used here."""

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = ...) -> str:
        """Return the text of `ids`."""


class TokenParser:
    """Feeds a parser with token ids.

    `special_ids` are the ids of special tokens; by default those that the tokenizer knows. A marker that is none of these
    tokens, `<call>` in a vocabulary without it, is read in ordinary text: the model can write it in no other way. No id makes it raise, unless
    the tokenizer itself refuses an id that it does not know.
    """

    __slots__ = ("_given", "_held", "_special", "_tokenizer", "parser")

    def __init__(self, parser: Parser, tokenizer: Decoder, *, special_ids: Collection[int] | None = None) -> None:
        self.parser: Parser = parser
        """The parser, for its `message` and `spans`."""
        self._tokenizer = tokenizer
        self._special = frozenset(special_ids_of(tokenizer) if special_ids is None else special_ids)
        if isinstance(parser, Parser):  # Engines' own parsers quote nothing.
            parser._quote_only(self._text(sorted(self._special)))
        self._held: list[int] = []
        """The latest ids: those whose text is out, which spacing may depend on, and those that wait."""
        self._given = 0
        """How many of them are out."""

    @property
    def message(self) -> Message:
        """The message so far."""
        return self.parser.message

    def feed(self, ids: int | Iterable[int]) -> list[Event]:
        """Take more ids; return the events that are final now."""
        events: list[Event] = []
        ordinary: list[str] = []
        for token in [ids] if isinstance(ids, int) else ids:
            if token not in self._special:
                ordinary.append(self._ordinary(int(token)))
                continue
            events += self._feed("".join(ordinary) + self._flush())
            # Alone, so that the parser can tell `<call>` the token from `<call>` spelled in letters.
            events += self.parser.feed(self._text([int(token)]), special=True)
            ordinary.clear()
        return [*events, *self._feed("".join(ordinary))]

    def finish(self, reason: str | None = None) -> list[Event]:
        """End the output; `reason` is the engine's finish reason, as `Parser.finish` takes it."""
        return [*self._feed(self._flush()), *self.parser.finish(reason)]

    def _feed(self, text: str) -> list[Event]:
        return self.parser.feed(text, special=False) if text else []

    def _ordinary(self, token: int) -> str:
        """Return the text that is certain now."""
        # `東` may be three tokens: the first two decode to U+FFFD, so they wait. A token's text may depend on the one before it
        # (`▁` at the start of a word), so those whose text is out are decoded once more, and their text is taken off.
        self._held.append(token)
        before, now = self._text(self._held[: self._given]), self._text(self._held)
        waiting = len(self._held) - self._given
        # Bytes that never become a character must not wait for ever.
        if (now.endswith(_HALF) or len(now) <= len(before)) and waiting <= MAX_HELD:
            return ""
        self._held, self._given = self._held[self._given :], waiting
        return now[len(before) :]

    def _flush(self) -> str:
        """Return the text of what waits, be it half a character."""
        before, now = self._text(self._held[: self._given]), self._text(self._held)
        self._held, self._given = [], 0
        return now[len(before) :]

    def _text(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=False) if ids else ""


def special_ids_of(tokenizer: Any) -> frozenset[int]:
    """Return the ids of all tokens that were added to `tokenizer` (of transformers or tokenizers), special or not.

    Many tokenizers do not mark their tokens for calls and reasoning as special. Those are still tokens, not text.
    """
    added = getattr(tokenizer, "added_tokens_decoder", None)
    if added is None and hasattr(tokenizer, "get_added_tokens_decoder"):
        added = tokenizer.get_added_tokens_decoder()
    return frozenset({*map(int, added or ()), *getattr(tokenizer, "all_special_ids", ())})
