"""Asks the engine that reads a grammar whether it accepts an answer.

Rules: engines are imported when they are asked, never before; each token is a byte, so that no vocabulary is needed.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

Accepts = Callable[[str], bool]
END_TOKEN = 256
"""The token that ends the output, after one token for each byte."""


def installed(engine: str) -> bool:
    """Return whether `engine` can be imported."""
    return importlib.util.find_spec(engine) is not None


def lark_reader(grammar: str) -> Accepts:
    """Return a function that tests texts with llguidance. Raises `ValueError` with its words for a refusal."""
    compiled = lark_matcher(grammar)

    def accepts(text: str) -> bool:
        walker, data = compiled.deep_copy(), text.encode()
        return bool(walker.try_consume_tokens(list(data)) == len(data) and walker.is_accepting())

    return accepts


def lark_matcher(grammar: str) -> Any:
    """Return llguidance's matcher for Lark, with one byte as a token.

    Raises `ValueError` with its words when it refuses the grammar.
    """
    matcher = importlib.import_module("llguidance").LLMatcher
    compiled = matcher(_tokenizer(), matcher.grammar_from_lark(grammar), log_level=0)
    if compiled.is_error():
        raise ValueError(compiled.get_error())
    return compiled


def gbnf_reader(grammar: str) -> Accepts:
    """Return a function that tests texts with xgrammar, which reads GBNF as EBNF.

    llguidance's own conversion of GBNF into Lark is not a judge: its lexemes are never empty.
    """
    return _xgrammar_reader(importlib.import_module("xgrammar").Grammar.from_ebnf(grammar))


def tag_reader(tag: Mapping[str, Any]) -> Accepts:
    """Return a function that tests texts with xgrammar's structural tag."""
    return _xgrammar_reader(importlib.import_module("xgrammar").Grammar.from_structural_tag(json.dumps(tag)))


def _xgrammar_reader(grammar: Any) -> Accepts:
    xgrammar = importlib.import_module("xgrammar")
    vocabulary = xgrammar.TokenizerInfo(list(_BYTES), stop_token_ids=[END_TOKEN])
    compiled = xgrammar.GrammarCompiler(vocabulary).compile_grammar(grammar)

    def accepts(text: str) -> bool:
        matcher = xgrammar.GrammarMatcher(compiled)
        return bool(matcher.accept_string(text) and matcher.is_completed())

    return accepts


_BYTES = (*(bytes([byte]) for byte in range(256)), b"<end>")


class _ByteTokenizer:
    """What llguidance asks of a tokenizer."""

    eos_token_id = END_TOKEN
    bos_token_id = None
    special_token_ids = (END_TOKEN,)
    tokens = _BYTES

    def __call__(self, text: str | bytes) -> list[int]:
        return list(text if isinstance(text, bytes) else text.encode())


@cache
def _tokenizer() -> Any:
    llguidance = importlib.import_module("llguidance")
    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(_ByteTokenizer()), eos_token=END_TOKEN)
