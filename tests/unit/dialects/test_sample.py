"""Tests of random samples of a grammar."""

from __future__ import annotations

import pytest
from cases import cases
from lexing import remainder_of
from remainders import turn_of

from unrender import GrammarError
from unrender.grammar import Grammar, Role, chars, choice, literal, ref, repeat, sequence, tag, until
from unrender.types import Request

NESTED = Grammar(
    ref("list"),
    {"list": sequence("[", repeat(choice(ref("list"), "1"), 0, None, ","), "]")},
)


def test_the_same_seed_gives_the_same_text():
    """A sample can be repeated with its seed. Recursion ends: once the budget is spent, the shortest alternative is taken."""
    texts = [turn_of(NESTED).sample(seed) for seed in range(200)]

    assert texts == [turn_of(NESTED).sample(seed) for seed in range(200)]
    assert len(set(texts)) > 50
    assert max(map(len, texts)) < 2000


def test_free_text_holds_no_stop():
    """Text up to a stop contains the stop only at its end."""
    grammar = Grammar(sequence(until("</x>", "<y>"), "</x>"))

    texts = [turn_of(grammar).sample(seed) for seed in range(100)]

    assert all(text.index("</x>") == len(text) - 4 and "<y>" not in text for text in texts)


def test_free_text_is_interesting():
    """Samples contain quotes, line breaks, other scripts and beginnings of markers."""
    texts = "".join(turn_of(until("<end>")).sample(seed) for seed in range(100))

    assert [word for word in ('"', "\n", "東", "😀", "<e", "\\") if word not in texts] == []


def test_classes_are_obeyed():
    """Every character is a member of the class."""
    grammar = Grammar(chars("^a-z", 3, 5))

    texts = [turn_of(grammar).sample(seed) for seed in range(50)]

    assert all(3 <= len(text) <= 5 and not any("a" <= c <= "z" for c in text) for text in texts)


def test_a_grammar_without_end_is_an_error():
    """A grammar without a finite text has no sample."""
    with pytest.raises(GrammarError, match="it matches no finite text"):
        turn_of(Grammar(ref("a"), {"a": sequence("x", ref("a"))}), Request(tools=None)).sample(1)


def test_a_drawn_text_knows_its_parts():
    """Each tagged part has its position and role, outer parts first, and the text contains no marks."""
    inner = tag(Role.ARGUMENT, until(")"))
    call = sequence(tag(Role.NAME, "f"), tag(Role.ARGUMENT, sequence("(", inner, ")")))
    grammar = Grammar(sequence(tag(Role.CONTENT, until("f(")), call))

    draw = remainder_of(turn_of(grammar, Request(tools=None))).drawer()
    for seed in range(50):
        drawn = draw(seed)
        content, name, arguments, value = (drawn.text[part.start : part.end] for part in drawn.parts)
        assert (content + name + arguments, name, arguments) == (drawn.text, "f", f"({value})")
        assert drawn.text.index("f(") == len(content)
        assert not any("\ufdd0" <= character <= "\ufdef" for character in drawn.text)


@cases
def test_a_key_that_comes_twice_in_one_object(text: str, repeats: bool) -> None:
    """A duplicate key in one object is avoided if possible. Keys of inner objects and text in strings don't count."""
    drawn = {turn_of(choice(text, "other")).sample(seed) for seed in range(20)}

    assert drawn == {"other", *([] if repeats else [text])}
    assert turn_of(literal(text)).sample(1) == text
