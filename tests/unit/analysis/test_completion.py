"""Tests of rebuilding the probes from a format."""

from __future__ import annotations

import re
from dataclasses import replace

import corpus
import pytest
from rendering_rows import template_of

from unrender.analysis.ask import CONTENT, NAMES, REASONING, Prober
from unrender.analysis.ask.answers import Answers, render_answers, render_turns
from unrender.analysis.ask.discovery import discover
from unrender.analysis.completion import calls_are_refuted, find_doubts
from unrender.analysis.find.turn_frame import TurnFrame, find_frame
from unrender.format import CallSyntax, Format, Reasoning, ReasoningMode, Slot, TurnTexts


@pytest.fixture
def proof():
    path = corpus.TEMPLATES / "json-tags.jinja"
    prober = discover(Prober(template=template_of(path.read_text(encoding="utf-8"))))
    frame = find_frame(render_turns(prober), part_opener="")
    return render_answers(prober, frame.body, frame.prefill), frame, corpus.derived_format(path)


def doubts(proof, format: Format):
    answers, frame, _ = proof
    return find_doubts(answers, frame, format)


def test_wrong_marker_is_a_doubt(proof):
    """A wrong marker causes a doubt for every shape that contains it, and the message quotes both texts."""
    format = proof[2]
    wrong = replace(format, tools=replace(format.tools, call_start="<call>"))

    found = doubts(proof, wrong)

    assert re.search("rendered as .*<tool_call>.*, understood as .*<call>", found["one call"])
    assert calls_are_refuted(found, wrong)
    assert not calls_are_refuted((), wrong)


def test_shapes_that_do_not_show_all_parts_are_not_judged():
    """An answer is compared with the format only if it contains its needles."""
    frame = TurnFrame(lead="", header="", appended="Bye")
    hidden = Answers(content="nothing", mixed=f"{CONTENT}!", two_calls=NAMES[0], reasoned=CONTENT)
    written = Answers(content=f"{CONTENT}!", empty_call=f" {CONTENT}")

    assert find_doubts(hidden, frame, Format()) == {}
    assert [*find_doubts(written, frame, Format())] == ["content"]
    assert find_doubts(Answers(content=f"{CONTENT} Bye"), frame, Format()) == {}
    later = Answers(content="nothing", reasoned=f"{CONTENT}{REASONING}")
    assert [*find_doubts(later, frame, Format())] == ["reasoning and content"]


def test_what_ends_a_turn_is_no_doubt():
    """An answer may be followed by any end of turn, or by none. The empty form of reasoning may be missing."""
    frame = TurnFrame(lead="", header="")
    ended = Format(
        reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<r>", end="</r>", empty="<r></r>"),
        turn=TurnTexts(end="<end>", ends=("<stop>",)),
    )

    for text in (CONTENT, f"{CONTENT}<end>", f"{CONTENT}<stop>", f"<r></r>{CONTENT}", f"<r>\n</r>{CONTENT}\n<end>"):
        assert find_doubts(Answers(content=text), frame, ended) == {}
    assert find_doubts(Answers(content=f"{CONTENT}<other>"), frame, ended) != {}


def test_a_doubt_shows_both_texts():
    """The message names the shape, and quotes the rendered and the rebuilt text, both shortened."""
    frame = TurnFrame(lead="", header="")

    assert find_doubts(Answers(content=f"<a>{CONTENT}"), frame, Format()) == {
        "content": f"content: rendered as '<a>{CONTENT}', understood as '{CONTENT}'"
    }
    (long,) = find_doubts(Answers(content=CONTENT + "a" * 900), frame, Format()).values()
    assert len(long) < 500


def test_two_calls_count_where_they_may_be():
    """A syntax is refuted if it reproduces neither one call nor two, or not one call if it allows only one."""
    one, two = "one call", "two calls"
    tools = CallSyntax(call_start="<c>", call_end="</c>", function=(Slot.NAME, ":", Slot.ARGUMENTS))
    several, single = Format(tools=tools), Format(tools=replace(tools, parallel=False))

    assert [calls_are_refuted(doubts, several) for doubts in ((one,), (two,), (one, two))] == [False, False, True]
    assert [calls_are_refuted(doubts, single) for doubts in ((one,), (two,))] == [True, False]
    assert not calls_are_refuted((one, two), Format())
