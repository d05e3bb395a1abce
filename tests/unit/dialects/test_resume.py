"""Tests of the grammar of the rest of an answer, after the prefill."""

from __future__ import annotations

import pytest
from cases import cases
from engines import lark_reader
from remainders import node_of, turn_of

from unrender import GrammarError
from unrender.grammar import Grammar, chars, choice, optional, reasoning, ref, repeat, sequence, until
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
