"""Parses answers from token ids, and encodes pieces of a prompt as token ids.

Strategy: ids are decoded a few at a time, and an incomplete character is buffered (incremental detokenisation). Ids of special tokens are
distinguished from ordinary text with the same characters, so a quoted `<|im_end|>` doesn't end the turn.

Pieces of a prompt are encoded together, so that their tokens are the same as those of the rendered prompt. If a message body contains the
text of a special token, the prompt is split inside that text, so no tokenizer option is needed.

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
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

from unrender import Event, Message, Parser
from unrender.cache import Cache, kept
from unrender.errors import TokenizerError
from unrender.format.tokens import literal_texts
from unrender.json_values import FrozenDict
from unrender.limits import MAX_FEW, MAX_FILE
from unrender.signatures import checked, checked_late
from unrender.types import ParsedAnswer

__all__ = ["ChunkParser", "PromptEncoder", "TokenParser", "special_ids_of"]

_HALF = "\ufffd"
"""Replacement character that decoders return for an incomplete character."""
_PROBES = ("x", " x", "\nx")
"""Strings for checking that a tokenizer adds no space to text after an anchor."""
_CLEANS = "clean_up_tokenization_spaces"
"""Name of an option of transformers, and of a tokenizer's attribute with the option's default."""
_ANCHORS = 8
"""Maximum number of special tokens to try as an anchor."""


class Decoder(Protocol):
    """The methods of a tokenizer that this module uses."""

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = ...) -> str:
        """Return the text of `ids`."""


def exact_options(tokenizer: Any) -> dict[str, bool]:
    """Return the options with which a tokenizer decodes ids without removing special tokens or spaces."""
    options = {"skip_special_tokens": False}
    # Some tokenizers of transformers turn ` .` into `.`, which changes arguments such as `git add . `. Those of other libraries don't have
    # this option.
    return {**options, _CLEANS: False} if hasattr(tokenizer, _CLEANS) else options


class Detokenizer:
    """Incremental decoder. Text is returned as soon as no later id can change it."""

    __slots__ = ("_given", "_held", "_options", "_tokenizer")

    def __init__(self, tokenizer: Decoder) -> None:
        self._tokenizer = tokenizer
        self._options = exact_options(tokenizer)
        self._held: list[int] = []
        """The latest ids: the pending ones, preceded by some decoded ids that determine the spacing."""
        self._given = 0
        """Number of held ids whose text was already returned."""

    def feed(self, token: int) -> str:
        """Add an id, and return the text that is now final."""
        # If `東` consists of three tokens, the first two decode to U+FFFD, so these two are buffered. A token's text may depend on the
        # previous token (`▁` at the start of a word). Previous tokens are therefore decoded again, and their text is removed.
        self._held.append(token)
        before, now = self.text(self._held[: self._given]), self.text(self._held)
        waiting = len(self._held) - self._given
        # Limit the number of buffered tokens, because some bytes never form a character.
        if (now.endswith(_HALF) or len(now) <= len(before)) and waiting <= MAX_FEW:
            return ""
        self._held, self._given = self._held[self._given :], waiting
        return now[len(before) :]

    def flush(self) -> str:
        """Return the buffered text, even if its last character is incomplete."""
        before, now = self.text(self._held[: self._given]), self.text(self._held)
        self._held, self._given = [], 0
        return now[len(before) :]

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of ids, including special tokens."""
        return self._tokenizer.decode(ids, **self._options) if ids else ""


class PromptTexts:
    """Texts of growing prompts. Text that is known from an earlier turn isn't decoded again, so a turn's cost doesn't depend on its prompt.

    Several conversations may share an object. Texts that haven't been used for the longest time are dropped.
    """

    __slots__ = ("_known", "_tokenizer")

    def __init__(self, tokenizer: Decoder) -> None:
        self._tokenizer = tokenizer
        self._known: Cache[str] = Cache(MAX_FILE)

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of a prompt's ids."""
        known = self._known.get(_key(ids))
        return Detokenizer(self._tokenizer).text(ids) if known is None else known

    def keep(self, ids: Sequence[int], text: str) -> None:
        """Store the text of a prompt for later calls of `text`."""
        self._known.put(_key(ids), text, len(text))


def _key(ids: Sequence[int]) -> tuple[int, ...]:
    # The hash of a tuple takes a tenth of the time of a digest, which needs the ids as bytes. It has 64 bits, so no other prompt has it.
    return len(ids), hash(tuple(ids)), *ids[-MAX_FEW:]


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
        id: getattr(token, "content", "") for id, token in _added(tokenizer).items() if getattr(token, "special", False)
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


def special_ids_of(tokenizer: Any) -> frozenset[int]:
    """Return the ids of all added tokens of a tokenizer, whether or not they are marked as special.

    Many tokenizers don't mark the tokens around calls and reasoning as special. `tokenizer` is from transformers or tokenizers.
    """
    named = getattr(tokenizer, "all_special_ids", ())  # None stands for a special token that the vocabulary lacks.
    return frozenset({*map(int, _added(tokenizer)), *(id for id in named if id is not None)})


@kept(1_000_000)
def special_texts_of(tokenizer: Any) -> Mapping[int, str]:
    """Return the texts of a tokenizer's special tokens, by id."""
    decoder = Detokenizer(tokenizer)
    return FrozenDict({id: decoder.text([id]) for id in special_ids_of(tokenizer)})


def _added(tokenizer: Any) -> Mapping[int, Any]:
    added = getattr(tokenizer, "added_tokens_decoder", None)
    if added is None and hasattr(tokenizer, "get_added_tokens_decoder"):
        added = tokenizer.get_added_tokens_decoder()
    return added or {}


class Encoded(NamedTuple):
    """Token ids of pieces of a prompt."""

    ids: list[int]
    pieces: list[int]
    """For each id, the index of the piece that contains its first character."""


@checked
class PromptEncoder:
    """Encodes pieces of prompts with a tokenizer of transformers or tokenizers.

    A piece is a string with a flag for message bodies. In bodies, the text of a special token is encoded as ordinary text. The tokenizer
    recognises special tokens only in the other pieces, which come from the template. All added tokens of a vocabulary count as special,
    except those that consist of whitespace. No BOS or EOS is added.

    Raises `TokenizerError` if the tokenizer doesn't list its added tokens.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer: Any = tokenizer
        """The tokenizer."""
        self.special_ids: frozenset[int] = special_ids_of(tokenizer)
        """The ids of special tokens."""
        self.special_tokens: Mapping[str, int]
        """Maps the text of each special token to its id. Tokens that consist of whitespace are left out."""
        self._decoded = Detokenizer(tokenizer)
        if not self.special_ids:
            raise TokenizerError(
                f"{type(tokenizer).__name__}: expected a tokenizer that lists its special tokens (added_tokens_decoder), "
                "found none; without the list, a message could contain one"
            )
        added = _added(tokenizer)
        texts = {id: getattr(added.get(id), "content", None) or self._decoded.text([id]) for id in self.special_ids}
        self.special_tokens = {text: id for id, text in sorted(texts.items()) if text.strip()}
        self._refused = {id: text for text, id in self.special_tokens.items()}
        longest_first = sorted(self.special_tokens, key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        self._anchor, self._anchor_length = self._anchor_of(list(self.special_tokens))

    @checked
    def prompt(self, pieces: Iterable[tuple[str, bool]]) -> Encoded:
        """Return the ids of a complete prompt. Raises `TokenizerError` if a body can't be encoded as ordinary text."""
        return self._encoded(list(pieces), whole=True)

    @checked
    def continuation(self, pieces: Iterable[tuple[str, bool]]) -> Encoded:
        """Return the ids of text that follows existing ids. SentencePiece tokenizers add no space before this text.

        Raises `TokenizerError` as `prompt` does.
        """
        return self._encoded(list(pieces), whole=False)

    @checked
    def spelled(self, text: str) -> str | None:
        """Return the first special token that occurs in `text`, or None."""
        found = self._special.search(text)
        return found and found[0]

    def _encoded(self, pieces: Sequence[tuple[str, bool]], *, whole: bool) -> Encoded:
        text = "".join(part for part, _ in pieces)
        starts = [0, *accumulate(len(part) for part, _ in pieces)]
        bodies = [body for _, body in pieces]
        encoded = Encoded([], [])
        low = 0
        for high in [*self._cuts(text, starts, bodies), len(text)]:
            anchored = not whole or low > 0
            for id, start in self._stretch(text[low:high], anchored=anchored):
                piece = bisect_right(starts, low + start, hi=len(pieces)) - 1
                if id in self._refused and bodies[piece]:
                    raise TokenizerError(
                        f"{type(self.tokenizer).__name__}: cannot encode {self._refused[id]!r} as ordinary text, "
                        f"found in a message: {pieces[piece][0]!r:.80}"
                    )
                encoded.ids.append(id)
                encoded.pieces.append(piece)
            low = high
        return encoded

    def _cuts(self, text: str, starts: Sequence[int], bodies: Sequence[bool]) -> Iterator[int]:
        """Yield positions at which to split a prompt. Each is inside the text of a special token that doesn't come entirely from the
        template.
        """
        at, cut = 0, 0
        while any(bodies) and (found := self._special.search(text, at)):
            start, end = found.span()
            touched = _body_in(starts, bodies, start, end)
            # If the template's text ends with `<|im_` and a body starts with `end|>`, split at the border. Inside a body, continue after
            # the split, since the rest may contain another token.
            at = end if touched is None else max(touched, start + 1)
            if touched is not None and cut < at < end:
                cut = at
                yield cut

    def _stretch(self, text: str, *, anchored: bool) -> Iterator[tuple[int, int]]:
        """Yield the ids of a text, each with the position of its first character."""
        if not text:
            return
        lead = self._anchor if anchored else ""
        ids, starts = self._raw(lead + text)
        skipped = self._anchor_length if lead else 0
        for id, start in zip(ids[skipped:], starts[skipped:], strict=True):
            yield id, max(start - len(lead), 0)

    def _raw(self, text: str) -> tuple[list[int], list[int]]:
        """Return the ids of a text and the positions of their first characters."""
        tokenizer = self.tokenizer
        if hasattr(tokenizer, "get_added_tokens_decoder"):  # `tokenizers.Tokenizer`
            encoding = tokenizer.encode(text, add_special_tokens=False)
            return list(encoding.ids), _places(encoding.offsets)
        if getattr(tokenizer, "is_fast", False):
            encoding = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
            return list(encoding["input_ids"]), _places(encoding["offset_mapping"])
        ids = list(tokenizer.encode(text, add_special_tokens=False))
        return ids, self._decoded_places(ids)

    def _decoded_places(self, ids: Sequence[int]) -> list[int]:
        """Return the start position of each id by decoding. Used for tokenizers that don't return offsets."""
        decoded, places, at = Detokenizer(self.tokenizer), [], 0
        for id in ids:
            places.append(at)
            at += len(decoded.feed(id))
        return places

    def _anchor_of(self, special: Sequence[str]) -> tuple[str, int]:
        """Return text after which the tokenizer adds no space, and the number of ids of this text."""
        for anchor in (*special[:_ANCHORS], "\n"):
            ids = self._raw(anchor)[0]
            if all(self._fits(anchor, ids, probe) for probe in _PROBES):
                return anchor, len(ids)
        return "", 0

    def _fits(self, anchor: str, ids: list[int], probe: str) -> bool:
        together = self._raw(anchor + probe)[0]
        return together[: len(ids)] == ids and self._decoded.text(together) == anchor + probe


def _body_in(starts: Sequence[int], bodies: Sequence[bool], low: int, high: int) -> int | None:
    """Return the start of the first body between `low` and `high`, or None."""
    first = bisect_right(starts, low, hi=len(bodies)) - 1
    last = bisect_right(starts, high - 1, hi=len(bodies)) - 1
    return next((max(starts[i], low) for i in range(first, last + 1) if bodies[i]), None)


def _places(offsets: Iterable[tuple[int, int]]) -> list[int]:
    """Return the start positions of tokens.

    Some tokenizers exclude the space of ` word` from the token's offsets, so the end of the previous token is used instead.
    """
    places, last = [], 0
    for start, end in offsets:
        places.append(min(start, last))
        last = end
    return places
