"""Random texts of a grammar."""

from __future__ import annotations

import pytest

from unrender import GrammarError
from unrender.dialects.sample import draw, repeats_a_key, sample_text
from unrender.grammar import Grammar, Role
from unrender.nodes import Chars, Choice, JsonValue, Literal, Ref, Repeat, Sequence, Tag, Until

NESTED = Grammar(
    Ref("list"),
    {
        "list": Sequence(
            (Literal("["), Repeat(Choice((Ref("list"), Literal("1"))), 0, None, Literal(",")), Literal("]"))
        )
    },
)


def test_the_same_seed_gives_the_same_text():
    """A sample can be drawn again."""
    assert [sample_text(NESTED, seed) for seed in range(20)] == [sample_text(NESTED, seed) for seed in range(20)]


def test_other_seeds_give_other_texts():
    """The texts vary."""
    assert len({sample_text(NESTED, seed) for seed in range(20)}) > 5


def test_the_budget_bounds_the_size():
    """Recursion ends: once the budget is spent, the shortest way out is taken."""
    assert max(len(sample_text(NESTED, seed, budget=50)) for seed in range(200)) < 2000


def test_free_text_holds_no_stop():
    """Text up to a stop holds it once, at its end."""
    grammar = Grammar(Sequence((Until(("</x>", "<y>")), Literal("</x>"))))

    texts = [sample_text(grammar, seed) for seed in range(100)]

    assert all(text.index("</x>") == len(text) - 4 and "<y>" not in text for text in texts)


def test_free_text_is_interesting():
    """Quotes, line breaks, other scripts and beginnings of markers occur."""
    texts = "".join(sample_text(Grammar(Until(("<end>",))), seed) for seed in range(100))

    assert [word for word in ('"', "\n", "東", "😀", "<e", "\\") if word not in texts] == []


def test_classes_are_obeyed():
    """Characters come from their class alone."""
    grammar = Grammar(Chars((("a", "z"),), negated=True, minimum=3, maximum=5))

    texts = [sample_text(grammar, seed) for seed in range(50)]

    assert all(3 <= len(text) <= 5 and not any("a" <= c <= "z" for c in text) for text in texts)


def test_a_grammar_without_end_is_an_error():
    """When no text ends, there is nothing to draw."""
    with pytest.raises(GrammarError, match="no text of it ends"):
        sample_text(Grammar(Ref("a"), {"a": Sequence((Literal("x"), Ref("a")))}), 1)


def test_json_must_be_spelled_out():
    """A schema alone cannot be drawn from."""
    with pytest.raises(GrammarError, match="JsonValue cannot be drawn"):
        sample_text(Grammar(Ref("value"), {"value": JsonValue({})}), 1)


def test_a_drawn_text_knows_its_parts():
    """Each tagged stretch is given with its role, outer ones first, and no mark is left in the text."""
    inner = Tag(Role.ARGUMENT, Until((")",)))
    call = Sequence((Tag(Role.NAME, Literal("f")), Tag(Role.ARGUMENT, Sequence((Literal("("), inner, Literal(")"))))))
    grammar = Grammar(Sequence((Tag(Role.CONTENT, Until(("f(",))), call)))

    for seed in range(50):
        drawn = draw(grammar, seed)
        content, name, arguments, value = (drawn.text[part.start : part.end] for part in drawn.parts)
        assert (content + name + arguments, name, arguments) == (drawn.text, "f", f"({value})")
        assert drawn.text.index("f(") == len(content)
        assert not any("\ufdd0" <= character <= "\ufdef" for character in drawn.text)


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        ('{"a": 1, "b": 2}', False),
        ('{"a": 1, "b": 2, "a": 3}', True),
        ("{'': True, \"\": None}", True),
        ('{a:1,b:{a:1,c:[{"a": 2}]}}', False),
        ('it\'s {"x": [{"a": 1, "b": "}", "a": 2}]}', True),
        ('{"a": "a: 1, a: 2"}', False),
        ("no object: a: b, a: c", False),
        ("{" * 10_000, False),
    ],
)
def test_a_key_that_comes_twice_in_one_object(text: str, repeats: bool) -> None:
    """Keys of objects inside are others, and so is what strings hold; such a text is drawn again while there is another."""
    assert repeats_a_key(text) is repeats
    assert sample_text(Grammar(Literal(text)), 1) == text
