"""The shortest way out of a recursion, as a number of rules."""

from __future__ import annotations

import pytest

from unrender.dialects.lowering.context_free import Stopped
from unrender.dialects.sample import ENDLESS, cost, rule_costs
from unrender.nodes import Chars, Choice, Literal, Node, Optional, Ref, Repeat, Sequence

A, X, Y = Literal("a"), Ref("x"), Ref("y")


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (A, 0),
        (Chars((("a", "z"),)), 0),
        (X, 3),
        (Sequence(()), 0),
        (Sequence((X, A, Y, X)), 11),
        (Choice((Y, X, Sequence((X, Y)))), 3),
        (Choice((A, X)), 0),
        (Choice(()), ENDLESS),
        (Optional(X), 0),
        (Repeat(X, 0, 4), 0),
        (Repeat(X, 2, None), 6),
        (Ref("never"), ENDLESS),
        (Sequence((Ref("never"), X)), ENDLESS),
        (Repeat(Ref("never"), 3), ENDLESS),
    ],
)
def test_a_node_costs_the_rules_that_it_must_pass(node: Node, expected: int) -> None:
    """Parts in sequence add up, of options the cheapest counts, what may be left out costs nothing."""
    assert cost(node, {"x": 3, "y": 5, "never": ENDLESS}) == expected


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({"x": A}, {"x": 1}),
        ({"x": Y, "y": A}, {"x": 2, "y": 1}),
        ({"y": A, "x": Y}, {"x": 2, "y": 1}),
        ({"x": Sequence((Y, Y)), "y": A}, {"x": 3, "y": 1}),
        ({"x": Choice((Sequence((A, X)), Y)), "y": Ref("z"), "z": A}, {"x": 3, "y": 2, "z": 1}),
        ({"x": Sequence((A, Optional(X)))}, {"x": 1}),
        ({"x": Sequence((A, X)), "y": X}, {"x": ENDLESS, "y": ENDLESS}),
        ({"x": Y, "y": X}, {"x": ENDLESS, "y": ENDLESS}),
        ({"x": Choice((Y, A)), "y": X}, {"x": 1, "y": 2}),
    ],
    ids=["word", "chain", "chain backwards", "sum", "recursion", "optional recursion", "endless", "circle", "way out"],
)
def test_a_rule_costs_one_and_what_it_must_pass(rules: dict[str, Node], expected: dict[str, int]) -> None:
    """The order of the rules does not matter; what has no end costs more than all else."""
    assert rule_costs(rules) == expected


def test_a_cheaper_way_is_handed_up_after_a_dearer_one_was_known() -> None:
    """A rule whose cost falls later makes those cheaper that were counted before."""
    rules = {"d": A, "c": Ref("d"), "b": Ref("c"), "x": Choice((Sequence((Ref("d"),) * 9), Ref("b"))), "up": X}

    assert rule_costs(rules) == {"d": 1, "c": 2, "b": 3, "x": 4, "up": 5}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (Stopped(("<",), (("<", X),), at_end=True), 1),
        (Stopped(("<",), (("<", X),), at_end=False), 3),
        (Stopped(("<", ">"), (("<", X), (">", Y)), at_end=False), 2),
        (Stopped(("<",), (("<", X),), at_end=False, exact=(("a<", Y),)), 2),
        (Stopped(("<",), (), at_end=False), ENDLESS),
    ],
    ids=["to the end", "one stop", "two stops", "an exact text", "no way on"],
)
def test_free_text_costs_the_cheapest_way_after_it(text: Stopped, expected: int) -> None:
    """Text that may end costs nothing more; else the cheapest branch or exact text counts."""
    assert rule_costs({"t": text, "x": Y, "y": A})["t"] == expected
