"""Format, request and begun text → what constrains the answer, made once for all turns that agree in these."""

from __future__ import annotations

import marshal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from unrender.cache import Cache
from unrender.emit.answer import Answer, Dialect, Written, warn_of
from unrender.emit.triggers import Trigger
from unrender.format import Format
from unrender.grammar.budget import STANDARD, Budget
from unrender.grammar.handmade import Identity
from unrender.grammar.nodes import Grammar
from unrender.messages import Request

_kept: Cache[Any] = Cache(limit=64_000_000)
"""Weighed by characters."""


def constraint(
    format: Format,
    request: Request,
    begun: str,
    dialect: str,
    *,
    grammar: Grammar | None = None,
    budget: Budget | None = None,
) -> Any:
    """Return what may be generated after `begun` in a dialect: a grammar's text, or a structural tag of the caller's own.

    A `grammar` made by hand says it instead of the format. Raises `GrammarError` as `Answer` does, and warns with a `SchemaWarning` each time, on behalf of the caller's caller.
    """
    answer = Answer(format=format, request=request, begun=begun, handmade=grammar, budget=budget or STANDARD)
    found: Written = _made(answer, dialect, lambda: _written(answer, Dialect(dialect)), lambda one: len(one.said))
    warn_of(found.unsupported, stacklevel=5)
    return marshal.loads(found.said) if isinstance(found.said, bytes) else found.said  # noqa: S302 -- by `_written`


def triggers(format: Format, request: Request, begun: str) -> tuple[Trigger, ...]:
    """Return what tells an engine that a call begins."""
    answer = Answer(format=format, request=request, begun=begun)
    found: tuple[Trigger, ...] = _made(answer, "triggers", lambda: answer.triggers, len)
    return found


def _written(answer: Answer, dialect: Dialect) -> Written:
    """Return the answer in a dialect, a structural tag as bytes, which nobody can change."""
    written = answer.written(dialect)
    return written if isinstance(written.said, str) else replace(written, said=marshal.dumps(written.said))


def _made(answer: Answer, what: str, make: Callable[[], Any], weigh: Callable[[Any], int]) -> Any:
    request = answer.request.key
    if request is None:
        return make()
    grammar = Identity(answer.handmade) if answer.handmade else None
    return _kept.made((what, answer.format, grammar, request, answer.begun, answer.budget), make, weigh)
