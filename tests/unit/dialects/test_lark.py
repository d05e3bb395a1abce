"""Lark as text: what is a terminal, and how nodes are written."""

from __future__ import annotations

import pytest

from unrender.dialects.lark import lark_of, terminals
from unrender.dialects.lowering.context_free import Lowered, Stopped, lower
from unrender.errors import GrammarError
from unrender.nodes import (
    Chars,
    Choice,
    Grammar,
    JsonValue,
    Literal,
    Node,
    Optional,
    Peek,
    Ref,
    Repeat,
    Sequence,
    Until,
)

A, B, X, Y = Literal("a"), Literal("b"), Ref("x"), Ref("y")
DIGITS = Chars((("0", "9"),), minimum=1, maximum=3)


@pytest.mark.parametrize(
    ("node", "body"),
    [
        (A, '"a"'),
        (Literal('"\\\n\x01é'), r'"\"\\\n\u0001é"'),
        (DIGITS, "/[0-9]{1,3}/"),
        (Sequence((X, A)), 'T_X "a"'),
        (Choice((X, A)), 'T_X | "a"'),
        (Sequence((Choice((X, A)), B)), '(T_X | "a") "b"'),
        (Sequence((Optional(A), B)), '("a")? "b"'),
        (Repeat(X, 0, None), "(T_X)*"),
        (Repeat(X, 1, None), "(T_X)+"),
        (Repeat(X, 2, 2), "(T_X){2,2}"),
        (Repeat(X, 2, None), "(T_X){2,}"),
        (Repeat(Choice((X, A)), 0, 4), '(T_X | "a"){0,4}'),
    ],
    ids=repr,
)
def test_how_a_node_is_written(node: Node, body: str) -> None:
    """Text as JSON, classes as patterns, brackets around what is repeated or inside a sequence."""
    first, *_ = (
        lark_of(Grammar(node, {"x": Sequence((Literal("x"), DIGITS))})).removeprefix("%llguidance {}\n\n").splitlines()
    )

    assert first == f"start: {body}"


@pytest.mark.parametrize(
    ("node", "lines"),
    [
        (
            Sequence((Until(("<x>",)), Literal("<x>"))),
            [r"U_TEXT_0: /(?s:.*)<x>/ & ~/(?s:.*)(?:<x>)(?s:.)(?s:.*)/", "r_text: U_TEXT_0 T_REST", 'T_REST: ""'],
        ),
        (
            Until(("<x>", "<y>")),
            ["U_TEXT_END: /(?s:.+)/ & ~/(?s:.*)(?:<x>|<y>)(?s:.*)/", 'r_text: U_TEXT_END | ""'],
        ),
        (Until(()), ["U_TEXT_END: /(?s:.+)/", 'r_text: U_TEXT_END | ""']),
        (
            Sequence((Until((">>f", ">>>f")), Literal(">>f"))),
            [
                "U_TEXT_0: /(?s:.*)>>f/ & ~/(?s:.*)(?:>>f|>>>f)(?s:.)(?s:.*)/ & ~/(?s:.*)>>>f/",
                "r_text: U_TEXT_0 T_REST",
                'T_REST: ""',
            ],
        ),
    ],
    ids=["one stop", "to the end", "no stop", "a longer stop"],
)
def test_how_text_is_written(node: Node, lines: list[str]) -> None:
    """One lexeme for each stop: it ends in the stop, goes on after none, and does not end in a longer one."""
    written = lark_of(Grammar(node)).splitlines()

    assert written[2:] == ["start: r_text", *lines]


def test_text_with_two_stops_names_what_it_excludes() -> None:
    """What goes on after a stop is a terminal of its own where two lexemes exclude it."""
    written = lark_of(Grammar(Sequence((Until(("<x>", "<y>")), Choice((Literal("<x>a"), Literal("<y>b")))))))

    assert r"B_TEXT: /(?s:.*)(?:<x>|<y>)(?s:.)(?s:.*)/" in written.splitlines()
    assert "U_TEXT_0: /(?s:.*)<x>/ & ~B_TEXT" in written.splitlines()
    assert "U_TEXT_1: /(?s:.*)<y>/ & ~B_TEXT" in written.splitlines()


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({"root": Sequence((X, Y)), "x": A, "y": DIGITS}, {"x", "y"}),
        ({"root": X, "x": Sequence((A, Y)), "y": B}, {"x", "y"}),
        ({"root": X, "x": Sequence((A, Optional(X)))}, set()),
        ({"root": X, "x": Sequence((A, Y)), "y": JsonValue()}, set()),
        ({"root": X, "x": Stopped(("<",), (("<", Y),), at_end=False), "y": A}, {"y"}),
        ({"root": X, "x": Sequence((A, Optional(Y))), "y": B}, {"y"}),
        ({"root": Sequence((X, Y)), "x": Sequence((Y, A)), "y": DIGITS}, {"y"}),
    ],
    ids=["regular", "below", "recursive", "JSON", "free text", "may go on", "begins with another"],
)
def test_which_rules_are_one_lexeme(rules: dict[str, Node | Stopped], expected: set[str]) -> None:
    """Those of characters and of such rules, without loop, JSON or free text, that cannot go on with another lexeme.

    Nor is one of them what begins with a rule that is alone elsewhere: it would be longer than that.
    """
    assert terminals(Lowered("root", rules)) == expected


@pytest.mark.parametrize(
    "root",
    [
        Choice((Repeat(A, 1, None, B), Literal("abx"))),
        Choice((Literal("abx"), Sequence((Repeat(A, 1, None, B), Literal("!"))))),
    ],
    ids=["alone", "with more after it"],
)
def test_a_repetition_is_told_apart_from_what_begins_with_its_separator(root: Node) -> None:
    """A lexer that prefers the longest literal would take `ab` for the beginning of `abx`: `a` is taken out of both."""
    start = lower(Grammar(root)).rules["root"]

    assert start == Sequence((A, Ref("branch")))


def test_what_no_rule_can_say_is_refused() -> None:
    """A lookahead is named."""
    with pytest.raises(GrammarError, match="Peek cannot be written"):
        lark_of(Grammar(Sequence((Peek(A), X)), {"x": A}))
