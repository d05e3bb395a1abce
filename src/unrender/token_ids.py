"""Parses answers from token ids.

Strategy: ids are decoded a few at a time, and an incomplete character is buffered (incremental detokenisation). Ids of special tokens are
distinguished from ordinary text with the same characters, so a quoted `<|im_end|>` doesn't end the turn.

>>> from unrender import ChatTemplate
>>> class Letters:  # any tokenizer of tokenizers or transformers will do
...     def decode(self, ids, **options):
...         return "".join(map(chr, ids))
>>> parser = ChatTemplate.from_string("{{ messages[-1].content }}").prepare_rendered().parser()
>>> TokenParser(parser, Letters(), special_ids=()).feed([72, 105])
[ContentText(text='Hi')]
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from unrender import Event, Message, Parser
from unrender.cache import kept
from unrender.format import literal_texts
from unrender.json_values import FrozenDict
from unrender.prompt import Decoder, Detokenizer, PromptEncoder, added_tokens, special_ids_of
from unrender.signatures import checked, checked_late
from unrender.types import ParsedAnswer

__all__ = ["ChunkParser", "PromptEncoder", "TokenParser", "special_ids_of"]


@checked
class TokenParser:
    """A wrapper that feeds token ids to a parser.

    `special_ids` are the ids of special tokens. The default is all special tokens of the tokenizer. Markers that aren't special tokens of
    the vocabulary are recognised in ordinary text. The only errors raised are those of the tokenizer.
    """

    __slots__ = ("_decoded", "_ends", "_held", "_special", "parser")

    def __init__(self, parser: Parser, tokenizer: Decoder, *, special_ids: Collection[int] | None = None) -> None:
        self.parser: Parser = parser
        """The parser, with its `message` and `spans`."""
        self._decoded = Detokenizer(tokenizer)
        self._special = frozenset(special_ids_of(tokenizer) if special_ids is None else special_ids)
        self._ends: frozenset[int] = frozenset()
        self._held = ""
        """Text of special tokens that aren't part of the answer unless other text follows."""
        if isinstance(parser, Parser):  # The parsers of engines don't distinguish special tokens from ordinary text.
            parser._quote_only(self._decoded.text(sorted(self._special)))
            self._ends = foreign_ids(tokenizer, parser) & self._special

    @property
    def message(self) -> Message:
        """The message so far."""
        return self.parser.message

    @checked_late
    def feed(self, ids: int | Iterable[int]) -> list[Event]:
        """Parse more ids and return the new events."""
        events: list[Event] = []
        ordinary: list[str] = []
        for token in [ids] if isinstance(ids, int) else ids:
            if token not in self._special:
                ordinary.append(self._decoded.feed(int(token)))
                continue
            events += self._feed("".join(ordinary) + self._decoded.flush())
            ordinary.clear()
            text = self._decoded.text([int(token)])
            # A generation config may have two ends, and batches are padded. At the very end, such tokens aren't part of the answer.
            if token in self._ends:
                self._held += text
                continue
            # Feed special tokens separately, so that the parser can distinguish the token `<call>` from the ordinary text `<call>`.
            events += [*self._release(), *self.parser.feed(text, special=True)]
        return [*events, *self._feed("".join(ordinary))]

    def finish(self, reason: str | None = None) -> list[Event]:
        """End the output and return the last events. `reason` is the engine's finish reason, as in `Parser.finish`."""
        return [*self._feed(self._decoded.flush()), *self.parser.finish(reason)]

    @property
    def answer(self) -> ParsedAnswer:
        """The answer for `Turn.next`, after `finish`."""
        return ParsedAnswer(parser=self.parser, padding=self._held)

    def _feed(self, text: str) -> list[Event]:
        return [*self._release(), *self.parser.feed(text, special=False)] if text else []

    def _release(self) -> list[Event]:
        held, self._held = self._held, ""
        return self.parser.feed(held, special=True) if held else []


def foreign_ids(tokenizer: Any, parser: Parser) -> frozenset[int]:
    """Return the ids of a tokenizer's special tokens that don't occur in the format of the parser's answer."""
    if parser._grammar is not None:
        return frozenset()
    known = "\0".join(literal_texts(parser._format))
    texts = {
        id: getattr(token, "content", "")
        for id, token in added_tokens(tokenizer).items()
        if getattr(token, "special", False)
    }
    return frozenset(id for id, text in texts.items() if text and text not in known)


@checked
class ChunkParser:
    """A wrapper that feeds an engine's chunks to a parser: text, and the ids of its tokens.

    `special` maps ids of special tokens to their texts. An engine's text may lag behind its ids. If the text of a special token is missing
    from a chunk, or a chunk has text but no ids, this text and all later text is parsed without ids. If a chunk also contains the text of a
    special token in ordinary tokens, and there is no tokenizer, only this chunk is parsed without ids.
    """

    __slots__ = ("_lags", "_pattern", "_special", "_tokenizer", "parser")

    def __init__(self, parser: Parser, special: Mapping[int, str], tokenizer: Decoder | None = None) -> None:
        self.parser: Parser = parser
        """The parser, with its `message` and `spans`."""
        self._tokenizer = tokenizer
        self._lags = False
        """True if the text of a chunk's last token is missing. The token should then be the end of the answer."""
        tokens = frozenset(parser._quoter.tokens)
        self._special = {id: text for id, text in special.items() if text in tokens}
        texts = sorted(set(self._special.values()), key=len, reverse=True)
        self._pattern = re.compile(f"({'|'.join(map(re.escape, texts))})") if texts else None
        if texts:
            parser._quote_only("\0".join(texts))

    @property
    def message(self) -> Message:
        """The message so far."""
        return self.parser.message

    def feed(self, text: str, ids: Sequence[int]) -> list[Event]:
        """Parse a chunk, and return the new events."""
        if self._lags and text:
            self._pattern = None
        pieces = self._pieces(text, ids) if self._pattern else None
        if pieces is None:
            return self.parser.feed(text) if text else []
        return [event for piece, special in pieces if piece for event in self.parser.feed(piece, special=special)]

    def finish(self, reason: str | None = None) -> list[Event]:
        """End the output and return the last events. `reason` is the engine's finish reason, as in `Parser.finish`."""
        return self.parser.finish(reason)

    def _pieces(self, text: str, ids: Sequence[int]) -> list[tuple[str, bool]] | None:
        """Return the pieces of a chunk, each with whether it's a special token. Return None if that isn't known."""
        assert self._pattern is not None
        found = [self._special[id] for id in ids if id in self._special]
        # Engines remove the token that ends an answer.
        self._lags = bool(found) and ids[-1] in self._special and not text.endswith(found[-1])
        if self._lags:
            found.pop()
        spelled = self._pattern.split(text) if found else [text]
        if spelled[1::2] == found and (ids or not text):
            return [(piece, at % 2 == 1) for at, piece in enumerate(spelled)]
        # The chunk also contains the text of a special token in ordinary tokens, so decode the tokens one by one.
        decoded = self._decoded(ids) if self._tokenizer and len(spelled) // 2 > len(found) else []
        if text and "".join(piece for piece, _ in decoded).startswith(text):
            return decoded
        if self._tokenizer or not ids or Counter(found) - Counter(spelled[1::2]):
            self._pattern = None
        return None

    def _decoded(self, ids: Sequence[int]) -> list[tuple[str, bool]]:
        assert self._tokenizer is not None
        pieces, decoder = [], Detokenizer(self._tokenizer)
        for id in ids:
            special = self._special.get(id)
            pieces.append((decoder.feed(id) if special is None else decoder.flush(), False))
            pieces += [(special, True)] if special is not None else []
        return [*pieces, (decoder.flush(), False)]


@kept(1_000_000)
def special_texts_of(tokenizer: Any) -> Mapping[int, str]:
    """Return the texts of a tokenizer's special tokens, by id."""
    decoder = Detokenizer(tokenizer)
    return FrozenDict({id: decoder.text([id]) for id in special_ids_of(tokenizer)})
