"""How nodes begin and go on, and which of them a lexer would confuse."""

from __future__ import annotations

import pytest

from unrender.dialects.lowering import forks
from unrender.dialects.lowering.forks import DEPTH, Forks, Heads
from unrender.dialects.lowering.openness import Openness
from unrender.limits import MOST_WAYS
from unrender.nodes import (
    Atomic,
    Chars,
    Choice,
    JsonValue,
    Layout,
    Literal,
    Node,
    Optional,
    Ref,
    Repeat,
    Role,
    Sequence,
    Tag,
    Tolerated,
    Until,
)

A, B, AB, X = Literal("a"), Literal("b"), Literal("ab"), Literal("x")
TEXT = Until(("<x>",))
DIGITS = Chars((("0", "9"),), minimum=0, maximum=None)
MANY = Choice(tuple(Literal(f"<{at}>") for at in range(MOST_WAYS + 1)))
RULES: dict[str, Node] = {
    "a": A,
    "x": X,
    "y": Literal("y"),
    "xy": Literal("xy"),
    "list": Sequence((A, Optional(Sequence((B, Ref("list")))))),
    "texts": Choice((TEXT, A)),
}


def known(**rules: Node) -> Forks:
    every = {**RULES, **rules}
    return Forks(every, Openness(every))


def shown(heads: Heads) -> set[str]:
    """Return the first literals, `…` for free text."""
    return {"…" if isinstance(head, Until) else head.text for head in heads}


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (A, {"a"}),
        (Literal(""), set()),
        (Layout("\n"), {"\n"}),
        (Chars((("0", "9"),)), set()),
        (JsonValue(), set()),
        (TEXT, {"…"}),
        (Sequence((A, B)), {"ab"}),
        (Sequence((Optional(A), B)), {"a", "b"}),
        (Sequence((DIGITS, B)), {"b"}),
        (Sequence((TEXT, B)), {"…"}),
        (Tag(Role.NAME, A), {"a"}),
        (Atomic(Sequence((A, Ref("x")))), {"a"}),
        (Optional(A), {"a"}),
        (Repeat(A, 0, None, B), {"a"}),
        (Repeat(Optional(A), 1, None, B), {"a", "b"}),
        (Repeat(Optional(A), 1), {"a"}),
        (Choice((A, Tolerated(X), B)), {"a", "b"}),
        (Ref("list"), {"a"}),
        (Ref("texts"), {"…", "a"}),
        (Ref("nowhere"), set()),
        (Choice(MANY.options[:MOST_WAYS]), {f"<{at}>" for at in range(MOST_WAYS)}),
        (MANY, {""}),
    ],
    ids=lambda value: "" if isinstance(value, set) else repr(value)[:60],
)
def test_how_a_node_begins(node: Node, expected: set[str]) -> None:
    """Its first literals, also those after what may be empty; too many of them are none."""
    assert shown(known().heads(node)) == expected


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (A, set()),
        (TEXT, set()),
        (Optional(A), {"a"}),
        (Optional(Sequence((A, Optional(Ref("x"))))), {"a", "x"}),
        (Tag(Role.NAME, Optional(A)), {"a"}),
        (Atomic(Optional(A)), {"a"}),
        (Repeat(A), {"a"}),
        (Repeat(A, 1, 1), set()),
        (Repeat(A, 0, 1), {"a"}),
        (Repeat(A, 1, 2), {"a"}),
        (Repeat(A, 1, None, B), {"ba"}),
        (Repeat(Sequence((A, Optional(Ref("x")))), 1, 1), {"x"}),
        (Sequence((A, Optional(B))), {"b"}),
        (Sequence((Optional(A), B)), set()),
        (Sequence((Optional(A), Optional(B))), {"a", "b"}),
        (Sequence((Repeat(A, 1), Optional(B))), {"a", "b"}),
        (Choice((A, Sequence((A, Optional(B))))), {"b"}),
        (Choice((X, Optional(B))), {"x", "b"}),
        (Choice((A, Tolerated(Optional(B)))), set()),
        (Ref("list"), {"b"}),
        (Ref("a"), set()),
    ],
    ids=lambda value: "" if isinstance(value, set) else repr(value),
)
def test_how_a_node_goes_on_where_it_might_have_ended(node: Node, expected: set[str]) -> None:
    """What may be left out at its end, and the next round of a repetition."""
    assert shown(known().ends(node)) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([A, B], False),
        ([A, AB], True),
        ([AB, X, A], True),
        ([A, A], False),
        ([Sequence((A, Ref("x"))), Sequence((A, Ref("y")))], False),
        ([Sequence((A, Ref("x"))), Sequence((A, Ref("xy")))], True),
        ([A, Sequence((A, Ref("x")))], True),
        ([Ref("a"), Sequence((A, Ref("x")))], True),
        ([TEXT, A], True),
        ([TEXT], False),
        ([Chars((("0", "9"),)), A], False),
        ([Repeat(A, 1, None, B), Literal("abx")], True),
        ([Repeat(A, 1, None, B), Literal("bx")], False),
        ([], False),
    ],
    ids=repr,
)
def test_what_a_lexer_would_confuse(options: list[Node], expected: bool) -> None:
    """A literal that begins a longer one, anything beside free text, and what parts late after the same literal."""
    found = known()

    assert found.confused(options) is expected
    assert not found.unsure


@pytest.mark.parametrize(
    ("some", "others", "expected"),
    [
        (A, B, False),
        (A, AB, True),
        (AB, A, True),
        (A, Chars((("0", "9"),)), False),
        (TEXT, A, True),
        (A, TEXT, True),
        (Sequence((A, Ref("x"))), Sequence((A, Ref("y"))), False),
        (Sequence((A, Ref("x"))), Sequence((A, Ref("xy"))), True),
    ],
    ids=repr,
)
def test_what_clashes(some: Node, others: Node, expected: bool) -> None:
    """Of two sets of beginnings, one longer than another, or free text; nothing clashes with no beginning."""
    found = known()

    assert found.clash(found.heads(some), found.heads(others)) is expected


@pytest.mark.parametrize(("shared", "expected"), [(1, False), (DEPTH, False), (DEPTH + 1, True)])
def test_so_many_shared_literals_are_looked_through(shared: int, expected: bool) -> None:
    """Two chains of the same literals that part at last are told apart; what parts later is taken for confused."""
    chains: dict[str, Node] = {}
    for side in "pq":
        for at in range(shared):
            chains[f"{side}{at}"] = Sequence((Literal(f"<{at}>"), Ref(f"{side}{at + 1}")))
        chains[f"{side}{shared}"] = Literal(side)

    assert known(**chains).confused([Ref("p0"), Ref("q0")]) is expected


def test_too_many_beginnings_make_unsure() -> None:
    """They clash with nothing, and that is said; alone they are no question."""
    alone, beside, clashing = known(), known(), known()

    assert (alone.confused([MANY]), alone.unsure) == (False, False)
    assert (beside.confused([MANY, A]), beside.unsure) == (False, True)
    assert (clashing.clash(clashing.heads(A), clashing.heads(MANY)), clashing.unsure) == (False, True)


def test_comparisons_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once more beginnings were compared than allowed, nothing is confused any more, and that is said."""
    monkeypatch.setattr(forks, "MOST_COMPARED", 3)
    found = known()

    assert found.confused([A, AB])
    assert not found.unsure
    assert found.confused([A, AB])
    assert found.unsure
    assert not found.confused([A, AB])
    assert not found.clash(found.heads(A), found.heads(AB))


def test_a_rule_may_be_added() -> None:
    """What is added is known from then on, a reference to itself included."""
    found = known()

    found.add("loop", Sequence((Optional(A), Optional(Sequence((B, Ref("loop")))))))

    assert shown(found.heads(Ref("loop"))) == {"a", "b"}
    assert shown(found.ends(Ref("loop"))) == {"a", "b"}
    assert found.confused([Ref("loop"), AB])
