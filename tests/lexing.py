"""A turn → what a lexer would confuse in its Lark."""

from __future__ import annotations

from collections.abc import Iterator

from oracles.confusion import Confusion, confusions

from unrender import Turn
from unrender.dialects.lark import terminals
from unrender.dialects.lowering.context_free import lower
from unrender.dialects.remainder import Remainder
from unrender.grammar.expansion import Values


def remainder_of(turn: Turn) -> Remainder:
    """Return what writes the grammars of a turn."""
    return Remainder(
        format=turn.format, request=turn.request, begun=turn.begun, handmade=turn.grammar, limits=turn.limits
    )


def confusions_of(turn: Turn) -> Iterator[Confusion]:
    """Yield the confusions in the turn's Lark."""
    lowered = lower(remainder_of(turn).grammar(Values.NATIVE))
    yield from confusions(lowered, terminals(lowered))
