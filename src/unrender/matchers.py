"""Computes the tokens that a grammar allows next, with llguidance or xgrammar.

Rules: the libraries are imported only on use. Tokenizer data is computed once.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any, Protocol

__all__ = ["DIALECTS", "Matcher", "masked_scores", "matcher_factory", "preferred_library"]
from unrender.cache import kept

DIALECTS = {"llguidance": "lark", "xgrammar": "structural_tag"}
"""Supported libraries and their grammar dialects. The first installed one is preferred."""


class Matcher(Protocol):
    """Tracks one answer token by token, and computes the tokens that the grammar allows next."""

    @property
    def ended(self) -> bool:
        """True after the answer has ended. No method may be called after that."""
        ...

    def bits(self) -> Any:
        """Return the allowed next tokens as a bit mask in a tensor of 32-bit integers."""
        ...

    def take(self, token: int) -> None:
        """Add the chosen token. Raises `ValueError` if the grammar doesn't allow it."""
        ...


def preferred_library() -> str:
    """Return the default library, or "" if none is installed."""
    return next((name for name in DIALECTS if importlib.util.find_spec(name)), "")


@kept(8_000_000)
def matcher_factory(library: str, tokenizer: Any, size: int) -> Callable[[str], Matcher]:
    """Return a function that creates a matcher from the text of a grammar.

    `tokenizer` is a fast tokenizer of transformers, and `size` is the size of the model's vocabulary. The grammar is written in the
    library's dialect. A structural tag is written as JSON. If the library rejects a grammar, the returned function raises `ValueError` or
    `RuntimeError` with the library's message.
    """
    return _LIBRARIES[library](tokenizer, max(size, len(tokenizer)))


def masked_scores(matcher: Matcher, scores: Any) -> Any:
    """Return the scores, with minus infinity for every token that isn't allowed next."""
    flags = _flags(matcher.bits().to(scores.device), scores.shape[-1])
    return scores.masked_fill(~flags, -float("inf"))


def _flags(bits: Any, size: int) -> Any:
    """Return a bit mask as booleans, one for each of `size` tokens. Tokens for which the mask has no bit aren't allowed."""
    torch = importlib.import_module("torch")
    # Each word has 32 bits: bit 0 of word 0 represents token 0, and bit 0 of word 1 represents token 32.
    flags = (bits[:, None] >> torch.arange(32, device=bits.device, dtype=bits.dtype)) & 1
    flags = flags.flatten()[:size].bool()
    return torch.nn.functional.pad(flags, (0, size - flags.shape[0]))


class _Llguidance:
    """Matcher of llguidance."""

    def __init__(self, matcher: Any, torch: Any, end: int) -> None:
        self._matcher = matcher
        self._torch = torch
        self._end = end
        """Token that ends an answer. The end is detected here, because the library's own matcher stops as soon as no other token is
        allowed.
        """
        self.ended = False

    def bits(self) -> Any:
        return self._torch.frombuffer(bytearray(self._matcher.compute_bitmask()), dtype=self._torch.int32)

    def take(self, token: int) -> None:
        if not self._matcher.consume_token(token):
            raise ValueError(f"the grammar doesn't allow this token: {self._matcher.get_error()}")
        self.ended = token == self._end


def _llguidance(tokenizer: Any, size: int) -> Callable[[str], Matcher]:
    library, torch = importlib.import_module("llguidance"), importlib.import_module("torch")
    words = library.LLTokenizer(library.TokenizerWrapper(_Words(tokenizer, size)))

    def matcher(text: str) -> Matcher:
        compiled = library.LLMatcher(words, library.LLMatcher.grammar_from_lark(text), log_level=0)
        if compiled.is_error():
            raise ValueError(compiled.get_error())
        return _Llguidance(compiled, torch, tokenizer.eos_token_id)

    return matcher


class _Words:
    """Tokenizer wrapper for llguidance that treats markers as plain text, because literals in grammars don't match special tokens."""

    def __init__(self, tokenizer: Any, size: int) -> None:
        plain = importlib.import_module("llguidance.hf").from_tokenizer(tokenizer, n_vocab=size)
        self.eos_token_id = tokenizer.eos_token_id
        self.bos_token_id = None
        self.special_token_ids = [tokenizer.eos_token_id]
        self.tokens = [plain.decode_bytes([token]) for token in range(size)]
        self._tokenizer = tokenizer

    def __call__(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids


class _Xgrammar:
    """Matcher of xgrammar."""

    def __init__(self, matcher: Any, words: Any) -> None:
        self._matcher = matcher
        self._words = words

    @property
    def ended(self) -> bool:
        return bool(self._matcher.is_terminated())

    def bits(self) -> Any:
        self._matcher.fill_next_token_bitmask(self._words)
        return self._words[0]

    def take(self, token: int) -> None:
        if not self._matcher.accept_token(token):
            raise ValueError("the grammar doesn't allow this token")


def _xgrammar(tokenizer: Any, size: int) -> Callable[[str], Matcher]:
    library = importlib.import_module("xgrammar")
    compiler = library.GrammarCompiler(library.TokenizerInfo.from_huggingface(tokenizer, vocab_size=size))

    def matcher(text: str) -> Matcher:
        compiled = compiler.compile_grammar(library.Grammar.from_structural_tag(text))
        return _Xgrammar(library.GrammarMatcher(compiled), library.allocate_token_bitmask(1, size))

    return matcher


_LIBRARIES: Mapping[str, Callable[[Any, int], Callable[[str], Matcher]]] = {
    "llguidance": _llguidance,
    "xgrammar": _xgrammar,
}
