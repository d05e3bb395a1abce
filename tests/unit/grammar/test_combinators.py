"""Tests of combinators, each of which returns one node. A string is a literal."""

from __future__ import annotations

import pytest
from cases import cases
from remainders import node_of

from unrender import GrammarError, nodes
from unrender.grammar import Role


@cases
def test_a_combinator_is_one_node(made: str, node: str) -> None:
    """Bounds and separators are passed on to the node."""
    assert node_of(made) == eval(node, vars(nodes) | {"Role": Role})


@cases
def test_a_mistake_is_named(made: str, message: str) -> None:
    """The error names the expected value and the value found."""
    with pytest.raises(GrammarError) as caught:
        node_of(made)

    assert str(caught.value) == message
