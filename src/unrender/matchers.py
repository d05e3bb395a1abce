"""Finds which tokens may come next under a grammar, by llguidance or xgrammar.

Rules: the libraries are imported when they are asked, never before. What they need to know of a tokenizer is worked out once.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any, Protocol

__all__ = ["DIALECTS", "Matcher", "masked_scores", "matcher_factory", "preferred_library"]
from unrender.cache import kept

DIALECTS = {"llguidance": "lark", "xgrammar": "structural_tag"}
"""The libraries that mask, with the dialect that each takes; the first that is installed is preferred."""


class Matcher(Protocol):
    """Follows one answer, token by token, and says which tokens its grammar allows next."""

    @property
    def ended(self) -> bool:
        """True when the answer has ended. No further token may then be asked for or taken."""
        ...

    def bits(self) -> Any:
        """Return the tokens that may come next, as one bit for each, in a tensor of 32-bit words."""
        ...

    def take(self, token: int) -> None:
        """Note the token that was chosen. Raises `ValueError` when the grammar does not allow it."""
        ...


def preferred_library() -> str:
    """Return the library that is used by default; "" when none is installed."""
    return next((name for name in DIALECTS if importlib.util.find_spec(name)), "")


@kept(8_000_000)
def matcher_factory(library: str, tokenizer: Any, size: int) -> Callable[[str], Matcher]:
    """Return a function that makes a matcher from a grammar's text.

    `tokenizer` is a fast one of transformers; the model has `size` tokens. The text is in the library's dialect; a
    structural tag is JSON. Making a matcher raises `ValueError` or `RuntimeError` with the library's words when it
    refuses the grammar.
    """
    return _LIBRARIES[library](tokenizer, max(size, len(tokenizer)))


def masked_scores(matcher: Matcher, scores: Any) -> Any:
    """Return the scores with minus infinity for every token that may not come next."""
    flags = _flags(matcher.bits().to(scores.device), scores.shape[-1])
    return scores.masked_fill(~flags, -float("inf"))


def _flags(bits: Any, size: int) -> Any:
    """Return 32-bit words as flags, one for each of `size` tokens; tokens that the words leave out are not allowed."""
    torch = importlib.import_module("torch")
    # Bit 0 of word 0 is token 0, bit 0 of word 1 is token 32.
    flags = (bits[:, None] >> torch.arange(32, device=bits.device, dtype=bits.dtype)) & 1
    flags = flags.flatten()[:size].bool()
    return torch.nn.functional.pad(flags, (0, size - flags.shape[0]))


class _Llguidance:
    """llguidance's matcher of one answer."""

    def __init__(self, matcher: Any, torch: Any, end: int) -> None:
        self._matcher = matcher
        self._torch = torch
        self._end = end
        """The token that ends an answer; the library calls a matcher stopped as soon as nothing else may come."""
        self.ended = False

    def bits(self) -> Any:
        return self._torch.frombuffer(bytearray(self._matcher.compute_bitmask()), dtype=self._torch.int32)

    def take(self, token: int) -> None:
        if not self._matcher.consume_token(token):
            raise ValueError(f"the grammar cannot go on: {self._matcher.get_error()}")
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
    """The tokenizer that llguidance needs, with markers as plain text: a literal of a grammar matches no special token."""

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
    """xgrammar's matcher of one answer."""

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
            raise ValueError("the grammar cannot go on")


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
