"""Probes: conversations that analysis renders to learn about a template. Other discoveries are rows of `tests/corpus/analysis.jsonl`."""

from __future__ import annotations

import time

import pytest
from rendering_rows import template_of

from unrender import ChatTemplate
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
from unrender.analysis.ask.discovery import discover
from unrender.analysis.completion import find_example
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


SAYS = "{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}{% endfor %}"
OFF = ["disabled", "off", "none", "no", "false", "never", "disable", "no_think", "nothink"]
ON = ["enabled", "on", "true", "always", "enable", "high", "max", "think", "auto", "adaptive"]


@pytest.mark.parametrize(("on", "off"), [*(("on", word) for word in OFF), *((word, "off") for word in ON)])
def test_words_switch_thinking(on, off):
    """A variable that is compared with a word for on and a word for off switches thinking, even among other words."""
    test = f"{{{{ 'x' if thinking in ['some', '{off}', 'more', '{on}'] }}}}{{{{ 'y' if thinking == '{off}' }}}}"

    observed = ChatTemplate.from_string(SAYS + test).analysis.capabilities

    assert (observed.thinking_on, observed.thinking_off) == ((("thinking", on),), (("thinking", off),))


OFFERING = (
    "{%- if tools -%}<|system|>{{ tools | tojson }}\nEXAMPLE<|end|>{%- endif -%}"
    "{%- for m in messages -%}<|{{ m.role }}|>{{ m.content }}<|end|>{%- endfor -%}"
)


def found(example: str):
    return find_example(discover(Prober(template=template_of(OFFERING.replace("EXAMPLE", example)))))


def test_a_template_that_offers_no_tools_has_no_example():
    """An example in the prompt is ignored if the template doesn't render tools."""
    template = template_of('{"name": <n>, "arguments": <a>}{% for m in messages %}{{ m.content }}{% endfor %}')

    assert find_example(discover(Prober(template=template))) is None


@pytest.mark.parametrize(
    "unit",
    ['{"' + "name" * 20_000, '{"name": "x", "' + "arg" * 20_000, '{"name": ' * 10_000, "{" + " " * 80_000 + '"name"'],
    ids=["a long name", "long arguments", "many beginnings", "space"],
)
def test_a_prompt_that_never_becomes_an_example_takes_no_time(unit):
    """The search for an example reads each possible start once. It used to take ten seconds for 20,000 words."""
    start = time.process_time()

    assert found(unit) is None
    assert time.process_time() - start < 2


WANTS_RESULTS = (
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}"
    "{% if m.role == 'user' and loop.previtem and loop.previtem.tool_calls %}{{ raise_exception('no result') }}{% endif %}"
    "<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}</>"
    "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)


def test_a_result_that_may_still_come_is_not_missing():
    """The first of two results is rendered unchanged, even if the template refuses a user message after an unanswered call."""
    calls = [{"id": f"call0000{i}", "function": {"name": "now", "arguments": "{}"}} for i in range(2)]
    asked, called = {"role": "user", "content": "Now?"}, {"role": "assistant", "tool_calls": calls}

    turn = ChatTemplate.from_string(WANTS_RESULTS).prepare(
        [asked, called, {"role": "tool", "tool_call_id": "call00000", "content": "noon"}]
    )

    assert turn.prompt.endswith("<tool>noon</><assistant>")
    assert turn.warnings == ()
