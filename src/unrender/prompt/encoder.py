"""Decodes token ids, and encodes pieces of a prompt.

Strategy: pieces are encoded together, so that their tokens are the same as those of the rendered prompt. If a body contains the text of a
special token, the prompt is split inside that text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from unrender.errors import TokenizerError
from unrender.limits import MAX_FEW
from unrender.prompt import PromptText
from unrender.prompt.special_texts import SpecialTexts, piece_starts
from unrender.prompt.vocabularies import as_tokenizer
from unrender.signatures import checked

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


def special_ids_of(tokenizer: Any) -> frozenset[int]:
    """Return the ids of all added tokens of a tokenizer, whether or not they are marked as special.

    Many tokenizers don't mark the tokens around calls and reasoning as special. `tokenizer` is from transformers or tokenizers.
    """
    named = getattr(tokenizer, "all_special_ids", ())  # None stands for a special token that the vocabulary lacks.
    return frozenset({*map(int, added_tokens(tokenizer)), *(id for id in named if id is not None)})


def added_tokens(tokenizer: Any) -> Mapping[int, Any]:
    """Return the added tokens of a tokenizer by id. Empty if the tokenizer doesn't list them."""
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
    """Encodes pieces of prompts with a tokenizer of transformers, tokenizers or mistral-common, or with a `llama_cpp.Llama`.

    A piece is a string with a flag for message bodies. In bodies, the text of a special token is encoded as ordinary text. The tokenizer
    recognises special tokens only in the other pieces, which come from the template. All added tokens of a vocabulary count as special,
    except those that consist of whitespace. No BOS or EOS is added.

    Raises `TokenizerError` if the tokenizer doesn't list its added tokens.
    """

    def __init__(self, tokenizer: Any) -> None:
        tokenizer = as_tokenizer(tokenizer)
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
        added = added_tokens(tokenizer)
        texts = {id: getattr(added.get(id), "content", None) or self._decoded.text([id]) for id in self.special_ids}
        self.special_tokens = {text: id for id, text in sorted(texts.items()) if text.strip()}
        self._refused = {id: text for text, id in self.special_tokens.items()}
        self._special = SpecialTexts(self.special_tokens)
        self._anchor, self._anchor_length = self._anchor_of(list(self.special_tokens))

    @checked
    def prompt(self, pieces: Iterable[tuple[str, bool]]) -> Encoded:
        """Return the ids of a complete prompt. Raises `TokenizerError` if a body can't be encoded as ordinary text."""
        return self._encoded(list(pieces), self._special, whole=True)

    def _with_markers(
        self, pieces: Iterable[tuple[str, bool]], markers: Iterable[str], *, whole: bool = True
    ) -> Encoded:
        """Return the ids of a prompt, or of a continuation. In bodies, `markers` that aren't special tokens are encoded character by character."""
        spelled = [marker for marker in markers if marker not in self.special_tokens]
        special = SpecialTexts(self.special_tokens, spelled) if spelled else self._special
        return self._encoded(list(pieces), special, whole=whole)

    @checked
    def continuation(self, pieces: Iterable[tuple[str, bool]]) -> Encoded:
        """Return the ids of text that follows existing ids. SentencePiece tokenizers add no space before this text.

        Raises `TokenizerError` as `prompt` does.
        """
        return self._encoded(list(pieces), self._special, whole=False)

    @checked
    def spelled(self, text: str) -> str | None:
        """Return the first special token that occurs in `text`, or None."""
        return self._special.first_in(text)

    def _may_find_tokens(self, texts: Iterable[PromptText], markers: Collection[str]) -> bool:
        """Return True if one of the `texts` contains a special token or a marker, or might be a part of a token together with the text around it."""
        return any(
            text.rewritten or self._special.touches(text.text.strip()) or any(marker in text.text for marker in markers)
            for text in texts
        )

    def _encoded(self, pieces: Sequence[tuple[str, bool]], special: SpecialTexts, *, whole: bool) -> Encoded:
        text = "".join(part for part, _ in pieces)
        starts = piece_starts(pieces)
        encoded = Encoded([], [])
        low = 0
        for high in [*special.cuts(pieces), len(text)]:
            anchored = not whole or low > 0
            for id, start in self._stretch(text[low:high], anchored=anchored):
                piece = bisect_right(starts, low + start, hi=len(pieces)) - 1
                if id in self._refused and pieces[piece][1]:
                    raise TokenizerError(
                        f"{type(self.tokenizer).__name__}: cannot encode {self._refused[id]!r} as ordinary text, "
                        f"found in a message: {pieces[piece][0]!r:.80}"
                    )
                encoded.ids.append(id)
                encoded.pieces.append(piece)
            low = high
        return encoded

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


def _places(offsets: Iterable[tuple[int, int]]) -> list[int]:
    """Return the start positions of tokens.

    Some tokenizers exclude the space of ` word` from the token's offsets, so the end of the previous token is used instead.
    """
    places, last = [], 0
    for start, end in offsets:
        places.append(min(start, last))
        last = end
    return places
