"""Fast tokenizers of `tokenizers` and `transformers` in which every byte is a token, plus the given special tokens."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any


def byte_level(
    special: Sequence[str] = ("<call>", "</call>", "<|end|>"),
    *,
    vocabulary: Mapping[str, int] | None = None,
    merges: Sequence[tuple[str, str]] = (),
) -> Any:
    """Return a tokenizer of `tokenizers`. By default, every character outside ASCII takes several ids."""
    tokenizers = importlib.import_module("tokenizers")
    alphabet = {letter: id for id, letter in enumerate(sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()))}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=dict(vocabulary or alphabet), merges=list(merges)))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens([tokenizers.AddedToken(text, special=True) for text in special])
    return made


def byte_tokenizer(
    special: Sequence[str],
    *,
    eos: str,
    pad: str | None = None,
    template: str | None = None,
    words: Sequence[str] = (),
) -> Any:
    """Return the tokenizer. `eos` may be missing from `special`; `words`, with ids from 256, occur only in answers."""
    tokenizers, transformers = importlib.import_module("tokenizers"), importlib.import_module("transformers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    model = tokenizers.models.BPE(vocab={text: id for id, text in enumerate([*alphabet, *words])}, merges=[])
    bytewise = tokenizers.Tokenizer(model)
    bytewise.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = tokenizers.decoders.ByteLevel()
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=bytewise, eos_token=eos, pad_token=pad)
    wrapped.add_special_tokens({"additional_special_tokens": [token for token in special if token != eos]})
    wrapped.chat_template = template
    return wrapped
