"""Grammars with as many calls as a request asks for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lines import grammar_lines

from unrender.dialects.sample import draw
from unrender.errors import GrammarError
from unrender.grammar import (
    Grammar,
    Node,
    Role,
    atomic,
    choice,
    literal,
    negate,
    one_or_more,
    optional,
    peek,
    ref,
    repeat,
    sequence,
    tag,
    until,
    zero_or_more,
)
from unrender.grammar.counting import CallCount, counted
from unrender.limits import MOST_ROUNDS

CALL = tag(Role.CALL, "c")
MEANT = {
    CallCount.NONE: lambda calls: calls == 0,
    CallCount.ONE: lambda calls: calls == 1,
    CallCount.AT_MOST_ONE: lambda calls: calls <= 1,
    CallCount.SOME: lambda calls: calls >= 1,
}
RULES = {"calls": one_or_more(CALL, ","), "either": choice("x", ref("calls"), sequence("(", ref("either"), ")"))}


def possible(grammar: Grammar, count: CallCount) -> bool:
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
def test_every_answer_has_the_number_of_calls(node: Node, count: CallCount, seed: int) -> None:
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
        (sequence("a", zero_or_more(CALL)), CallCount.SOME, sequence("a", one_or_more(CALL))),
        (sequence("a", zero_or_more(CALL)), CallCount.AT_MOST_ONE, sequence("a", choice(CALL, ""))),
        (choice("a", CALL), CallCount.ONE, CALL),
        (optional(CALL), CallCount.NONE, literal("")),
    ],
)
def test_a_usual_grammar_does_not_grow(node: Node, count: CallCount, expected: Node) -> None:
    """Where one part holds the calls, the others stay as they are."""
    assert counted(Grammar(node), count).root == expected


def test_rules_that_are_not_needed_are_left_out() -> None:
    """A grammar without calls has no rule that is about calls alone."""
    assert counted(Grammar(choice("a", ref("calls")), RULES), CallCount.NONE) == Grammar(literal("a"))


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
        counted(Grammar(node), CallCount.ONE)


RULES_OF_ROWS = {**RULES, "never": sequence("a", ref("never")), "quiet": literal("q")}
KINDS = (CallCount.NONE, CallCount.ONE, CallCount.AT_MOST_ONE, CallCount.SOME)
COUNTED: list[tuple[Node, list[Any]]] = [
    (choice("a", one_or_more(ref("never"))), ["'a'", None, "'a'", None]),
    (sequence(zero_or_more(ref("never")), "a"), ["'' 'a'", None, "'' 'a'", None]),
    (sequence(optional(ref("never")), CALL), [None, "'' call:('c')", "'' call:('c')", "'' call:('c')"]),
    (CALL, [None, "call:('c')", "call:('c')", "call:('c')"]),
    (literal("a"), ["'a'", None, "'a'", None]),
    (ref("quiet"), [{"": "$quiet", "quiet": "'q'"}, None, {"": "$quiet", "quiet": "'q'"}, None]),
    (
        ref("calls"),
        [
            None,
            {"": "$calls-one", "calls-one": "call:('c')"},
            {"": "$calls-at-most-one", "calls-at-most-one": "call:('c')"},
            {"": "$calls-some", "calls-some": "(call:('c')){1, by ','}"},
        ],
    ),
    (
        ref("either"),
        [
            {"": "$either-none", "either-none": "'x' | '(' $either-none ')'"},
            {"": "$either-one", "calls-one": "call:('c')", "either-one": "$calls-one | '(' $either-one ')'"},
            {
                "": "$either-at-most-one",
                "calls-at-most-one": "call:('c')",
                "either-at-most-one": "'x' | $calls-at-most-one | '(' $either-at-most-one ')'",
            },
            {
                "": "$either-some",
                "calls-some": "(call:('c')){1, by ','}",
                "either-some": "$calls-some | '(' $either-some ')'",
            },
        ],
    ),
    (choice("a", ref("never"), CALL), ["'a'", "call:('c')", "'a' | call:('c')", "call:('c')"]),
    (sequence("a", CALL, "b"), [None, "'a' call:('c') 'b'", "'a' call:('c') 'b'", "'a' call:('c') 'b'"]),
    (sequence(CALL, "-", CALL), [None, None, None, "call:('c') '-' call:('c')"]),
    (
        sequence(optional(CALL), "-", optional(CALL), "+"),
        [
            "'' '-' '' '+'",
            "call:('c') '-' '' '+' | '' '-' call:('c') '+'",
            "call:('c') '-' '' '+' | '' '-' [call:('c')] '+'",
            "call:('c') '-' [call:('c')] '+' | '' '-' call:('c') '+'",
        ],
    ),
    (sequence(CALL, CALL, CALL), [None, None, None, "call:('c') call:('c') call:('c')"]),
    (optional(CALL), ["''", "call:('c')", "[call:('c')]", "call:('c')"]),
    (optional(choice("a", CALL)), ["['a']", "call:('c')", "['a' | call:('c')]", "call:('c')"]),
    (
        atomic(choice("a", CALL)),
        [
            "Atomic(node=Literal(text='a'))",
            "Atomic(node=Tag(role=<Role.CALL: 'call'>, node=Literal(text='c')))",
            "Atomic(node=Choice(options=(Literal(text='a'), Tag(role=<Role.CALL: 'call'>, node=Literal(text='c')))))",
            "Atomic(node=Tag(role=<Role.CALL: 'call'>, node=Literal(text='c')))",
        ],
    ),
    (zero_or_more(CALL), ["''", "call:('c')", "call:('c') | ''", "(call:('c')){1,}"]),
    (one_or_more(CALL, ","), [None, "call:('c')", "call:('c')", "(call:('c')){1, by ','}"]),
    (repeat(CALL, 0, 3), ["''", "call:('c')", "call:('c') | ''", "(call:('c')){1,3}"]),
    (repeat(CALL, 2, 3), [None, None, None, "(call:('c')){2,3}"]),
    (repeat(CALL, 0, 0), ["''", None, "''", None]),
    (repeat(CALL, 1, 1), [None, "call:('c')", "call:('c')", "(call:('c')){1,1}"]),
    (
        zero_or_more(choice("a", CALL)),
        [
            "('a'){0,}",
            "('a'){0,} call:('c') ('a'){0,}",
            "('a'){0,} call:('c') ('a'){0,} | ('a'){0,}",
            "('a'){0,} call:('c') (('a' | call:('c'))){0,}",
        ],
    ),
    (
        zero_or_more(choice("a", CALL), ","),
        [
            "('a'){0, by ','}",
            "('a' ','){0,} call:('c') (',' 'a'){0,}",
            "('a' ','){0,} call:('c') (',' 'a'){0,} | ('a'){0, by ','}",
            "('a' ','){0,} call:('c') (',' ('a' | call:('c'))){0,}",
        ],
    ),
    (
        one_or_more(choice("a", CALL)),
        [
            "('a'){1,}",
            "('a'){0,} call:('c') ('a'){0,}",
            "('a'){0,} call:('c') ('a'){0,} | ('a'){1,}",
            "('a'){0,} call:('c') (('a' | call:('c'))){0,}",
        ],
    ),
    (
        repeat(choice("a", CALL), 2, None, ","),
        [
            "('a'){2, by ','}",
            "call:('c') ',' 'a' (',' 'a'){0,} | 'a' (',' call:('c') (',' 'a'){0,} | ',' 'a' (',' 'a'){0,} ',' call:('c') (',' 'a'){0,})",
            "call:('c') ',' 'a' (',' 'a'){0,} | 'a' (',' call:('c') (',' 'a'){0,} | ',' 'a' ((',' 'a'){0,} ',' call:('c') (',' 'a'){0,} | (',' 'a'){0,}))",
            "call:('c') ',' ('a' | call:('c')) (',' ('a' | call:('c'))){0,} | 'a' (',' call:('c') (',' ('a' | call:('c'))){0,} | ',' 'a' (',' 'a'){0,} ',' call:('c') (',' ('a' | call:('c'))){0,})",
        ],
    ),
    (
        repeat(choice("a", CALL), 1, 2, ","),
        [
            "('a'){1,2 by ','}",
            "call:('c') [',' 'a' ''] | 'a' ',' call:('c') ''",
            "call:('c') [',' 'a' ''] | 'a' [',' ('a' | call:('c')) '']",
            "call:('c') [',' ('a' | call:('c')) ''] | 'a' ',' call:('c') ''",
        ],
    ),
    (repeat(choice("a", CALL), 0, 1), ["('a'){0,1}", "call:('c') ''", "[('a' | call:('c')) '']", "call:('c') ''"]),
    (
        sequence(peek(CALL), negate(CALL), CALL),
        [
            None,
            "Peek(node=Tag(role=<Role.CALL: 'call'>, node=Literal(text='c'))) Negate(node=Tag(role=<Role.CALL: 'call'>, node=Literal(text='c'))) call:('c')",
            "Peek(node=Tag(role=<Role.CALL: 'call'>, node=Literal(text='c'))) Negate(node=Tag(role=<Role.CALL: 'call'>, node=Literal(text='c'))) call:('c')",
            "Peek(node=Tag(role=<Role.CALL: 'call'>, node=Literal(text='c'))) Negate(node=Tag(role=<Role.CALL: 'call'>, node=Literal(text='c'))) call:('c')",
        ],
    ),
    (tag(Role.CONTENT, until("c")), ["content:(text[c])", None, "content:(text[c])", None]),
]
"""A node, and what is left of it for no call, one, at most one and some; None where no answer has so many."""


def lines_of(node: Node, count: CallCount) -> Any:
    try:
        lines = grammar_lines(counted(Grammar(node, RULES_OF_ROWS), count))
    except GrammarError as error:
        return None if "no answer with this number" in str(error) else str(error)
    return lines if len(lines) > 1 else lines[""]


@pytest.mark.parametrize(("node", "expected"), COUNTED)
def test_each_node_is_written_for_each_count(node: Node, expected: list[Any]) -> None:
    """What cannot match any more is taken out; any number of calls changes nothing."""
    assert [lines_of(node, count) for count in KINDS] == expected
    grammar = Grammar(node, RULES_OF_ROWS)
    assert counted(grammar, CallCount.ANY) is grammar


def test_as_many_rounds_as_are_written_out() -> None:
    """32 rounds are counted one by one; the error says how many were asked for."""
    optional_call = optional(CALL)

    assert lines_of(repeat(optional_call, 0, 32), CallCount.ONE).count("call:") == 32
    reason = "tool_choice: calls in more than 32 rounds cannot be counted, found 33"
    assert lines_of(repeat(optional_call, 0, 33), CallCount.ONE) == reason
    assert lines_of(repeat(optional_call, 33, None), CallCount.SOME) == reason
    assert lines_of(repeat("a", 0, None, CALL), CallCount.NONE) == (
        "tool_choice: calls in the separator of a repetition cannot be counted"
    )


def test_counts_that_allow_no_call() -> None:
    """One and some do not."""
    assert [count for count in CallCount if count.allows_none] == [CallCount.ANY, CallCount.NONE, CallCount.AT_MOST_ONE]
