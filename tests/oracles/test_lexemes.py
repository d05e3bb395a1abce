"""Lexemes in a longest-match lexer, and conflicts between two of them."""

from __future__ import annotations

import pytest
from oracles.lexemes import Clash, Ending, Lexeme, Lexemes, json_lexeme

from unrender.dialects.context_free import Stopped
from unrender.grammar import Node
from unrender.nodes import Chars, Choice, JsonValue, Literal, Optional, Ref, Repeat, Sequence

A, B, AB = Literal("a"), Literal("b"), Literal("ab")
DIGITS = Chars((("0", "9"),), minimum=1, maximum=3)
TEXT = Ending(("<x>",), "<x>")
SOME = Ending(("<x>",), "<x>", but=("a<x>",))
LAST = Ending(("<x>", "<y>"), "")
RULES: dict[str, Node | Stopped] = {"ab": AB, "list": Sequence((A, Optional(Ref("list"))))}
LETTERS = tuple("079.abcxyz<>!")
OBJECT, NUMBER = json_lexeme(JsonValue({"type": "object"})), json_lexeme(JsonValue({"type": "integer"}))


def known() -> Lexemes:
    return Lexemes(RULES, LETTERS)


def accepts(lexeme: Node | Ending, text: str) -> bool:
    """Return whether `text` is the whole lexeme, read character by character."""
    found, reading = known(), known().start(lexeme)
    for character in text:
        steps = found.steps(lexeme, reading)
        if character not in steps:
            return False
        reading = steps[character]
    return found.accepts(lexeme, reading)


@pytest.mark.parametrize(
    ("lexeme", "right", "wrong"),
    [
        (AB, ["ab"], ["", "a", "abc", "b"]),
        (Literal(""), [""], ["a"]),
        (DIGITS, ["0", "07", "079"], ["", "0790", "a"]),
        (Chars((("0", "9"),), minimum=0, maximum=None), ["", "0", "0790"], ["a", "0a"]),
        (Chars((("0", "9"),), negated=True), ["a", "<"], ["0", "ab"]),
        (Sequence((A, DIGITS, B)), ["a7b", "a779b"], ["ab", "a7"]),
        (Choice((A, AB)), ["a", "ab"], ["b", ""]),
        (Optional(A), ["", "a"], ["aa"]),
        (Repeat(AB, 1, 2), ["ab", "abab"], ["", "ababab", "aba"]),
        (Sequence((Ref("ab"), Ref("list"))), ["aba", "abaaa"], ["ab", "abb"]),
        (TEXT, ["<x>", "a<x>", "<<x>", "<y><x>", "a<x>"], ["", "a", "<x", "<x>a", "<x><x>"]),
        (SOME, ["<x>", "aa<x>", "b<x>"], ["a<x>", "a"]),
        (LAST, ["a", "<x", "<"], ["", "<x>", "a<y>", "<x>a"]),
        (Ending(("<x>", "<y>"), "<y>"), ["a<y>", "<x<y>"], ["<x>", "<x><y>", "a"]),
    ],
)
def test_a_lexeme_is_read_character_by_character(lexeme: Node | Ending, right: list[str], wrong: list[str]) -> None:
    """Nodes are read to their end, and free text up to its first stop, except for its exceptions."""
    verdicts = {text: accepts(lexeme, text) for text in (*right, *wrong)}

    assert verdicts == {**dict.fromkeys(right, True), **dict.fromkeys(wrong, False)}


@pytest.mark.parametrize(
    ("one", "other", "onward", "shared"),
    [
        (A, AB, "b", False),
        (AB, A, "", False),
        (A, A, "", True),
        (A, B, "", False),
        (A, Choice((A, AB)), "b", True),
        (Literal("7"), DIGITS, "079", True),
        (DIGITS, Literal("7"), "", True),
        (DIGITS, Literal("79a"), "9a", False),
        (Optional(A), B, "", False),
        (Optional(A), AB, "b", False),
        (A, TEXT, "".join(LETTERS), False),
        (Literal("<x>"), TEXT, "", True),
        (TEXT, Literal("<x>a"), "a", False),
        (Literal("a<x>"), SOME, "", False),
        (Literal("b<x>"), SOME, "", True),
        (A, LAST, "".join(LETTERS), True),
        (Literal("<x"), LAST, "".join(c for c in LETTERS if c != ">"), True),
        (OBJECT, OBJECT, "", True),
        (NUMBER, NUMBER, "0123456789.eE+-", True),
        (OBJECT, NUMBER, "", False),
        (NUMBER, Literal("7a"), "".join(LETTERS), True),
        (OBJECT, A, "", False),
    ],
)
def test_what_a_lexeme_does_to_another(one: Lexeme, other: Lexeme, onward: str, shared: bool) -> None:
    """A clash lists the characters that continue the second lexeme after the first, and whether a text matches both."""
    assert known().clash(one, other) == Clash(frozenset(onward), shared)
