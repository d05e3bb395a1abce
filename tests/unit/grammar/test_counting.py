"""Grammars with as many calls as a request asks for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrender.emit.sample import draw
from unrender.errors import GrammarError
from unrender.grammar import (
    Grammar,
    Node,
    Role,
    atomic,
    choice,
    literal,
    one_or_more,
    optional,
    ref,
    repeat,
    sequence,
    tag,
    zero_or_more,
)
from unrender.grammar.counting import MOST_ROUNDS, Count, counted

CALL = tag(Role.CALL, "c")
MEANT = {
    Count.NONE: lambda calls: calls == 0,
    Count.ONE: lambda calls: calls == 1,
    Count.AT_MOST_ONE: lambda calls: calls <= 1,
    Count.SOME: lambda calls: calls >= 1,
}
RULES = {"calls": one_or_more(CALL, ","), "either": choice("x", ref("calls"), sequence("(", ref("either"), ")"))}


def possible(grammar: Grammar, count: Count) -> bool:
    try:
        counted(grammar, count)
    except GrammarError:
        return False
    return True


def nodes() -> st.SearchStrategy[Node]:
    leaves = st.sampled_from([CALL, literal("x"), ref("calls"), ref("either")])

    def composed(below: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
        few = st.lists(below, min_size=1, max_size=3)
        bounds = st.sampled_from([(0, None), (1, None), (2, None), (0, 2), (1, 3), (2, 2)])
        return st.one_of(
            few.map(lambda parts: sequence(*parts)),
            few.map(lambda parts: choice(*parts)),
            below.map(optional),
            below.map(atomic),
            st.builds(
                lambda node, bound, comma: repeat(node, bound[0], bound[1], comma),
                below,
                bounds,
                st.none() | st.just(","),
            ),
        )

    return st.recursive(leaves, composed, max_leaves=5)


@pytest.mark.slow
@settings(max_examples=150)
@given(nodes(), st.sampled_from(list(MEANT)), st.integers(0, 1 << 20))
def test_every_answer_has_the_number_of_calls(node: Node, count: Count, seed: int) -> None:
    """What a counted grammar generates has so many calls; none is refused whose grammar shows such an answer."""
    grammar = Grammar(node, RULES)
    shown = [draw(grammar, seed + more).text.count("c") for more in range(5)]
    if not possible(grammar, count):
        assert not any(map(MEANT[count], shown))
        return

    found = counted(grammar, count)
    assert all(MEANT[count](draw(found, seed + more).text.count("c")) for more in range(5))


@pytest.mark.parametrize(
    ("node", "count", "expected"),
    [
        (sequence("a", zero_or_more(CALL)), Count.SOME, sequence("a", one_or_more(CALL))),
        (sequence("a", zero_or_more(CALL)), Count.AT_MOST_ONE, sequence("a", choice(CALL, ""))),
        (choice("a", CALL), Count.ONE, CALL),
        (optional(CALL), Count.NONE, literal("")),
    ],
)
def test_a_usual_grammar_does_not_grow(node: Node, count: Count, expected: Node) -> None:
    """Where one part holds the calls, the others stay as they are."""
    assert counted(Grammar(node), count).root == expected


def test_rules_that_are_not_needed_are_left_out() -> None:
    """A grammar without calls has no rule that is about calls alone."""
    assert counted(Grammar(choice("a", ref("calls")), RULES), Count.NONE) == Grammar(literal("a"))


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (repeat(optional(CALL), 0, MOST_ROUNDS + 1), "rounds cannot be counted"),
        (repeat("a", separator=CALL), "separator"),
        (literal("a"), "no answer with this number of calls: one"),
    ],
)
def test_what_cannot_be_counted_is_refused(node: Node, message: str) -> None:
    """The error says what is in the way."""
    with pytest.raises(GrammarError, match=message):
        counted(Grammar(node), Count.ONE)
