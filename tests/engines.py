"""External engines that read our grammars. Tests skip engines that aren't installed."""

from __future__ import annotations

import importlib

from unrender import Turn
from unrender.turn import Healing
from unrender.verify.grammars import (
    END_TOKEN,
    Accepts,
    gbnf_reader,
    installed,
    lark_matcher,
    lark_reader,
    tag_reader,
)

__all__ = [
    "END_TOKEN",
    "Accepts",
    "converted_reader",
    "gbnf_reader",
    "installed",
    "lark_matcher",
    "lark_reader",
    "tag_reader",
]


def converted_reader(grammar: str) -> Accepts:
    """Compile GBNF with llguidance's converter. Only tests use it: its lexemes are never empty."""
    return lark_reader(importlib.import_module("llguidance.gbnf_to_lark").gbnf_to_lark(grammar))


def gbnf(turn: Turn | Healing) -> str:
    """Return the grammar for llama.cpp."""
    return turn.constraint("llama.cpp").grammar


def lark(turn: Turn | Healing) -> str:
    """Return the grammar for llguidance."""
    return turn.constraint("llguidance").grammar


def structural_tag(turn: Turn | Healing) -> str:
    """Return the structural tag, as JSON."""
    return turn.constraint("xgrammar").grammar


WRITERS = {"gbnf": gbnf, "lark": lark, "structural_tag": structural_tag}
"""The writer of a turn's grammar, by dialect."""
