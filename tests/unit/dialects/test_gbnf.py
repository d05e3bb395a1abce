"""GBNF as text: how nodes, classes and text up to a stop are written."""

from __future__ import annotations

import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from unrender.dialects.gbnf import automaton, gbnf_of, text_pieces, write_rules
from unrender.dialects.lowering.context_free import Stopped
from unrender.grammar import Grammar, Node
from unrender.nodes import EMPTY, Chars, Choice, Literal, Optional, Ref, Repeat, Sequence

A, B, X = Literal("a"), Literal("b"), Ref("x")
DIGIT = Chars((("0", "9"),))


def body(node: Node) -> str:
    """Return what is written for a rule."""
    return write_rules("root", {"root": node}).removeprefix("root ::= ").removesuffix("\n")


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (A, '"a"'),
        (Literal('"\\\n\r\t\x01\x7f'), r'"\"\\\n\r\t\x01\x7F"'),
        (Literal("<｜é😀"), '"<｜é😀"'),
        (Literal("Québec"), '("Qué" "bec")'),
        (X, "x"),
        (Sequence((A, X)), '"a" x'),
        (Choice((A, Sequence((X, B)))), '"a" | x "b"'),
        (Sequence((Choice((A, X)), B)), '("a" | x) "b"'),
        (Sequence((A, Sequence((X, B)))), '"a" (x "b")'),
        (Optional(X), "x?"),
        (Optional(Sequence((A, X))), '("a" x)?'),
        (Optional(DIGIT), "[0-9]?"),
        (Repeat(X, 0, None), "x*"),
        (Repeat(A, 1, None), '"a"+'),
        (Repeat(X, 0, 1), "x?"),
        (Repeat(X, 1, 1), "x"),
        (Repeat(X, 3, 3), "x{3}"),
        (Repeat(X, 2, None), "x{2,}"),
        (Repeat(X, 0, 4), "x{0,4}"),
        (Repeat(Choice((A, B)), 0, None), '("a" | "b")*'),
        (Repeat(Chars((("0", "9"),), minimum=2, maximum=2), 1, None), '("" [0-9]{2})+'),
        (Repeat(Optional(X), 1, None), '("" x?)+'),
    ],
    ids=repr,
)
def test_how_a_node_is_written(node: Node, expected: str) -> None:
    """Brackets are where a sequence, a choice or a repetition is inside another, and only there."""
    assert body(node) == expected


@pytest.mark.parametrize(
    ("chars", "expected"),
    [
        (Chars((("a", "z"), ("0", "0"))), "[a-z0]"),
        (Chars((("a", "z"),), negated=True), "[^a-z]"),
        (Chars((("a", "z"),), minimum=0, maximum=None), "[a-z]*"),
        (Chars((("a", "z"),), minimum=1, maximum=3), "[a-z]{1,3}"),
        (Chars(()), '""'),
        (Chars((), negated=True), "[^\\x00]"),
        (Chars((("^", "^"),)), '"^"'),
        (Chars((("^", "^"),), negated=True), "[^^]"),
        (Chars((("-", "-"), ("^", "^"))), "[-^]"),
        (Chars((("-", "-"), ("^", "^"), ("a", "a"))), "[a^-]"),
        (Chars((("+", "/"),)), "[+-,.-/-]"),
        (Chars((("[", "]"),)), "[\\[-\\]]"),
        (Chars((('"', '"'), ("\\", "\\"), ("\n", "\n"))), '["\\\\\\n]'),
        (Chars((("\x01", "\x01"), ("1", "1"))), "[1\\x01]"),
    ],
    ids=repr,
)
def test_how_a_class_is_written(chars: Chars, expected: str) -> None:
    """`^` and `-` are last, where no dialect needs a backslash, and no digit follows a hexadecimal number."""
    assert body(chars) == expected


@cases
def test_a_text_is_cut_before_digits_after_a_number(text: str, pieces: list[str]) -> None:
    """Characters that engines write as hexadecimal numbers are parted from what would go on the number."""
    assert text_pieces(text) == pieces


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (Stopped((), (), at_end=True), ['t ::= [^\\x00] t | ""']),
        (
            Stopped(("<x",), (("<x", X),), at_end=False),
            ['t ::= "<" t-s1 | [^<] t', 't-s1 ::= "x" x | "<" t-s1 | [^<x] t'],
        ),
        (Stopped(("<x",), (), at_end=True), ['t ::= "<" t-s1 | [^<] t | ""', 't-s1 ::= "<" t-s1 | [^<x] t | ""']),
        (Stopped((">", "!"), ((">", X),), at_end=False, exact=(("a>", Ref("y")),)), ['t ::= "a>" y | ">" x | [^!>] t']),
    ],
    ids=["no stop", "one stop", "a stop that may not follow", "an exact text"],
)
def test_how_text_is_written(text: Stopped, lines: list[str]) -> None:
    """One rule for each beginning of a stop; the stop is complete where a branch follows it, and blocked elsewhere."""
    assert write_rules("t", {"t": text}).splitlines() == lines


STOPS = st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3, unique=True)


@given(STOPS, st.text("abc", max_size=12))
def test_text_is_cut_at_the_stop_that_is_complete_first(stops: list[str], text: str) -> None:
    """The automaton ends where the first stop ends, and names the longest stop there."""
    ends = [end for end in range(len(text) + 1) if any(text[:end].endswith(stop) for stop in stops)]
    at = min(ends, default=len(text))
    expected = max((stop for stop in stops if text[:at].endswith(stop)), key=len, default="") if ends else ""
    moves, state, read = automaton(tuple(stops)), "", 0
    while state in moves and read < len(text):
        state = moves[state].get(text[read], "")
        read += 1

    assert (read, "" if state in moves else state) == (at, expected)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({"x": Sequence((A, Optional(B)))}, 'root ::= "(" x ")"\nx ::= "a" "b"?\n'),
        ({"x": Sequence((A, B))}, 'root ::= "(" x ")"\nx ::= "a" "b"\n'),
        ({"x": Choice((A, EMPTY))}, 'root ::= "(" x ")"\nx ::= "a" | ""\n'),
        ({"x": Sequence(())}, 'root ::= "(" x ")"\nx ::= ""\n'),
        ({"x": Repeat(A, 1, None, B)}, 'root ::= "(" x ")"\nx ::= "a" "ba"*\n'),
        ({"x": Sequence((A, Repeat(Ref("y"), 0, 0))), "y": B}, 'root ::= "(" x ")"\nx ::= "a"\n'),
        ({"x": Ref("root"), "root": A}, 'root ::= "(" x ")"\nx ::= root-2\nroot-2 ::= "a"\n'),
        ({"x": Ref("My Rule"), "My Rule": A}, 'root ::= "(" x ")"\nx ::= my-rule\nmy-rule ::= "a"\n'),
    ],
    ids=["as it is", "words", "empty text", "nothing", "a separator", "no times", "the start's name", "no name"],
)
def test_rules_that_end_by_themselves_keep_their_names(rules: dict[str, Node], expected: str) -> None:
    """They are written as they are, if that is how GBNF says it."""
    assert gbnf_of(Grammar(Sequence((Literal("("), X, Literal(")"))), rules)) == expected
