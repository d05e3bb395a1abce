"""From answers that were read to a verdict."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest
from unit.verify.conftest import changed, sound

from unrender.format import CallSyntax, Format, TurnTexts
from unrender.verify.axes import Answer
from unrender.verify.judge import claims, described, finding, judge_capability, parse, refute, with_and_without_end
from unrender.verify.report import CapabilityFinding, Counterexample, Verdict
from unrender.verify.shown import Shown, show

CALL = ("get_weather", {"text": "Rome"})
WRITTEN = '<call name="get_weather">{"text": "Rome"}</call><|end|>'


def failure(answer):
    return Counterexample(answer=answer, expected="e", found="f", chunking="whole")


def test_nothing_tried_is_not_observable():
    """The reason says why there was nothing to try."""
    assert finding("a", [], reason="why") == CapabilityFinding(
        capability="a", verdict=Verdict.NOT_OBSERVABLE, reason="why"
    )
    assert finding("a", []).reason == "the template does not render it"


def test_what_held_is_proved():
    """Each answer that came back counts."""
    assert finding("a", [None, None], reason="why") == CapabilityFinding(
        capability="a", verdict=Verdict.PROVED, held=2, total=2
    )


def test_the_smallest_failure_is_the_counterexample():
    """One failure refutes; of several, the shortest answer is shown."""
    assert finding("a", [failure("long one"), None, failure("short")]) == CapabilityFinding(
        capability="a", verdict=Verdict.REFUTED, held=1, total=3, counterexample=failure("short")
    )


@pytest.mark.parametrize(
    ("text", "end", "ends", "forms"),
    [
        ("a<|end|>", "<|end|>", (), ["a<|end|>", "a"]),
        ("a<|end|>\n", "<|end|>", (), ["a<|end|>\n", "a"]),
        ("a\n<|end|>", "\n<|end|>", (), ["a\n<|end|>", "a"]),
        ("a <|end|>", "<|end|>", (), ["a <|end|>", "a "]),
        ("a<e><|end|>", "<|end|>", ("<e>",), ["a<e><|end|>", "a"]),
        ("a<e>", "<|end|>", ("<e>",), ["a<e>", "a"]),
        ("a<|end|>b", "<|end|>", (), ["a<|end|>b"]),
        ("a", "<|end|>", (), ["a"]),
        ("a\n", "\n", (), ["a\n"]),  # white space alone is not an end that can be told from text
    ],
)
def test_ends_are_taken_away(text, end, ends, forms):
    """An answer is read as it is and, where it ends a turn, without all that ends it."""
    assert list(with_and_without_end(Format(turn=TurnTexts(end=end, ends=ends)), text)) == forms


@pytest.mark.parametrize(
    ("answer", "gave_up", "claimed"),
    [
        (Answer(calls=(CALL,)), False, True),
        (Answer(calls=(CALL,)), True, False),
        (Answer(content="x"), True, True),
        (Answer(content="x", reasoning="y"), True, True),
    ],
)
def test_what_was_given_up_is_not_claimed(answer, gave_up, claimed):
    """Where analysis has said that it gave up, a format is held to no more than it claims."""
    format = replace(sound().format, tools=CallSyntax(), tolerated=())

    assert claims(replace(sound(), format=format, gave_up=gave_up), answer) is claimed


def test_a_message_is_described_with_the_status_of_its_calls():
    """A call that is cut off is in no message, so its status tells of it."""
    message = parse(sound(), "", ['<call name="get_weather">{"text": "Ro'])

    assert json.loads(described(message))["dead_calls"] == ["get_weather: truncated"]
    assert "dead_calls" not in json.loads(described(parse(sound(), "", ["é"])))
    assert "é" in described(parse(sound(), "", ["é"]))


@pytest.mark.parametrize("chunks", [[WRITTEN], list(WRITTEN), [WRITTEN[:9], WRITTEN[9:]]])
def test_chunks_are_read_as_one(chunks):
    """However an answer is cut, it means the same."""
    (call,) = parse(sound(), "", chunks).tool_calls

    assert (call.name, call.arguments) == ("get_weather", '{"text": "Rome"}')


@pytest.mark.parametrize(
    ("text", "expected", "held"),
    [
        ("x<|end|>", Answer(content="x"), True),
        ("x<|end|>", Answer(content="y"), False),
        ("<think>r</think>x<|end|>", Answer(content="x", reasoning="r"), True),
        ("<think>more r</think>x<|end|>", Answer(content="x", reasoning="r"), True),
        ("<think>r</think>x<|end|>", Answer(content="x"), False),
        ("x<|end|>", Answer(content="x", reasoning="r"), False),
        (WRITTEN, Answer(calls=(CALL,)), True),
        (WRITTEN, Answer(calls=(CALL, CALL)), False),
        (WRITTEN, Answer(), False),
        (WRITTEN, Answer(calls=(("find_place", {"text": "Rome"}),)), False),
        (WRITTEN, Answer(calls=(("get_weather", {"text": "Oslo"}),)), False),
        ('<call name="get_weather">{"text": "Ro', Answer(calls=(CALL,)), False),
        (
            '<call name="get_weather">{"note": "a", "text": "b"}</call>',
            Answer(calls=(("get_weather", {"text": "b", "note": "a"}),)),
            True,
        ),
    ],
)
def test_what_is_read_is_what_was_meant(text, expected, held):
    """Content is the same, reasoning ends alike, calls have their names and the same arguments in any order."""
    example = refute(sound(), Shown("", "", text, expected, whole="other"), Random(0))

    assert (example is None) is held


def test_a_counterexample_says_how_the_answer_was_cut():
    """The first cut that fails is named, with both messages in JSON."""
    example = refute(sound(), Shown("", "", "x<|end|>", Answer(content="y")), Random(0))

    assert (example.answer, example.chunking) == ("x<|end|>", "whole")
    assert json.loads(example.expected)["content"] == "y"
    assert json.loads(example.found)["content"] == "x"


def test_what_the_template_writes_alike_is_the_same():
    """A message that renders to the same text could be told from the other by no reader."""
    lowering = changed(
        "{{- message.content or '' }}",
        "{{- message.content | lower if message.role == 'assistant' else message.content }}",
    )
    shown = show(lowering, Answer(content="rain"))
    assert shown
    upper = replace(shown, text="RAIN<|end|>")

    assert refute(lowering, upper, Random(0)) is None
    assert refute(sound(), upper, Random(0)) is not None


@pytest.mark.parametrize(
    ("subject", "answers", "line"),
    [
        (sound(), [Answer(calls=(CALL,)), Answer(content="x")], "a: proved (2 of 2)"),
        (sound(), [], "a: not observable: the template does not render it"),
        (
            changed("in message.tool_calls or []", "in []"),
            [Answer(calls=(CALL,))],
            "a: not observable: the template does not render it",
        ),
        (
            replace(sound(), format=replace(sound().format, tools=CallSyntax(), tolerated=()), gave_up=True),
            [Answer(calls=(CALL,))],
            "a: not observable: the format does not claim to read it",
        ),
        (
            replace(sound(), format=replace(sound().format, tools=CallSyntax(), tolerated=())),
            [Answer(calls=(CALL,)), Answer(content="x")],
            "a: refuted (1 of 2)",
        ),
    ],
)
def test_a_capability_is_judged(subject, answers, line):
    """Only answers that are shown and claimed are judged."""
    assert str(judge_capability(subject, "a", answers, Random(0))) == line
