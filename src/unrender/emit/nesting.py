"""Gives functions that walk through grammars a named error for grammars that are nested too deep."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from unrender.errors import GrammarError

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
