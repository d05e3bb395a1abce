"""A walk through a grammar that is nested too deep ends in a named error."""

from __future__ import annotations

from typing import Any

import pytest

from unrender.dialects.lowering.context_free import bounded_nesting
from unrender.errors import GrammarError


@bounded_nesting
def depth(nested: list[Any], *, counted: int = 0) -> int:
    """Return how many lists are inside each other."""
    return below(nested, counted)


def below(nested: list[Any], counted: int) -> int:
    return below(nested[0], counted + 1) if nested else counted


def test_what_fits_is_returned():
    """Arguments and result go through unchanged, keywords as well."""
    assert depth([[[]]], counted=10) == 12


def test_what_is_too_deep_is_a_grammar_error():
    """The interpreter's own error is not shown, nor kept as a cause."""
    nested: list[Any] = []
    for _ in range(5_000):
        nested = [nested]

    with pytest.raises(GrammarError) as refused:
        depth(nested)

    assert str(refused.value) == "grammar: nested too deep to be written; give its inner parts rules of their own"
    assert refused.value.__suppress_context__


def test_other_errors_stay_as_they_are():
    """Only the depth is renamed."""
    with pytest.raises(TypeError, match="not subscriptable"):
        depth(7)


def test_the_function_keeps_its_name():
    """Documentation and tracebacks show the function, not what is around it."""
    assert (depth.__name__, depth.__doc__) == ("depth", "Return how many lists are inside each other.")
