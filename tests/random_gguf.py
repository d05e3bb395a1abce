"""A GGUF file with a chat template and a tiny random model, which a real llama.cpp loads in a moment.

The model writes nonsense, but its tokens (including special tokens), sampling and grammars are llama.cpp's own.
"""

from __future__ import annotations

import random
import struct
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_WIDTH, _LAYERS, _HEADS, _INNER, _CONTEXT = 64, 1, 4, 64, 4096
_UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9
_PLAIN, _UNKNOWN, _CONTROL, _OWN, _BYTE = 1, 2, 3, 4, 6
"""Kinds of tokens. Engines strip control tokens by default."""
_ALIGNED = 32


def write_gguf(
    path: Path, template: str, control: Sequence[str], own: Sequence[str], *, eos: str, bos: bool = False
) -> None:
    """Write a model whose vocabulary is the bytes, printable ASCII, and the given special tokens."""
    ordinary = ["\u2581", *map(chr, range(33, 127))]
    tokens = ["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256)), *ordinary, *control, *own]
    kinds = [_UNKNOWN, _CONTROL]
    for kind, count in ((_BYTE, 256), (_PLAIN, len(ordinary)), (_CONTROL, len(control)), (_OWN, len(own))):
        kinds += [kind] * count
    about = {
        "general.architecture": (_STRING, "llama"),
        "general.name": (_STRING, "random"),
        "llama.context_length": (_UINT32, _CONTEXT),
        "llama.embedding_length": (_UINT32, _WIDTH),
        "llama.block_count": (_UINT32, _LAYERS),
        "llama.feed_forward_length": (_UINT32, _INNER),
        "llama.attention.head_count": (_UINT32, _HEADS),
        "llama.attention.head_count_kv": (_UINT32, _HEADS),
        "llama.attention.layer_norm_rms_epsilon": (_FLOAT32, 1e-5),
        "llama.rope.dimension_count": (_UINT32, _WIDTH // _HEADS),
        "llama.vocab_size": (_UINT32, len(tokens)),
        "tokenizer.ggml.model": (_STRING, "llama"),
        "tokenizer.ggml.tokens": (_ARRAY, (_STRING, tokens)),
        "tokenizer.ggml.scores": (_ARRAY, (_FLOAT32, [-1.0 if kind == _PLAIN else 0.0 for kind in kinds])),
        "tokenizer.ggml.token_type": (_ARRAY, (_INT32, kinds)),
        "tokenizer.ggml.bos_token_id": (_UINT32, 1),
        "tokenizer.ggml.eos_token_id": (_UINT32, tokens.index(eos)),
        "tokenizer.ggml.unknown_token_id": (_UINT32, 0),
        "tokenizer.ggml.add_bos_token": (_BOOL, bos),
        "tokenizer.ggml.add_space_prefix": (_BOOL, False),
        "tokenizer.chat_template": (_STRING, template),
    }
    shapes = _shapes(len(tokens))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(about))
    head += b"".join(_text(key) + struct.pack("<I", kind) + _value(kind, value) for key, (kind, value) in about.items())
    infos, data, offset = [], [], 0
    dice = random.Random(0)
    for name, shape in shapes.items():
        infos.append(_text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, offset))
        numbers = _numbers(shape, dice)
        data.append(numbers)
        offset += len(numbers)
    head += b"".join(infos)
    path.write_bytes(head + b"\0" * (-len(head) % _ALIGNED) + b"".join(data))


def _shapes(size: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (_WIDTH, size),
        "output_norm.weight": (_WIDTH,),
        "output.weight": (_WIDTH, size),
    }
    for layer in range(_LAYERS):
        at = f"blk.{layer}."
        shapes |= {f"{at}{name}_norm.weight": (_WIDTH,) for name in ("attn", "ffn")}
        shapes |= {f"{at}attn_{name}.weight": (_WIDTH, _WIDTH) for name in ("q", "k", "v", "output")}
        shapes |= {f"{at}ffn_{name}.weight": (_WIDTH, _INNER) for name in ("gate", "up")}
        shapes[f"{at}ffn_down.weight"] = (_INNER, _WIDTH)
    return shapes


def _numbers(shape: tuple[int, ...], dice: random.Random) -> bytes:
    count = shape[0] * (shape[1] if len(shape) > 1 else 1)
    norm = len(shape) == 1
    return array("f", (1.0 if norm else dice.uniform(-0.1, 0.1) for _ in range(count))).tobytes()


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(kind: int, value: Any) -> bytes:
    if kind == _ARRAY:
        inner, items = value
        return struct.pack("<IQ", inner, len(items)) + b"".join(_value(inner, item) for item in items)
    if kind == _STRING:
        return _text(value)
    return struct.pack({_UINT32: "<I", _INT32: "<i", _FLOAT32: "<f", _BOOL: "<?"}[kind], value)
