"""Which nodes may be empty, which end in text that only what follows will stop, and which rules are in circles."""

from __future__ import annotations

import pytest

from unrender.dialects.lowering.openness import Openness, generated, recursive_rules, settle, users_of
from unrender.nodes import (
    Atomic,
    Chars,
    Choice,
    Cut,
    End,
    JsonValue,
    Layout,
    Literal,
    Mark,
    Negate,
    Node,
    Optional,
    Peek,
    Ref,
    Repeat,
    Role,
    Sequence,
    Tag,
    Tolerated,
    Until,
)

A, EMPTY, X = Literal("a"), Literal(""), Until(("<x>",))
RULES: dict[str, Node] = {
    "a": A,
    "empty": EMPTY,
    "up": Ref("empty"),
    "text": Sequence((A, X)),
    "over": Ref("text"),
    "list": Sequence((A, Optional(Ref("list")))),
    "texts": Choice((Ref("text"), Sequence((Ref("texts"), Until(("<y>",)))))),
}
KNOWN = Openness(RULES)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (A, False),
        (EMPTY, True),
        (Layout("\n"), False),
        (Layout(""), True),
        (Chars((("a", "z"),)), False),
        (Chars((("a", "z"),), minimum=0), True),
        (X, False),
        (JsonValue(), False),
        (Optional(A), True),
        (Repeat(A), True),
        (Repeat(A, 1), False),
        (Repeat(EMPTY, 1), True),
        (Sequence(()), True),
        (Sequence((EMPTY, A)), False),
        (Sequence((EMPTY, Optional(A))), True),
        (Choice((A, EMPTY)), True),
        (Choice((A, A)), False),
        (Choice((A, Tolerated(EMPTY))), False),
        (Tag(Role.NAME, A), False),
        (Tag(Role.NAME, EMPTY), True),
        (Atomic(EMPTY), True),
        (Atomic(A), False),
        (Ref("a"), False),
        (Ref("up"), True),
        (Ref("list"), False),
        (Ref("nowhere"), False),
        *((node, True) for node in (Cut(), End(), Mark("\ufdd0"), Tolerated(A), Peek(A), Negate(A))),
    ],
    ids=repr,
)
def test_what_may_be_empty(node: Node, expected: bool) -> None:
    """A node is nullable where it generates the empty text; what is only read generates nothing."""
    assert KNOWN.nullable(node) is expected


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (A, set()),
        (Chars((("a", "z"),)), set()),
        (JsonValue(), set()),
        (X, {("<x>",)}),
        (Tag(Role.CONTENT, X), {("<x>",)}),
        (Atomic(X), {("<x>",)}),
        (Optional(X), {("<x>",)}),
        (Repeat(Sequence((A, X))), {("<x>",)}),
        (Choice((X, A, Until(("<y>", "<z>")))), {("<x>",), ("<y>", "<z>")}),
        (Choice((A, Tolerated(X))), set()),
        (Sequence((X, A)), set()),
        (Sequence((A, X)), {("<x>",)}),
        (Sequence((X, Optional(A))), {("<x>",)}),
        (Sequence((X, Until(("<y>",)))), {("<x>",), ("<y>",)}),  # The second text may be empty.
        (Sequence((X, Optional(Until(("<y>",))))), {("<x>",), ("<y>",)}),
        (Ref("over"), {("<x>",)}),
        (Ref("texts"), {("<x>",), ("<y>",)}),
        (Ref("nowhere"), set()),
    ],
    ids=lambda value: "" if isinstance(value, set) else repr(value),
)
def test_what_ends_in_text(node: Node, expected: set[tuple[str, ...]]) -> None:
    """The stops of each text with which a node may end, also where what follows the text may be empty."""
    assert KNOWN.endings(node) == expected


def test_a_rule_may_be_added() -> None:
    """What is added is known from then on, a reference to itself included."""
    known = Openness({"text": X})

    known.add("loop", Sequence((Ref("text"), Optional(Sequence((A, Ref("loop")))))))
    known.add("nothing", Optional(A))

    assert known.endings(Ref("loop")) == {("<x>",)}
    assert (known.nullable(Ref("nothing")), known.nullable(Ref("loop"))) == (True, False)


def test_tolerated_options_are_not_generated() -> None:
    """Of the options, those that are only read are left out, the others keep their order."""
    assert generated((A, Tolerated(X), EMPTY)) == [A, EMPTY]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({"a": Ref("b"), "b": A}, set()),
        ({"a": Ref("a")}, {"a"}),
        ({"a": Ref("b"), "b": Ref("a"), "c": Ref("a"), "d": A}, {"a", "b"}),
        ({"a": Sequence((Ref("a"), Ref("b"))), "b": Ref("c"), "c": Ref("c"), "d": Ref("c")}, {"a", "b", "c"}),
        ({"a": Sequence((Ref("elsewhere"), A))}, set()),
    ],
    ids=["chain", "itself", "circle", "between two circles", "an unknown rule"],
)
def test_rules_in_circles(rules: dict[str, Node], expected: set[str]) -> None:
    """Rules that refer to themselves, and those on the way from one circle to another; not what only leads to a circle."""
    assert recursive_rules(rules) == expected


def test_users_are_named_once() -> None:
    """Each rule has the rules that refer to it, in order, however often they do."""
    rules = {"a": Sequence((Ref("c"), Ref("c"))), "b": Ref("c"), "c": A}

    assert users_of(rules) == {"c": ["a", "b"]}


def test_a_chain_is_settled_in_one_round() -> None:
    """Rules are asked after those that they refer to; one is asked again only when one below it has changed."""
    rules: dict[str, Node] = {"a": Ref("b"), "b": Ref("c"), "c": A, "d": A}
    asked: list[str] = []

    def changed(name: str, _: Node) -> bool:
        asked.append(name)
        return name == "c"

    settle(rules, users_of(rules), changed)

    assert [name for name in asked if name != "d"] == ["c", "b", "a"]
    assert len(asked) == 4


def test_a_circle_is_asked_until_nothing_changes() -> None:
    """A change goes round; it ends with the first rule that does not change."""
    rules: dict[str, Node] = {"a": Ref("b"), "b": Ref("a")}
    asked: list[str] = []

    def changed(name: str, _: Node) -> bool:
        asked.append(name)
        return len(asked) < 5

    settle(rules, users_of(rules), changed)

    assert asked in (["a", "b"] * 2 + ["a"], ["b", "a"] * 2 + ["b"])
