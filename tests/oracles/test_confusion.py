"""The search finds lexemes in lowered rules that a longest-match lexer would lose."""

from __future__ import annotations

import pytest
from oracles.confusion import confusions
from oracles.lexemes import Ending, json_lexeme

from unrender.dialects.context_free import Lowered, Stopped
from unrender.grammar import Node
from unrender.nodes import Chars, Choice, JsonValue, Literal, Optional, Ref, Repeat, Sequence

A, B, AB = Literal("a"), Literal("b"), Literal("ab")
DIGITS = Chars((("0", "9"),), minimum=1, maximum=3)
OBJECT = JsonValue({"type": "object"})


def lost(root: Node | Stopped, *terminals: str, **others: Node | Stopped) -> set[object]:
    lowered = Lowered("root", {"root": root, **others})
    return {found.lost for found in confusions(lowered, frozenset(terminals))}


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        (Choice((Sequence((A, Ref("b"))), AB)), {A}),
        (Choice((Sequence((A, Ref("c"))), AB)), set()),  # `ac` isn't a prefix of `ab`.
        (Sequence((Repeat(Sequence((A, Ref("c")))), AB)), set()),
        (Sequence((Repeat(Sequence((A, Ref("b")))), AB)), {A}),
        (Sequence((Optional(A), Ref("b"), AB)), set()),
        (Sequence((DIGITS, Ref("c"))), set()),
        (Sequence((DIGITS, Literal("7"))), {DIGITS}),
        (Choice((Sequence((A, Ref("c"))), Sequence((DIGITS, Ref("b"))))), set()),
    ],
)
def test_a_lexeme_is_lost_where_another_goes_on(root: Node, expected: set[Node]) -> None:
    """Of two lexemes at one place, the shorter is lost if the longer continues with the text that may follow it."""
    assert lost(root, b=B, c=Literal("c")) == expected


def test_two_ways_after_the_same_lexeme_are_read_side_by_side() -> None:
    """Confusion is also found some lexemes after the fork."""
    assert lost(Choice((Sequence((DIGITS, A, Ref("b"))), Sequence((DIGITS, AB)))), b=B) == {A}


def test_a_rule_is_followed_by_what_is_after_its_own_reference() -> None:
    """Text after another reference to the same rule doesn't compete with it."""
    shared = Sequence((A, Optional(B)))

    assert lost(Choice((Sequence((Literal("x"), Ref("s"), Literal("c"))), Ref("s"))), s=shared) == set()
    assert lost(Sequence((Ref("s"), Literal("bc"))), s=shared) == set()
    assert lost(Sequence((Ref("s"), Literal("bb"))), s=shared) == {B}


def test_literals_beside_free_text_are_lost() -> None:
    """Free text continues with anything except its stops."""
    free = Stopped(("<x>",), (("<x>", Ref("b")),), at_end=True)
    told_apart = Stopped(("<x>",), (("<x>", Ref("b")),), at_end=True, exact=(("a<x>", Ref("c")),))

    assert lost(Choice((Sequence((A, Ref("c"))), Ref("t"))), t=free, b=B, c=Literal("c")) == {A}
    assert lost(told_apart, b=B, c=Literal("c")) == set()
    assert Ending(("<x>",), "<x>") not in lost(Choice((Literal("a<x>c"), Ref("t"))), t=told_apart, b=B, c=Literal("d"))


def test_rules_that_are_one_lexeme_are_compared_whole() -> None:
    """A rule written as one terminal is compared as one lexeme."""
    assert lost(Choice((Ref("w"), AB)), "w", w=Sequence((A, B))) == set()
    assert lost(Choice((Sequence((Ref("w"), B)), Literal("abb"))), "w", w=Sequence((A, B))) == {Ref("w")}


def test_json_is_told_apart_by_its_first_character() -> None:
    """Only the first character of a value that the engine reads by its schema is known."""
    beside = Choice((Sequence((Ref("v"), A)), Literal("{}a")))

    assert lost(beside, v=OBJECT) == {json_lexeme(OBJECT)}
    assert lost(Sequence((Ref("v"), Literal("7"))), v=JsonValue({"type": "integer"})) != set()
    assert lost(Sequence((Ref("v"), Literal("7"))), v=OBJECT) == set()


def test_recursive_rules_are_looked_into_once() -> None:
    """A recursive rule has the same places at every depth."""
    ended = Choice((A, Sequence((Literal("("), Ref("root"), Literal(")")))))
    listed = Choice((A, Sequence((Literal("("), Repeat(Sequence((A, Ref("root")))), Literal("ab)")))))

    assert lost(ended) == set()
    assert lost(listed) == set()
    assert lost(Choice((B, listed))) == {A}
