"""What a template shows of an answer, and after which prompt."""

from __future__ import annotations

from dataclasses import replace

import pytest
from unit.verify.conftest import changed, sound

from unrender.verify.axes import Answer
from unrender.verify.shown import Shown, show, show_after_prompt

PROMPT = "<|user|>What about zebra crossings?<|end|><|assistant|>"
ROMULUS = Answer(calls=(("get_weather", {"text": "Rome"}),))
CALL_END = ' name="get_weather">{"text": "Rome"}</call>'


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Answer(content="It rains."), "It rains.<|end|>"),
        (Answer(content="It rains.", reasoning="Look."), "<think>Look.</think>It rains.<|end|>"),
        (ROMULUS, f"<call{CALL_END}<|end|>"),
        (Answer(content="a", calls=(*ROMULUS.calls, *ROMULUS.calls)), f"a<call{CALL_END}<call{CALL_END}<|end|>"),
        (Answer(calls=(("get_weather", {}),)), '<call name="get_weather">{}</call><|end|>'),
    ],
)
def test_what_the_model_would_write(answer, text):
    """The answer's text is what the rendering adds after the prompt, up to its end."""
    assert show(sound(), answer) == Shown(prompt=PROMPT, begun=PROMPT, text=text, expected=answer, whole=PROMPT + text)


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        ("in message.tool_calls or []", "in []", ROMULUS),
        ("call.function.name ~", "'f' ~", ROMULUS),
        ("call.function.arguments | tojson", "'{}'", ROMULUS),
        ("{{ '<think>' ~ message.reasoning_content ~ '</think>' }}", "", Answer(content="a", reasoning="zeal")),
        (
            "{{- message.content or '' }}",
            "{{- message.content if message.role == 'user' }}",
            Answer(content="It rains."),
        ),
        ("{{- message.content or '' }}", "", Answer(content="It rains.")),
        ("{{- '<|end|>' }}", "{{ raise_exception('no') if message.role == 'assistant' }}", Answer(content="It rains.")),
        ("{{ '<|assistant|>' }}", "{{ raise_exception('no') }}", Answer(content="It rains.")),
    ],
)
def test_what_is_not_written_is_not_shown(old, new, answer):
    """An answer of which a part is missing, changed or refused proves nothing."""
    assert show(changed(old, new), answer) is None


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ("Rome", "Rome other"),
        (True, False),
        (7, 8),
        (0.5, 1.5),
        (["a"], ["a", "other"]),
        ({"a": 1}, {"a": 1, "other": True}),
    ],
)
def test_arguments_of_every_kind_are_shown(value, other):
    """An argument is shown when another value in its place would be written otherwise."""
    answer = Answer(calls=(("get_weather", {"text": value}),))
    fixed = changed("call.function.arguments | tojson", "call.function.arguments.keys() | list | tojson")
    shown = show(sound(), answer)

    assert shown
    assert shown.expected == answer
    assert show(fixed, answer) is None
    assert value != other


def test_a_template_may_trim_content():
    """What is meant is then the trimmed text."""
    shown = show(
        changed("{{- message.content or '' }}", "{{- message.content | trim }}"), Answer(content=" It rains. ")
    )

    assert shown
    assert (shown.text, shown.expected.content) == ("It rains.<|end|>", "It rains.")


def test_an_epilogue_of_all_answers_is_not_the_models():
    """What is written after every answer in the history, before anything else, is cut off where the prompt says more."""
    source = "{{- '<|' ~ message.role ~ '|>' }}"
    subject = changed(source, f"{{{{- '(' ~ loop.length ~ ')' }}}}{source}")
    shown = show(subject, Answer(content="It rains."))

    assert shown
    assert shown.begun == "(2)<|user|>What about zebra crossings?<|end|>(2)<|assistant|>"
    assert shown.text == "It rains."


@pytest.mark.parametrize(
    ("fields", "prompt"),
    [
        ({}, PROMPT),
        ({"question": "Why?"}, "<|user|>Why?<|end|><|assistant|>"),
        ({"before": ({"role": "user", "content": "Hi"},)}, f"<|user|>Hi<|end|>{PROMPT}"),
        (
            {"before": (ROMULUS.to_openai(),), "question": "7"},
            f"<|assistant|><call{CALL_END}<|end|><|tool|>7<|end|><|assistant|>",
        ),
    ],
)
def test_prompts(fields, prompt):
    """The question comes last; after a call it is the call's result."""
    assert replace(sound(), **fields).prompt == prompt


def test_prompts_that_go_on():
    """What follows an answer follows it in the prompt, and nothing asks in a rendering."""
    answer, asked = {"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}

    assert sound().prompt_after(answer, asked) == f"{PROMPT}a<|end|><|user|>b<|end|><|assistant|>"
    assert sound().render(answer) == f"{PROMPT}a<|end|>"
    assert changed("{{- '<|end|>' }}", "{{ raise_exception('no') }}").render(answer) is None


OPENED = ("{{ '<|assistant|>' }}", "{{ '<|assistant|><think>' }}")
CLOSED = ("{{ '<|assistant|>' }}", "{{ '<|assistant|><think></think>' }}")


@pytest.mark.parametrize(
    ("change", "answer", "text"),
    [
        (OPENED, Answer(content="a", reasoning="zeal"), "zeal</think>a<|end|>"),
        (OPENED, Answer(content="a"), None),
        (CLOSED, Answer(content="a", reasoning="zeal"), None),
        (CLOSED, Answer(content="It rains."), "It rains.<|end|>"),
    ],
)
def test_answers_go_on_where_the_prompt_breaks_off(change, answer, text):
    """What the prompt has opened or closed is not written again; an answer that does not follow from it is not shown."""
    subject = changed(*change)
    shown = show_after_prompt(subject, answer)

    assert (shown and shown.text) == text
    assert shown is None or shown.prompt == subject.prompt


def test_an_answer_goes_on_after_a_prompt_that_begins_nothing():
    """Then the text is the whole of it."""
    assert show_after_prompt(sound(), ROMULUS) == show(sound(), ROMULUS)
