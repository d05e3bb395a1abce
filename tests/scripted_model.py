"""A transformers model in a folder that always writes the same answer, whatever the prompt.

Strategy: each piece is a token, and the next token depends only on the last one. Such a model needs no training: the
embedding distinguishes tokens, the layers add nothing, and the head gives each token its successor. Everything else is
the library's own.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from byte_tokenizer import byte_tokenizer


def write_scripted_model(
    folder: Path, template: str, special: Sequence[str], *, last: str, pieces: Sequence[str]
) -> None:
    """Write model and tokenizer.

    `last` is the last token of every prompt. The last piece, a special token, ends the answer.
    """
    torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
    tokenizer = byte_tokenizer(special, eos=pieces[-1], template=template)
    tokenizer.add_tokens([piece for piece in pieces if piece not in special])
    tokenizer.save_pretrained(folder)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=len(tokenizer), intermediate_size=1, num_hidden_layers=1,
        num_attention_heads=1, head_dim=2, max_position_embeddings=4096, bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config)
    ids = tokenizer.convert_tokens_to_ids([last, *pieces])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.model.norm.weight.fill_(1.0)
        model.model.embed_tokens.weight.copy_(torch.eye(len(tokenizer)))
        model.lm_head.weight[tokenizer.eos_token_id] = 0.1  # The successor of any other token.
        for token, following in pairwise(ids):
            model.lm_head.weight[following, token] = 1.0
    model.save_pretrained(folder)
