"""Nodes: what is below them, what they refer to, and what a run of calls generates."""

from __future__ import annotations

import pytest

from unrender.grammar import Node, Role
from unrender.nodes import (
    MARKS,
    Atomic,
    Choice,
    Cut,
    End,
    JsonValue,
    Literal,
    Negate,
    Optional,
    Peek,
    Ref,
    Repeat,
    Sequence,
    Tag,
    Until,
    children,
    references,
    rewrite,
    walk,
)

A, B, R = Literal("a"), Literal("b"), Ref("r")


@pytest.mark.parametrize(
    ("node", "below"),
    [
        (A, []),
        (Until(("a",)), []),
        (JsonValue({"type": "null"}), []),
        (Sequence((A, B)), [A, B]),
        (Choice((A, B)), [A, B]),
        (Optional(A), [A]),
        (Repeat(A), [A]),
        (Repeat(A, 0, None, B), [A, B]),
        (Peek(A), [A]),
        (Negate(A), [A]),
        (Tag(Role.NAME, A), [A]),
        (Atomic(A), [A]),
        (End(), []),
        (Cut(), []),
        (R, []),
    ],
)
def test_children_are_the_nodes_directly_below(node: Node, below: list[Node]) -> None:
    """A separator counts, a schema does not."""
    assert list(children(node)) == below
    assert list(walk(node)) == [node, *below]
    assert rewrite(node, lambda found: found) == node


def test_nodes_are_walked_in_the_order_of_the_text() -> None:
    """Parents first."""
    inner, repeated = Choice((B, R)), Repeat(R, 0, None, A)
    node = Sequence((A, inner, repeated))

    assert list(walk(node)) == [node, A, inner, B, R, repeated, R, A]
    assert references(Sequence((Ref("x"), Choice((Ref("y"), Ref("x")))))) == ["x", "y", "x"]
    assert references(R) == ["r"]
    assert references(A) == []


def test_children_are_rewritten_first() -> None:
    """What comes of them is what a change is shown."""
    seen = []

    def change(node: Node) -> Node:
        seen.append(node)
        return B if node == A else node

    assert rewrite(Sequence((A, Repeat(A, 1, 2, A))), change) == Sequence((B, Repeat(B, 1, 2, B)))
    assert seen == [A, A, A, Repeat(B, 1, 2, B), Sequence((B, Repeat(B, 1, 2, B)))]


def test_marks_are_noncharacters() -> None:
    """There are 32."""
    assert (len(MARKS), MARKS[0], MARKS[-1]) == (32, "\ufdd0", "\ufdef")
