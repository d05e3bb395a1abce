"""External engines that read our grammars; a test skips what is not installed."""

from __future__ import annotations

import importlib

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
    """Compile GBNF with llguidance's converter. Only tests ask it: its lexemes are never empty."""
    return lark_reader(importlib.import_module("llguidance.gbnf_to_lark").gbnf_to_lark(grammar))
