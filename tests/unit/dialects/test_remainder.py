"""The grammar of the rest of an answer after the prefill, and random samples of a grammar."""

from __future__ import annotations

import pytest
from cases import cases
from engines import lark_reader
from lexing import remainder_of
from remainders import node_of, turn_of

from unrender import GrammarError
from unrender.grammar import (
    Grammar,
    Role,
    chars,
    choice,
    literal,
    optional,
    reasoning,
    ref,
    repeat,
    sequence,
    tag,
    until,
)
from unrender.types import Request

ANSWER = choice(sequence("<think>\n", reasoning(until("</think>")), "</think>", "yes"), "no")


@cases
def test_the_rest_of_an_answer_is_what_may_follow(prefill, rest):
    """The grammar continues open reasoning, begins after closed reasoning, or completes a partial literal."""
    assert (
        turn_of(ANSWER, prefill=prefill).constraint("llama.cpp").grammar
        == turn_of(node_of(rest)).constraint("llama.cpp").grammar
    )


@pytest.mark.parametrize("prefill", ["maybe", "<think>\n</think>no", "<think>\n</think></think>"])
def test_what_no_answer_begins_with_is_an_error(prefill):
    """The prefill must be the beginning of an answer in the format."""
    with pytest.raises(GrammarError, match="which the format doesn't allow"):
        turn_of(ANSWER, prefill=prefill).constraint("llama.cpp")


def test_every_way_to_read_the_beginning_leaves_a_rest():
    """The rest covers every way to parse the prefill, through repetitions, options, classes and rules."""
    root = sequence(repeat("ab", 1, 3), optional(ref("digits")), "!")
    accepts = lark_reader(
        turn_of(Grammar(root, {"digits": chars("0-9", 1, 3)}), prefill="abab7").constraint("llguidance").grammar
    )

    assert [text for text in ["!", "7!", "77!", "777!", "ab!"] if accepts(text)] == ["!", "7!", "77!"]


def test_a_long_beginning_is_read_in_linear_time():
    """Free text may end at any character of the prefill, but the grammar isn't copied or nested for each one."""
    answer = sequence(until("</x>"), "</x>")

    assert (
        turn_of(answer, prefill="a" * 300_000).constraint("llama.cpp").grammar
        == turn_of(answer).constraint("llama.cpp").grammar
    )


def test_a_beginning_that_takes_too_many_steps_is_an_error(monkeypatch):
    """A rule that begins with itself can match the prefill in infinitely many ways."""
    monkeypatch.setattr("unrender.dialects.remainder.MAX_DOCUMENT", 1000)
    with pytest.raises(GrammarError, match="takes more than 1000 steps to read"):
        turn_of(
            Grammar(ref("a"), {"a": sequence(optional("b"), ref("a"))}), prefill="c", request=Request(tools=None)
        ).constraint("llama.cpp")


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
