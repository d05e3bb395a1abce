"""Nodes one after the other, flat."""

from __future__ import annotations

import pytest

from unrender.dialects.lowering.flattening import EMPTY, choice, flat, sequence
from unrender.dialects.lowering.stops import Rest
from unrender.nodes import (
    Atomic,
    Chars,
    Choice,
    Cut,
    End,
    Layout,
    Literal,
    Node,
    Optional,
    Ref,
    Role,
    Sequence,
    Tag,
    Tolerated,
    Until,
)

A, B, R = Literal("a"), Literal("b"), Ref("r")


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((), ()),
        ((A, B), (Literal("ab"),)),
        ((A, R, B), (A, R, B)),
        ((EMPTY, R, EMPTY), (R,)),
        ((A, EMPTY, B), (Literal("ab"),)),
        ((Layout("\n"), A), (Literal("\na"),)),
        ((Layout(""), R), (R,)),
        ((A, Layout(" ")), (Literal("a "),)),
        ((Sequence((A, Sequence((R, B)))), A), (A, R, Literal("ba"))),
        ((Tag(Role.NAME, A), Atomic(Sequence((B, R)))), (Literal("ab"), R)),
        ((A, Cut(), B, Tolerated(R), End()), (Literal("ab"),)),
        ((Optional(A), Choice((A, B)), Until(("<",))), (Optional(A), Choice((A, B)), Until(("<",)))),
    ],
    ids=repr,
)
def test_what_is_flat(parts: Rest, expected: Rest) -> None:
    """Sequences and tags are taken apart, literals joined, and what says nothing is left out; order stays."""
    assert flat(parts) == expected


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([], Literal("")),
        ([EMPTY, EMPTY], Literal("")),
        ([A], A),
        ([EMPTY, R], R),
        ([R, EMPTY], R),
        ([A, EMPTY, B], Literal("ab")),
        ([A, R, A, B], Sequence((A, R, Literal("ab")))),
        ([Sequence((R, A)), B], Sequence((R, Literal("ab")))),
        ([A, Sequence((B, R))], Sequence((Literal("ab"), R))),
        ([Chars((("a", "z"),)), A], Sequence((Chars((("a", "z"),)), A))),
    ],
    ids=repr,
)
def test_a_sequence_is_as_short_as_can_be(parts: list[Node], expected: Node) -> None:
    """Inner sequences are taken apart, literals joined; one part needs no sequence, no part is the empty text."""
    assert sequence(parts) == expected


def test_one_option_needs_no_choice() -> None:
    """Several options are a choice in their order; one is itself."""
    assert choice([A]) == A
    assert choice([B, A]) == Choice((B, A))
