"""Makes the constraint on an answer from format, request and begun text; turns that agree in these share it."""

from __future__ import annotations

import marshal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from unrender.cache import SHARED
from unrender.dialects.remainder import Answer, Dialect, Written, warn_of
from unrender.dialects.triggers import Trigger
from unrender.format import Format
from unrender.freezing import thawed
from unrender.grammar.handmade import Identity
from unrender.messages.wire import Request
from unrender.nodes import Grammar
from unrender.schema.weights import STANDARD, Budget


def constraint(
    format: Format,
    request: Request,
    begun: str,
    dialect: str,
    *,
    grammar: Grammar | None = None,
    budget: Budget | None = None,
) -> Any:
    """Return the constraint on the text after `begun`: a grammar, or a structural tag that the caller may change.

    With a `grammar` made by hand the format does not matter. Raises `GrammarError` as `Answer` does. Each keyword that
    is not enforced is a `SchemaWarning` every time, with the line of the code that called the caller.
    """
    answer = Answer(format=format, request=request, begun=begun, handmade=grammar, budget=budget or STANDARD)
    found: Written = _cached(answer, dialect, lambda: _immutable(answer, Dialect(dialect)), lambda one: len(one.said))
    warn_of(found.unsupported, stacklevel=5)
    return marshal.loads(found.said) if isinstance(found.said, bytes) else found.said  # noqa: S302 -- by `_immutable`


def triggers(format: Format, request: Request, begun: str) -> tuple[Trigger, ...]:
    """Return the triggers: how an engine notices that a call begins."""
    answer = Answer(format=format, request=request, begun=begun)
    found: tuple[Trigger, ...] = _cached(answer, "triggers", lambda: answer.triggers, len)
    return found


def _immutable(answer: Answer, dialect: Dialect) -> Written:
    """Return the answer in a dialect, a structural tag as bytes, which nobody can change."""
    written = answer.written(dialect)
    return written if isinstance(written.said, str) else replace(written, said=marshal.dumps(thawed(written.said)))


def _cached(answer: Answer, what: str, make: Callable[[], Any], weigh: Callable[[Any], int]) -> Any:
    request = answer.request.key
    if request is None:
        return make()
    grammar = Identity(answer.handmade) if answer.handmade else None
    return SHARED.made(("constraint", what, answer.format, grammar, request, answer.begun, answer.budget), make, weigh)
