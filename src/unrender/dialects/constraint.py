"""A grammar in the dialect of an engine, with the settings that the engine needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from unrender.dialects.triggers import Trigger

Engine = Literal["llama.cpp", "llguidance", "sglang", "vllm", "xgrammar"]
"""An engine, or a library that engines use for constrained decoding."""


class Dialect(StrEnum):
    """A grammar language that engines support: GBNF, Lark or structural tags."""

    GBNF = "gbnf"
    LARK = "lark"
    STRUCTURAL_TAG = "structural_tag"


DIALECT_OF: Mapping[str, Dialect] = {
    "llama.cpp": Dialect.GBNF,
    "llguidance": Dialect.LARK,
    "sglang": Dialect.STRUCTURAL_TAG,
    "vllm": Dialect.STRUCTURAL_TAG,
    "xgrammar": Dialect.STRUCTURAL_TAG,
}
"""The dialect of each engine."""
ENGINE_OF: Mapping[str, Engine] = {"gbnf": "llama.cpp", "lark": "llguidance", "structural_tag": "xgrammar"}
"""Maps each dialect to one engine that uses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """The grammar of an answer in an engine's dialect, with the settings that the engine needs."""

    grammar: str
    """The grammar: GBNF for llama.cpp, Lark for llguidance, and a structural tag as JSON for all other engines."""
    triggers: tuple[Trigger, ...] = ()
    """The triggers of a lazy grammar, for llama.cpp. Empty if the grammar isn't lazy, i.e. applies from the first token."""
    stop: tuple[str, ...] = ()
    """Strings at which generation should end, as in `Turn.stop`."""
    preserved_tokens: tuple[str, ...] = ()
    """Special tokens that the engine must not strip from the output, as in `Turn.preserved_tokens`."""
