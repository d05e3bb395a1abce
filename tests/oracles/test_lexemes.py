"""What a lexer that prefers the longest lexeme sees of a lexeme, and what two of them do to each other."""

from __future__ import annotations

import pytest
from oracles import lexemes
from oracles.lexemes import Clash, Ending, Json, Lexeme, Lexemes, alphabet, json_lexeme

from unrender.dialects.lowering.context_free import Stopped
from unrender.messages.wire import JsonSchema
from unrender.nodes import Chars, Choice, JsonValue, Literal, Node, Optional, Ref, Repeat, Sequence

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
    """Nodes by what is left of them, free text up to its first stop, but not its exceptions."""
    verdicts = {text: accepts(lexeme, text) for text in (*right, *wrong)}

    assert verdicts == {**dict.fromkeys(right, True), **dict.fromkeys(wrong, False)}


@pytest.mark.parametrize(
    ("lexeme", "expected"),
    [
        (AB, {"a"}),
        (DIGITS, set("079")),
        (Choice((A, Literal("x"), Ref("ab"))), {"a", "x"}),
        (Sequence((Optional(B), A)), {"a", "b"}),
        (Literal(""), set()),
        (TEXT, set(LETTERS)),
        (OBJECT, {"{"}),
    ],
)
def test_with_which_characters_a_lexeme_begins(lexeme: Lexeme, expected: set[str]) -> None:
    """All characters after which there is a way on."""
    assert known().first(lexeme) == expected


@pytest.mark.parametrize(
    ("lexeme", "expected"),
    [(A, False), (Literal(""), True), (Optional(A), True), (TEXT, False), (LAST, False), (OBJECT, False)],
)
def test_which_lexemes_may_be_empty(lexeme: Lexeme, expected: bool) -> None:
    """Text to the end of the output has at least one character; JSON is never nothing."""
    assert known().is_empty(lexeme) is expected


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
    """With which characters the second goes on after the first, and whether some text is both."""
    assert known().clash(one, other) == Clash(frozenset(onward), shared)


def test_what_is_too_much_to_compare_counts_as_confused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond so many pairs of states no more is looked at."""
    monkeypatch.setattr(lexemes, "MOST_STATES", 2)

    assert known().clash(Literal("abc"), Literal("abx")) == Clash(frozenset(LETTERS), shared=True)


def test_one_character_stands_for_those_that_nothing_tells_apart() -> None:
    """The first of a class, the one after it, and those just outside; of literals and stops each, and the one after."""
    found = alphabet([Chars((("p", "r"),)), Literal("é"), Stopped(("§",), (), at_end=True)])

    assert {"p", "q", "s", "é", "ê", "§", "¨", "\0"} <= set(found)
    assert not {"r", "x", "è", "ë", "¦"} & set(found)
    assert list(found) == sorted(set(found))


def test_the_last_character_has_none_after_it() -> None:
    """A class to the end of Unicode adds no character beyond it."""
    assert max(alphabet([Chars((("a", "\U0010ffff"),))])) == "|"  # After the brace of JSON.


@pytest.mark.parametrize(
    ("schema", "first"),
    [
        (None, '{["tfn-0123456789'),
        (True, '{["tfn-0123456789'),
        ({}, '{["tfn-0123456789'),
        ({"type": "object"}, "{"),
        ({"type": "array"}, "["),
        ({"type": "string"}, '"'),
        ({"type": ["boolean", "null"]}, "tfn"),
        ({"type": "integer"}, "-0123456789"),
        ({"type": "number"}, "-0123456789"),
    ],
)
def test_how_json_begins_follows_from_its_type(schema: JsonSchema | None, first: str) -> None:
    """Without a type, JSON begins as any value does."""
    assert json_lexeme(JsonValue(schema)) == Json(frozenset(first))
