"""Tokenizers of real models from files at hand, with the special tokens of any template added."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from unrender import ChatTemplate
from unrender.rendering.loading import read_metadata

MARKER = re.compile(r"<\|?[\w/|\"=:.▁-]+\|?>|<｜[^｜]+｜>|\[/?[A-Z_]+\]|\]~!?b?\[|\]~b\]|\[e~\[|\[gMASK\]")
"""Texts in templates that are probably special tokens."""
BOS, EOS = "<s>", "</s>"
_CONTROL = 3
"""The type of special tokens in GGUF."""
_KEYS = ("tokenizer.ggml.tokens", "tokenizer.ggml.merges", "tokenizer.ggml.token_type")


def special_tokens(template: ChatTemplate, source: str) -> list[str]:
    """Return all texts in a template's source and format that look like special tokens."""
    return sorted({*MARKER.findall(source), *filter(str.strip, template.format.preserved_tokens), BOS, EOS})


@cache
def _vocabulary(path: Path) -> list[Any]:
    return [*map(read_metadata(path, lambda key: key in _KEYS).__getitem__, _KEYS)]


def from_gguf(path: Path, special: Iterable[str] = ()) -> Any:
    """Return the byte-level tokenizer of a GGUF file. Each digit is a token of its own."""
    words, merges, kinds = _vocabulary(path)
    vocabulary = {word: id for id, word in enumerate(words)}
    made: Any = tokenizers.Tokenizer(
        models.BPE(vocab=vocabulary, merges=[tuple(merge.split(" ", 1)) for merge in merges])
    )
    digits = pre_tokenizers.Digits(individual_digits=True)
    made.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.decoder = decoders.ByteLevel()
    own = [word for word, kind in zip(words, kinds, strict=True) if kind == _CONTROL]
    return with_tokens(made, (*own, *special))


def from_json(path: Path, special: Iterable[str] = ()) -> Any:
    """Return the tokenizer of a `tokenizer.json`."""
    return with_tokens(tokenizers.Tokenizer.from_str(json.dumps(json.loads(path.read_text("utf-8")))), special)


def with_tokens(tokenizer: Any, special: Iterable[str]) -> Any:
    """Add special tokens to a tokenizer, and return it."""
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in dict.fromkeys(special)])
    return tokenizer
