"""Defines the pieces of a prompt, encodes them as token ids, and decodes ids.

Input: the text of a prompt in pieces, each with its owner. Output: token ids in which no text of a message is a special token.

Strategy: pieces are encoded together, so that their tokens are the same as those of the rendered prompt. If a body contains the text of a
special token, the prompt is split inside that text, and each part is encoded on its own. So no tokenizer option is needed.

Rules: this module knows no template. `conversation.pieces` finds the owner of each piece.
"""

from __future__ import annotations

import importlib
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Literal, NamedTuple, Protocol

from unrender.errors import TokenizerError
from unrender.limits import MAX_FEW
from unrender.signatures import checked

AUTHORS = ("system", "developer")
"""Roles of messages from the author of the application. Markers in these messages are special tokens."""
PieceKind = Literal[
    "template",
    "content",
    "reasoning",
    "result",
    "argument",
    "argument_name",
    "name",
    "description",
    "document",
    "answer",
    "unknown",
]
"""Kinds of text in a prompt. "name" is the name of a tool or speaker, or the id of a call. "description" is any other text of a tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a prompt, with its owner."""

    text: str
    kind: PieceKind = "template"
    """The kind of text. "answer" is text that the model wrote in this prompt. "unknown" means that the owner isn't certain."""
    message: int | None = None
    """Index of the message that contains this part, or to whose header and end it belongs. None for the end of the answer, the generation
    prompt, and tools.

    In a user message in Anthropic's form, each tool result counts as a separate message.
    """
    role: str = ""
    """Role of the message, for parts that aren't the template's text."""
    where: str = ""
    """Path of the text in the request, e.g. `messages[2].content` or `tools[0]`. Empty for the template's text."""

    @property
    def body(self) -> bool:
        """True for text that comes from a message, a tool or a document, and for text whose owner isn't certain."""
        return self.kind not in ("template", "answer")


class PromptText(NamedTuple):
    """A text of a message, a tool or a document, before the template writes it."""

    text: str
    role: str
    """Role of the message. Empty for tools and documents."""
    rewritten: bool
    """True if the template might remove a part of the text, and so join the parts around it."""


def flagged(pieces: Iterable[Piece], special_roles: Collection[str] = AUTHORS) -> list[tuple[str, bool]]:
    """Return the text of each piece, with a flag that is True if the text must not contain special tokens."""
    return [(piece.text, piece.body and piece.role not in special_roles) for piece in pieces]


class SpecialTexts:
    """The texts of special tokens, and other markers, which are `spelled` character by character."""

    def __init__(self, texts: Iterable[str], spelled: Iterable[str] = ()) -> None:
        self._spelled = frozenset(spelled)
        longest_first = sorted({*texts, *self._spelled}, key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        self._longest = max(map(len, longest_first), default=0)
        self._starts = {text[:at] for text in longest_first for at in range(1, len(text))}
        self._ends = {text[at:] for text in longest_first for at in range(1, len(text))}

    def first_in(self, text: str) -> str | None:
        """Return the first special token that occurs in `text`, or None."""
        found = self._special.search(text)
        return found and found[0]

    def touches(self, text: str) -> bool:
        """Return True if `text` contains a special token, or might be a part of one together with the text around it."""
        lengths = range(1, min(len(text), self._longest) + 1)
        ends = any(text[-length:] in self._starts or text[:length] in self._ends for length in lengths)
        return ends or self.first_in(text) is not None

    def split(self, pieces: Sequence[tuple[str, bool]]) -> list[str]:
        """Return the prompt, split at its `cuts`."""
        text = "".join(part for part, _ in pieces)
        return [text[start:end] for start, end in pairwise([0, *self.cuts(pieces), len(text)])]

    def cuts(self, pieces: Sequence[tuple[str, bool]]) -> Iterator[int]:
        """Yield positions at which to split a prompt. Each is inside the text of a special token that doesn't come entirely from the
        template.

        `pieces` are strings, each with a flag for message bodies.
        """
        text, starts = "".join(part for part, _ in pieces), piece_starts(pieces)
        bodies = [body for _, body in pieces]
        at, cut = 0, 0
        while any(bodies) and (found := self._special.search(text, at)):
            start, end = found.span()
            touched = _body_in(starts, bodies, start, end)
            if touched is not None and found[0] in self._spelled:
                yield from range(max(touched, start + 1, cut + 1), end)
                at, cut = end, end - 1
                continue
            # If the template's text ends with `<|im_` and a body starts with `end|>`, split at the border. Inside a body, continue after
            # the split, since the rest may contain another token.
            at = end if touched is None else max(touched, start + 1)
            if touched is not None and cut < at < end:
                cut = at
                yield cut


def piece_starts(pieces: Iterable[tuple[str, bool]]) -> list[int]:
    """Return the start of each piece, and the end of the last one."""
    return [0, *accumulate(len(part) for part, _ in pieces)]


def _body_in(starts: Sequence[int], bodies: Sequence[bool], low: int, high: int) -> int | None:
    """Return the start of the first body between `low` and `high`, or None."""
    first = bisect_right(starts, low, hi=len(bodies)) - 1
    last = bisect_right(starts, high - 1, hi=len(bodies)) - 1
    return next((max(starts[i], low) for i in range(first, last + 1) if bodies[i]), None)


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

    def measured(self, ids: Sequence[int]) -> tuple[str, list[int]]:
        """Return the text of ids, and the position at which the text of each one starts."""
        parts, starts, length = list[str](), [], 0
        for id in ids:
            starts.append(length)
            parts.append(self.feed(id))
            length += len(parts[-1])
        return "".join([*parts, self.flush()]), starts


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
        return ids, Detokenizer(self.tokenizer).measured(ids)[1]  # The tokenizer returns no offsets.

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


_ADDED = 8 | 16
"""llama.cpp's attributes of tokens that are special, or that were added to the vocabulary."""


def as_tokenizer(given: Any) -> Any:
    """Return a tokenizer with the methods that this folder uses.

    `given` is a tokenizer of transformers, tokenizers or mistral-common, or a `llama_cpp.Llama`.
    """
    if hasattr(given, "detokenize") and hasattr(given, "token_bos"):
        return _Gguf(given)
    inner = getattr(getattr(given, "instruct_tokenizer", given), "tokenizer", given)
    return _Mistral(inner) if hasattr(inner, "special_ids") and hasattr(inner, "id_to_piece") else given


class _Gguf:
    """The vocabulary of a model that llama-cpp-python has loaded."""

    def __init__(self, llama: Any) -> None:
        self._llama = llama
        library = importlib.import_module("llama_cpp")
        vocabulary = library.llama_model_get_vocab(llama.model)
        count = library.llama_vocab_n_tokens(vocabulary)
        added = (id for id in range(count) if library.llama_vocab_get_attr(vocabulary, id) & _ADDED)
        self.added_tokens_decoder: Mapping[int, str] = {id: self.decode([id]) for id in added}

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:  # noqa: ARG002
        """Return the ids of a text, in which special tokens are recognised."""
        ids: list[int] = self._llama.tokenize(text.encode(errors="surrogatepass"), add_bos=False, special=True)
        return ids

    def decode(self, ids: Sequence[int], **_: Any) -> str:
        """Return the text of ids, including special tokens."""
        text: str = self._llama.detokenize(list(ids), special=True).decode(errors="replace")
        return text


class _Mistral:
    """A tokenizer of mistral-common, which never recognises special tokens in text."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._keep = importlib.import_module("mistral_common.tokens.tokenizers.base").SpecialTokenPolicy.KEEP
        self.added_tokens_decoder: Mapping[int, str] = {
            id: tokenizer.id_to_piece(id) for id in sorted(tokenizer.special_ids)
        }
        self._ids = {text: id for id, text in self.added_tokens_decoder.items()}
        self._special = re.compile(f"({'|'.join(map(re.escape, sorted(self._ids, key=len, reverse=True)))})")

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:  # noqa: ARG002
        """Return the ids of a text, in which special tokens are recognised."""
        parts = (part for part in self._special.split(text) if part)
        encode = self._tokenizer.encode
        return [
            id
            for part in parts
            for id in ([self._ids[part]] if part in self._ids else encode(part, bos=False, eos=False))
        ]

    def decode(self, ids: Sequence[int], **_: Any) -> str:
        """Return the text of ids, including special tokens."""
        text: str = self._tokenizer.decode(list(ids), special_token_policy=self._keep)
        return text
