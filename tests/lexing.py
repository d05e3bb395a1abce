"""An answer → what a lexer would confuse in its Lark."""

from __future__ import annotations

from collections.abc import Iterator

from unrender.emit.answer import Answer
from unrender.emit.confusion import Confusion, confusions
from unrender.emit.lark import terminals
from unrender.emit.lowering import lower
from unrender.grammar.expansion import Values


def confusions_of(answer: Answer) -> Iterator[Confusion]:
    """Yield the confusions in what `Answer.lark` writes."""
    lowered = lower(answer.grammar(Values.NATIVE))
    yield from confusions(lowered, terminals(lowered))
