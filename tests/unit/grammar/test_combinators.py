"""Combinators: each is one node, and a text stands for itself."""

from __future__ import annotations

import pytest
from cases import cases
from remainders import node_of

from unrender import GrammarError, nodes
from unrender import grammar as c
from unrender.grammar import Role
from unrender.nodes import Literal, Repeat

A = Literal("a")


@cases
def test_a_combinator_is_one_node(made: str, node: str) -> None:
    """Bounds and separators are those that were asked for."""
    assert node_of(made) == eval(node, vars(nodes) | {"Role": Role})


@cases
def test_a_mistake_is_named(made: str, message: str) -> None:
    """What was expected, and what was found."""
    with pytest.raises(GrammarError) as caught:
        node_of(made)

    assert str(caught.value) == message


def test_bounds_may_be_zero() -> None:
    """A repetition of nothing is none."""
    assert c.repeat("a", 0, 0) == Repeat(A, 0, 0)
    assert c.repeat("a", 2, 2) == Repeat(A, 2, 2)
