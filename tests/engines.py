"""GBNF → does llguidance accept an answer, by its own conversion? Only tests ask: its lexemes are never empty."""

from __future__ import annotations

import importlib

from unrender.verify.grammars import Accepts, lark_reader


def converted_reader(grammar: str) -> Accepts:
    """Compile GBNF with llguidance's converter."""
    return lark_reader(importlib.import_module("llguidance.gbnf_to_lark").gbnf_to_lark(grammar))
