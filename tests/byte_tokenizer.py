"""Special tokens → a fast tokenizer of transformers in which every byte is a token, beside these."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any


def byte_tokenizer(
    special: Sequence[str],
    *,
    eos: str,
    pad: str | None = None,
    template: str | None = None,
    words: Sequence[str] = (),
) -> Any:
    """Return the tokenizer; `eos` need not be among the special tokens. The `words`, ids from 256 on, are for answers alone."""
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
