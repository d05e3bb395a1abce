"""Flattens sequences and choices of nodes.

Rules: what says nothing to an emitter is left out; neighbouring literals are one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from unrender import nodes
from unrender.dialects.lowering.stops import Rest
from unrender.errors import GrammarError
from unrender.nodes import Choice, Literal, Node, Sequence

EMPTY = Literal("")


def flat(parts: Rest) -> Rest:
    """Return `parts` as a flat list.

    Sequences and tags are taken apart, neighbouring literals are joined, and nodes without text are left out.
    """
    found: list[Node] = []
    queue = list(reversed(parts))
    while queue:
        part = queue.pop()
        match part:
            case Sequence(inner):
                queue.extend(reversed(inner))
            case nodes.Tag(_, inner) | nodes.Atomic(inner):
                queue.append(inner)
            case nodes.Cut() | nodes.Tolerated() | nodes.End():
                continue
            case Literal(text) | nodes.Layout(text):
                if found and isinstance(last := found[-1], Literal):
                    found[-1] = Literal(last.text + text)
                elif text:
                    found.append(Literal(text))
            case _:
                found.append(part)
    return tuple(found)


def sequence(parts: list[Node]) -> Node:
    """Return `parts` as a sequence. Nested sequences are merged and neighbouring literals joined."""
    merged: list[Node] = []
    for item in (item for part in parts for item in (part.parts if isinstance(part, Sequence) else (part,))):
        if not isinstance(item, Literal):
            merged.append(item)
        elif merged and isinstance(last := merged[-1], Literal):
            merged[-1] = Literal(last.text + item.text)
        elif item.text:
            merged.append(item)
    if not merged:
        return EMPTY
    return merged[0] if len(merged) == 1 else Sequence(tuple(merged))


def choice(options: list[Node]) -> Node:
    """Return a node for one of `options`."""
    return options[0] if len(options) == 1 else Choice(tuple(options))


P = ParamSpec("P")
R = TypeVar("R")


def bounded_nesting(write: Callable[P, R]) -> Callable[P, R]:
    """Return `write` with a `GrammarError` in place of the recursion error for nodes that are nested too deep."""

    @wraps(write)
    def bounded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return write(*args, **kwargs)
        except RecursionError:
            raise GrammarError(
                "grammar: nested too deep to be written; give its inner parts rules of their own"
            ) from None

    return bounded
