"""What the prompt has already written is taken off the grammar."""

from __future__ import annotations

import pytest
from texts import generates

from unrender import GrammarError
from unrender.dialects.remainder import resume_after
from unrender.grammar import Grammar, Role
from unrender.nodes import Chars, Choice, Literal, Optional, Ref, Repeat, Sequence, Tag, Until

THOUGHT = Tag(Role.REASONING, Until(("</think>",)))
ANSWER = Choice((Sequence((Literal("<think>\n"), THOUGHT, Literal("</think>"), Literal("yes"))), Literal("no")))


@pytest.mark.parametrize(
    ("begun", "expected"),
    [
        ("", ANSWER),
        ("<thi", Sequence((Literal("nk>\n"), THOUGHT, Literal("</think>"), Literal("yes")))),
        ("<think>\n", Sequence((THOUGHT, Literal("</think>"), Literal("yes")))),
        ("<think>\nlong tho", Sequence((THOUGHT, Literal("</think>"), Literal("yes")))),
        ("<think>\n\n</think>", Literal("yes")),
        ("<think>\n\n</think>y", Literal("es")),
        ("n", Literal("o")),
    ],
)
def test_the_rest_of_an_answer_is_what_may_follow(begun, expected):
    """Reasoning that is open stays open, what is closed is after, and a half-written word is finished."""
    assert resume_after(Grammar(ANSWER), begun).root == expected


@pytest.mark.parametrize("begun", ["maybe", "<think>\n</think>no", "<think>\n</think></think>"])
def test_what_no_answer_begins_with_is_an_error(begun):
    """The prompt must begin an answer of the format."""
    with pytest.raises(GrammarError, match="which the format does not write"):
        resume_after(Grammar(ANSWER), begun)


def test_every_way_to_read_the_beginning_leaves_a_rest():
    """Repetitions, options, classes and rules are taken apart as far as the text goes."""
    root = Sequence((Repeat(Literal("ab"), 1, 3), Optional(Ref("digits")), Literal("!")))
    grammar = Grammar(root, {"digits": Chars((("0", "9"),), minimum=1, maximum=3)})

    rest = resume_after(grammar, "abab7").root

    assert [text for text in ["!", "7!", "77!", "777!", "ab!"] if generates(rest, text)] == ["!", "7!", "77!"]


def test_a_long_beginning_is_read_in_linear_time():
    """Free text may have ended at each of its characters; none of them is copied, and nothing is nested."""
    rest = resume_after(Grammar(Sequence((Until(("</x>",)), Literal("</x>")))), "a" * 300_000).root

    assert rest == Sequence((Until(("</x>",)), Literal("</x>")))


def test_a_beginning_that_takes_too_many_steps_is_an_error(monkeypatch):
    """A rule that begins with itself has no end of ways to be read."""
    monkeypatch.setattr("unrender.dialects.remainder.MAX_DOCUMENT", 1000)
    with pytest.raises(GrammarError, match="takes more than 1000 steps to read"):
        resume_after(Grammar(Ref("a"), {"a": Sequence((Optional(Literal("b")), Ref("a")))}), "c")
