"""Gives vocabularies of other libraries the methods of a tokenizer of transformers: a GGUF file's, and those of mistral-common."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

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
