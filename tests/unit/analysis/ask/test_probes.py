"""Tests of probes: conversations that analysis renders to learn about a template."""

from __future__ import annotations

import pytest
from rendering_rows import template_of

from unrender.analysis.ask import (
    BOS,
    CONTENT,
    EOS,
    NEEDLES,
    NUMBERS,
    USER,
    USER2,
    Prober,
    assistant,
    carries_needle,
    text_between,
    user,
)
from unrender.rendering import cost as budget

SOURCE = (
    "{{ bos_token }}{% for m in messages %}<{{ m.role }}{{ '-' if off }}>{{ m.content }}{% endfor %}{{ eos_token }}"
    "{{ tools | length if tools }}{{ '<assistant>' if add_generation_prompt }}"
)


def prober(source=SOURCE, **capabilities):
    return Prober(template=template_of(source)).with_capabilities(**capabilities)


def test_a_pause_of_the_process_refuses_no_probe(monkeypatch):
    """A probe is rendered again if the clock jumps during its rendering, as it may during garbage collection."""
    ticks = iter([0.0])
    monkeypatch.setattr(budget, "now", lambda: next(ticks, 100.0))
    many = Prober.within(template_of("{% for i in range(300) %}{{ i }} {% endfor %}"))

    assert many.render([user()]) == "".join(f"{i} " for i in range(300))
    assert len(many.texts) == 1


def test_answer_follows_the_last_input():
    """The answer starts after the question. BOS and EOS are needles, and tools are offered only to templates that support them."""
    plain, offering = prober(), prober(supports_tools=True)

    assert plain.answer(assistant(CONTENT)) == f"<assistant>{CONTENT}{EOS}"
    assert plain.answer(None, prompt=True) == f"{EOS}<assistant>"
    assert offering.answer(assistant(CONTENT)) == f"<assistant>{CONTENT}{EOS}3"
    assert plain.answer(assistant(CONTENT), after=[user(USER2)]) == f"<assistant>{CONTENT}<user>{USER2}{EOS}"
    assert plain.render([user()]) == f"{BOS}<user>{USER}{EOS}"


def test_answer_without_the_input_is_none():
    """The result is None if the rendering doesn't contain the question."""
    assert prober("<{{ messages[-1].content }}>").answer(assistant(CONTENT)) is None
    assert prober("{{ nothing.at.all }}").answer(assistant(CONTENT)) is None


REFUSING = (
    "{% for m in messages %}{% if loop.last and m.role == 'assistant' %}{{ raise_exception('no') }}{% endif %}"
    "<{{ m.role }}>{{ m.content }}</{{ m.role }}>{% endfor %}"
)


def test_answer_that_may_not_be_last_is_asked_on():
    """If a template refuses an answer as the last message, another question is added and cut off with its header."""
    assert prober(REFUSING).answer(assistant(CONTENT)) == f"</user><assistant>{CONTENT}</assistant>"
    assert prober(REFUSING).answer(assistant(CONTENT), after=[assistant(CONTENT)]) is None
    assert prober("{{ raise_exception('no') }}").answer(None) is None


def test_thinking_is_switched():
    """Thinking is on unless `thinking` is False. With None, the template decides."""
    switched = prober(thinking_off=(("off", True),), thinking_on=(("bos_token", "on"),))

    assert (switched.render([user()]) or "")[:2] == "on"
    assert "<user->" in (switched.render([user()], thinking=False) or "")
    assert (switched.render([user()], thinking=None) or "").startswith(BOS)


def test_what_was_rendered_is_remembered():
    """Each probe is rendered once, even by probers with other capabilities. A refused probe counts as a rendering."""
    first = prober()
    first.render([user()])
    first.with_capabilities(supports_tools=True).render([user()])
    assert len(first.texts) == 1

    first.render([user()], prompt=True)
    first.render([user("x")])
    assert len(first.texts) == 3
    assert not first.spent.is_over


def test_texts_are_cut_at_needles():
    """`text_between` returns the text between the last opening needle and the next closing one."""
    assert text_between("a(b(c)d)e", "(", ")") == "c"
    assert [text_between(text, "(", ")") for text in (None, "a)b", "a(b", "a)b(c")] == [None] * 4


@pytest.mark.parametrize("text", [*NEEDLES, *(str(number + i) for number in NUMBERS for i in range(3))])
def test_needles_are_recognised(text):
    """Every needle, and every number of a call, is found inside longer text."""
    assert carries_needle(f"x{text}y")
    assert not carries_needle(f"{text[0]} {text[1:]}")


def test_other_text_carries_no_needle():
    """Words and numbers next to the needles' numbers aren't needles."""
    assert not any(carries_needle(text) for text in ("", "x", str(NUMBERS[0] + 3), str(NUMBERS[0] - 1)))


def test_a_template_is_given_up_when_it_costs_too_much():
    """Beyond its limits, a prober renders nothing new, and its reason names the limit."""
    asked = prober()
    for number in range(400):
        asked.render([user(str(number))])

    assert asked.spent.is_over
    assert "400" in asked.spent.reason
    assert asked.render([user("another")]) is None
    assert asked.render([user("0")]) is not None
