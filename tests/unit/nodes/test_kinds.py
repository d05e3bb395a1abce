"""All kinds of nodes are in the union, so that mypy finds the walkers that lack a new one."""

from __future__ import annotations

import inspect
from typing import get_args

import pytest

from unrender import GrammarError, nodes


def test_every_kind_is_in_the_union() -> None:
    """Each class of the module is a kind of node, except for grammars, rules, roles and the base class of leaves."""
    classes = {kind for _, kind in inspect.getmembers(nodes, inspect.isclass) if kind.__module__ == nodes.__name__}

    assert classes - set(get_args(nodes.Node)) == {nodes.Grammar, nodes.Leaf, nodes.Role, nodes.Rules}


def test_a_kind_that_holds_nodes_is_no_leaf() -> None:
    """A kind is either a leaf, a reference, or has nodes below it."""
    leaves = {kind for kind in get_args(nodes.Node) if issubclass(kind, nodes.Leaf)}

    assert not leaves & nodes._BELOW.keys()
    assert leaves | nodes._BELOW.keys() | {nodes.Ref} == set(get_args(nodes.Node))


def test_a_node_out_of_place_is_named() -> None:
    """The error names the kind of the node."""
    with pytest.raises(GrammarError, match="Cut has no words"):
        raise nodes.refusal_of(nodes.Cut(), "has no words")
