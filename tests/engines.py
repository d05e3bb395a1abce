"""Grammar text → does the engine that reads this dialect accept an answer?

Each reader compiles a grammar once and is then asked about texts. An engine that is not installed is no reader.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

Accepts = Callable[[str], bool]
END = 256
"""The token that ends the output, behind one token for each byte."""


class _Bytes:
    """A tokenizer with one token for each byte."""

    eos_token_id = END
    bos_token_id = None
    special_token_ids = (END,)
    tokens = (*(bytes([byte]) for byte in range(256)), b"<end>")

    def __call__(self, text: str | bytes) -> list[int]:
        return list(text if isinstance(text, bytes) else text.encode())


@cache
def byte_tokenizer() -> Any:
    """Return llguidance's tokenizer with one token for each byte."""
    llguidance = importlib.import_module("llguidance")
    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(_Bytes()), eos_token=END)


def lark_reader(grammar: str) -> Accepts:
    """Compile Lark with llguidance."""
    matcher = lark_matcher(grammar)

    def accepts(text: str) -> bool:
        walker = matcher.deep_copy()
        taken = walker.try_consume_tokens(list(text.encode()))
        return bool(taken == len(text.encode()) and walker.is_accepting())

    return accepts


def lark_matcher(grammar: str) -> Any:
    """Return llguidance's matcher for a Lark grammar; raises `ValueError` with its words when it refuses."""
    matcher = importlib.import_module("llguidance").LLMatcher
    found = matcher(byte_tokenizer(), matcher.grammar_from_lark(grammar), log_level=0)
    if found.is_error():
        raise ValueError(found.get_error())
    return found


def converted_reader(grammar: str) -> Accepts:
    """Compile GBNF with llguidance's converter."""
    return lark_reader(importlib.import_module("llguidance.gbnf_to_lark").gbnf_to_lark(grammar))


def ebnf_reader(grammar: str) -> Accepts:
    """Compile GBNF with xgrammar, whose EBNF it is."""
    return _xgrammar_reader(importlib.import_module("xgrammar").Grammar.from_ebnf(grammar))


def tag_reader(tag: Mapping[str, Any]) -> Accepts:
    """Compile a structural tag with xgrammar."""
    return _xgrammar_reader(importlib.import_module("xgrammar").Grammar.from_structural_tag(json.dumps(tag)))


def _xgrammar_reader(grammar: Any) -> Accepts:
    xgrammar = importlib.import_module("xgrammar")
    compiled = xgrammar.GrammarCompiler(_xgrammar_vocabulary()).compile_grammar(grammar)

    def accepts(text: str) -> bool:
        matcher = xgrammar.GrammarMatcher(compiled)
        return bool(matcher.accept_string(text) and matcher.is_completed())

    return accepts


@cache
def _xgrammar_vocabulary() -> Any:
    info = importlib.import_module("xgrammar").TokenizerInfo
    return info([*(bytes([byte]) for byte in range(256)), b"<end>"], stop_token_ids=[END])


def installed(engine: str) -> bool:
    """Return whether `engine` can be imported."""
    return importlib.util.find_spec(engine) is not None
