"""Text up to a stop, and what follows it: which stop comes first, and what may follow that stop."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from unrender.dialects.lowering.stops import Place, Places, Rest, Sight, State, first_stop, unfolded
from unrender.errors import GrammarError
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

A, B, C, R = Literal("a"), Literal("b"), Literal("c"), Ref("r")
X, Y = Literal("<x>"), Literal("<y>")


@pytest.mark.parametrize(
    ("text", "stops", "expected"),
    [
        ("no stop", ("<x>",), ""),
        ("", ("<x>",), ""),
        ("a<x>b", (), ""),
        ("a<x>b", ("<x>",), "a<x>"),
        ("a<x>b<x>", ("<x>",), "a<x>"),
        ("a<y><x>", ("<x>", "<y>"), "a<y>"),
        ("a>>>f", (">>>f", ">f"), "a>>>f"),
        ("abc", ("abc", "b"), "ab"),
        ("a\ufdd0b<\ufdd1x>c", ("<x>",), "a\ufdd0b<\ufdd1x>"),
        ("<x>\ufdd0", ("<x>",), "<x>"),
        ("\ufdd0<x", ("<x>",), ""),
    ],
)
def test_the_stop_that_is_complete_first_ends_the_text(text: str, stops: tuple[str, ...], expected: str) -> None:
    """Not the one that begins first; marks of the sampler count for nothing, but stay in the text."""
    assert first_stop(text, stops) == expected


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (Sequence((A, B)), [(A, B, C)]),
        (Choice((A, Tolerated(R), B)), [(A, C), (B, C)]),
        (Optional(A), [(A, C), (C,)]),
        (Tag(Role.NAME, A), [(A, C)]),
        (Atomic(A), [(A, C)]),
        (Cut(), [(C,)]),
        (Tolerated(A), [(C,)]),
        (End(), [()]),
        (Repeat(A), [(A, Repeat(A), C), (C,)]),
        (Repeat(A, 2, 3), [(A, Repeat(A, 1, 2), C)]),
        (Repeat(A, 1, 1), [(A, C)]),
        (Repeat(A, 0, 1), [(A, C), (C,)]),
        (Repeat(A, 0, 0), [(C,)]),
        (Repeat(A, 2, None, B), [(A, Repeat(Sequence((B, A)), 1), C)]),
        (Literal("a"), None),
        (Chars((("a", "z"),)), None),
        (Until(("<x>",)), None),
        (R, None),
        (JsonValue(), None),
    ],
    ids=repr,
)
def test_a_node_is_taken_apart_by_one_step(head: Node, expected: list[Rest] | None) -> None:
    """The ways on, in order of preference; text and rules are left to the caller."""
    assert unfolded(head, (C,)) == expected


@pytest.mark.parametrize(
    ("read", "sights", "expected"),
    [
        ("ab", (), State("ab", (), (C,))),
        ("ab", ((0, "ab", True),), State("ab", (), (C,))),
        ("ab", ((0, "ax", True),), None),
        ("ab", ((1, "b", True),), State("ab", (), (C,))),
        ("ab", ((1, "b", False),), None),
        ("ab", ((0, "b", False),), State("ab", (), (C,))),
        ("ab", ((0, "abc", True),), State("ab", ((0, "abc", True),), (C,))),
        ("ab", ((1, "bc", False), (0, "a", True)), State("ab", ((1, "bc", False),), (C,))),
    ],
)
def test_lookaheads_are_decided_by_what_was_read(read: str, sights: tuple[Sight, ...], expected: State | None) -> None:
    """One that is met goes, one that fails ends the way, one that reaches further than what was read stays."""
    assert State(read, sights, (C,)).settled() == expected


def test_what_is_left_after_a_stop() -> None:
    """More text than the stop is put before the rest; none is not a literal."""
    assert State("<x>ab", (), (R,)).after("<x>") == (Literal("ab"), R)
    assert State("<x>", (), (R,)).after("<x>") == (R,)


def place(*rest: Node, stops: tuple[str, ...] = ("<x>",), rules: Mapping[str, Node] = {}) -> Place:
    return Places(rules.__getitem__, lambda: None).place(stops, rest)


@pytest.mark.parametrize(
    ("rest", "own", "at_end"),
    [
        ((X,), {"<x>": [()]}, False),
        ((Literal("<x>more"), R), {"<x>": [(Literal("more"), R)]}, False),
        ((Literal("\n<x>"),), {"\n<x>": [()]}, False),
        ((Layout("\n"), X, A), {"\n<x>": [(A,)]}, False),
        ((Literal("<"), Literal("x>"), A), {"<x>": [(A,)]}, False),
        ((Mark("\ufdd0"), X), {"\ufdd0<x>": [()]}, False),
        ((Choice((Literal("<x>a"), Y, Tolerated(A))),), {"<x>": [(A,)], "<y>": [()]}, False),
        ((Optional(A), X), {"a<x>": [()], "<x>": [()]}, False),
        ((), {}, True),
        ((Optional(X),), {"<x>": [()]}, True),
        ((End(),), {}, True),
        ((A, Chars((("0", "9"),))), {"a": [(Chars((("0", "9"),)),)]}, False),
        ((Literal("a long text"), X), {"a long text": [(X,)]}, False),
        ((Literal("abcdef"), X), {"abcdef<x>": [()]}, False),
        ((Literal("abcdefg"), X), {"abcdefg": [(X,)]}, False),
    ],
    ids=repr,
)
def test_what_follows_text_is_sorted_by_stops(rest: Rest, own: dict[str, list[Rest]], at_end: bool) -> None:
    """Literals are read until a stop is complete; what no stop ends is a stop itself, the sooner the longer it is."""
    found = place(*rest)

    assert (found.own, found.at_end) == (own, at_end)
    assert list(found.found) == list(own)
    assert found.below == []


@pytest.mark.parametrize(
    ("sight", "own"),
    [
        (Peek(Literal("<x>b")), {"<x>": [(B,)]}),
        (Negate(Literal("<x>b")), {"<x>": [(A,)]}),
        (Peek(Literal("<y>")), {}),
        (Negate(Literal("<y>")), {"<x>": [(A,), (B,)]}),
    ],
    ids=repr,
)
def test_a_lookahead_chooses_among_the_ways_on(sight: Node, own: dict[str, list[Rest]]) -> None:
    """Ways that do not meet it are not ways."""
    assert place(sight, Choice((Literal("<x>a"), Literal("<x>b")))).own == own


def test_a_lookahead_that_the_end_cannot_meet_ends_the_way() -> None:
    """At the end, what must follow does not; what must not follow does not either."""
    assert place(Peek(A)).at_end is False
    assert place(Negate(A)).at_end is True


@pytest.mark.parametrize("node", [Chars((("a", "z"),)), Until(("<y>",)), JsonValue()], ids=repr)
def test_what_begins_open_is_refused(node: Node) -> None:
    """Text cannot be told from what begins with no literal."""
    with pytest.raises(GrammarError) as refused:
        place(node, stops=("<x>", "<z>"))

    assert str(refused.value).startswith("text up to ('<x>', '<z>') cannot be told from what follows: (")


def test_a_rule_is_a_place_of_its_own() -> None:
    """What a rule that follows knows is handed up; the way after a stop leads through it."""
    found = place(Optional(X), R, stops=("<x>", "<z>"), rules={"r": Choice((Y, Literal("<z>a")))})
    (below,) = found.below

    assert found.own == {"<x>": [(R,)]}
    assert below.own == {"<y>": [()], "<z>": [(A,)]}
    assert list(found.found) == ["<x>", "<y>", "<z>"]
    assert found.after("<y>") == ([], [below])
    assert found.after("<x>") == ([(R,)], [])
    assert below.after("<z>") == ([(A,)], [])


def test_a_rule_at_the_head_is_entered() -> None:
    """The place of a rule alone is the place of its node."""
    found = place(R, A, rules={"r": Y})

    assert (found.own, found.below) == ({"<y>a": [()]}, [])


def test_a_rule_of_json_is_no_place() -> None:
    """An engine reads JSON by its schema: nothing is known of how it begins."""
    with pytest.raises(GrammarError, match="cannot be told from what follows"):
        place(R, rules={"r": JsonValue()})


def test_a_circle_of_rules_is_worked_out_once() -> None:
    """Stops and the end are handed up round a circle, and each rule is one place however many ways lead there."""
    rules = {"r": Optional(Choice((X, Ref("s")))), "s": Choice((Y, R))}
    found = place(R, rules=rules)
    (below,) = found.below

    assert (sorted(found.found), found.at_end) == (["<x>", "<y>"], True)
    assert sorted(below.found) == ["<x>", "<y>"]
    assert below.at_end
    assert below.below == [found]


def test_the_same_place_is_made_once() -> None:
    """Asked again for the same stops and rest, the same place is returned without more steps."""
    steps: list[int] = []
    places = Places({"r": X}.__getitem__, lambda: steps.append(1))

    first = places.place(("<x>",), (R,))
    taken = len(steps)

    assert places.place(("<x>",), (R,)) is first
    assert len(steps) == taken > 0
    assert places.place(("<y>",), (R,)) is not first
