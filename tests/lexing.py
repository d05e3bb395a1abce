"""Lexemes that a lexer would confuse in the Lark grammar of a turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oracles.confusion import Confusion, confusions

from unrender import Turn
from unrender.dialects import Dialect
from unrender.dialects.context_free import lower
from unrender.dialects.lark import terminals
from unrender.dialects.remainder import Remainder
from unrender.grammar.expansion import Values


def remainder_of(turn: Turn) -> Remainder:
    """Return the writer of a turn's grammars."""
    return Remainder(
        format=turn.format, request=turn.request, prefill=turn.prefill, handmade=turn.grammar, limits=turn.limits
    )


def confusions_of(turn: Turn) -> Iterator[Confusion]:
    """Yield the confusions in the turn's Lark."""
    lowered = lower(remainder_of(turn).grammar(Values.NATIVE))
    yield from confusions(lowered, terminals(lowered))


def written_anew(turn: Turn, dialect: str) -> Any:
    """Return the turn's grammar in a dialect, written without caches."""
    return remainder_of(turn).written(Dialect(dialect)).said
