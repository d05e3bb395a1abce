"""Handwritten grammars, or rows of a corpus with names of combinators, as a turn writes them in each dialect."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from engines import WRITERS

from unrender import Turn
from unrender import grammar as combinators
from unrender.errors import SchemaWarning
from unrender.format import Format
from unrender.grammar import Grammar, Node
from unrender.types import Request

DIALECTS = ("gbnf", "lark", "structural_tag")


def node_of(text: str) -> Node:
    """Return the node that a row writes with combinators, such as `sequence('a', optional('b'))`."""
    node: Node = eval(text, dict(vars(combinators)))
    return node


def grammar_of(row: str | Mapping[str, str]) -> Grammar:
    """Return the grammar of a row: its root, or its rules by name with the root under ""."""
    rules = {name: node_of(text) for name, text in ({"": row} if isinstance(row, str) else row).items()}
    return Grammar(rules.pop(""), rules)


def turn_of(grammar: Grammar | Node, request: Request | None = None, prefill: str = "") -> Turn:
    """Return a turn whose answer follows a grammar."""
    made = grammar if isinstance(grammar, Grammar) else Grammar(grammar)
    return Turn(prompt="", format=Format(), request=request or Request(), prefill=prefill, grammar=made)


def written(grammar: Grammar | Node, dialect: str) -> Any:
    """Return a grammar in a dialect, even if it doesn't enforce all of a schema."""
    with warnings.catch_warnings(action="ignore", category=SchemaWarning):
        return WRITERS[dialect](turn_of(grammar))
