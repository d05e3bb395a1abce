"""What surrounds an answer: other prompts, the next turn, other shapes, hostile questions."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from unit.verify.conftest import changed, sound

from unrender.format import CallSyntax, Content, Format, Reasoning
from unrender.verify.axes import Answer
from unrender.verify.turns import (
    later_turns,
    markers_in_question,
    message_shapes,
    second_turn,
    text_in_strings,
    thinking,
)

ROME = Answer(calls=(("get_weather", {"text": "Rome"}),))
ANSWERS = (Answer(content="It rains."), Answer(content="It rains.", reasoning="Look."), ROME)
ROLE = "{{- '<|' ~ message.role ~ '|>' }}"
DROPPED = ("in message.tool_calls or []", "in []")


def switched(written):
    """Return a template whose prompt depends on a switch."""
    subject = changed("{{ '<|assistant|>' }}", written)
    known = replace(
        subject.capabilities,
        supports_enable_thinking=True,
        thinking_on=(("enable_thinking", True),),
        thinking_off=(("enable_thinking", False),),
    )
    return replace(subject, capabilities=known)


@pytest.mark.parametrize(
    ("written", "on", "line"),
    [
        ("{{ '<|assistant|>' }}", True, "thinking on: proved (3 of 3)"),
        ("{{ '<|assistant|>' }}", False, "thinking off: proved (2 of 2)"),
        ("{{ '<|assistant|>' ~ ('<think>' if enable_thinking else '') }}", True, "thinking on: proved (1 of 1)"),
        (
            "{{ '<|assistant|>' ~ ('' if enable_thinking else '<think></think>') }}",
            False,
            "thinking off: proved (2 of 2)",
        ),
    ],
)
def test_answers_after_a_switched_prompt(written, on, line):
    """Answers are read after what the switch makes the prompt write; off, none of them has reasoning."""
    assert str(thinking(switched(written), ANSWERS, Random(0), on=on)) == line


@pytest.mark.parametrize(("on", "name"), [(True, "thinking on"), (False, "thinking off")])
def test_a_template_without_a_switch(on, name):
    """Without a switch there is nothing to see."""
    assert str(thinking(sound(), ANSWERS, Random(0), on=on)) == (
        f"{name}: not observable: the template has no switch for it"
    )


@pytest.mark.parametrize(
    ("subject", "line"),
    [
        (sound(), "proved (1 of 1)"),
        (changed(*DROPPED), "not observable: the template takes no results of calls"),
        (
            changed(ROLE, ROLE + "{{ raise_exception('no') if message.role == 'tool' }}"),
            "not observable: the template takes no results of calls",
        ),
        (
            replace(sound(), format=replace(sound().format, tools=CallSyntax(), tolerated=())),
            "refuted (0 of 1)",
        ),
    ],
)
def test_the_turn_after_a_call(subject, line):
    """The next prompt from what was read is the next prompt from what was meant."""
    assert str(second_turn(subject, ANSWERS)) == f"second turn: {line}"


@pytest.mark.parametrize(
    ("subject", "lines"),
    [
        (sound(), ["proved (4 of 4)", "proved (4 of 4)"]),
        (changed(*DROPPED), ["proved (3 of 3)", "not observable: the template does not render calls"]),
    ],
)
def test_later_turns(subject, lines):
    """Answers to a second question and to a result are read, and so is the prompt before them, which says nothing."""
    found = list(map(str, later_turns(subject, ANSWERS, Random(0))))

    assert found == [f"after another answer: {lines[0]}", f"after a tool's result: {lines[1]}"]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("message.content or ''", "message.content or ''", "proved (5 of 5)"),
        (*DROPPED, "proved (2 of 2)"),
        (
            ROLE,
            ROLE + "{{ raise_exception('no') if message.role == 'assistant' }}",
            "not observable: the template does not render it",
        ),
    ],
)
def test_messages_in_other_shapes(old, new, line):
    """Null, missing and typed content, and arguments as objects, are written as the usual message is."""
    assert str(message_shapes(changed(old, new))) == f"message shapes: {line}"


def test_a_question_that_spells_the_markers():
    """An answer means the same, whatever the question says."""
    assert str(markers_in_question(sound(), ANSWERS, Random(0))) == "markers in a question: proved (3 of 3)"


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (replace(sound(), format=Format()), "the format has no markers"),
        (
            changed("message.content or ''", "message.content | replace('<|end|>', '')"),
            "the template refuses or changes such questions",
        ),
    ],
)
def test_questions_without_markers(subject, reason):
    """There may be no markers, or a template that takes them out."""
    assert str(markers_in_question(subject, ANSWERS, Random(0))) == f"markers in a question: not observable: {reason}"


@pytest.mark.parametrize(
    ("subject", "line"),
    [
        (sound(), "proved (12 of 12)"),
        (changed(*DROPPED), "not observable: the template does not render it"),
        (
            replace(sound(), format=replace(sound().format, reasoning=Reasoning(), content=Content())),
            "proved (10 of 10)",
        ),
    ],
)
def test_quotes_and_markers_in_strings(subject, line):
    """Eight texts with quotes, and one with each marker of the format, come back from a call's arguments."""
    assert str(text_in_strings(subject, Random(0))) == f"quotes and markers in strings: {line}"
