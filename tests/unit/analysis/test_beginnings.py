"""Tests of prompts that begin the answer differently from the history."""

from __future__ import annotations

import json

import pytest
from cases import cases

from unrender import ChatTemplate, Parser

MESSAGES = "{% for m in messages %}<{{ m.role }}>{{ before if m.role == 'assistant' }}{{ m.content }}<end>{% endfor %}"
TOOL = {"name": "now"}


@cases
@pytest.mark.parametrize("tools", [None, [TOOL]])
def test_answers_are_generated_after_every_prompt(prompt, before, begun, tools):
    """If prompt and history differ, the prompt's text is a header. Grammars can be written, and samples are parsed without errors."""
    source = f"{{% set before = {before!r} %}}{MESSAGES}{{% if add_generation_prompt %}}{prompt}{{% endif %}}"
    template = ChatTemplate.from_string(source)

    headers = template.format.turn.headers
    turn = template.prepare([{"role": "user", "content": "Hi"}], tools=tools)

    assert headers[-1].endswith(begun)
    assert turn.prefill == ""
    assert turn.constraint("llama.cpp").grammar
    assert turn.constraint("llguidance").grammar
    assert json.loads(turn.constraint("xgrammar").grammar)
    for seed in range(5):
        parser = Parser(turn.format, turn.request, prompt=turn.prompt, strict=True)
        parser.finish(text=turn.sample(seed))


def test_reasoning_that_the_prompt_opens_stays_open():
    """Only the text before the opening marker becomes a header."""
    source = (
        "{% for m in messages %}<{{ m.role }}>{{ ' <think>' ~ m.reasoning_content ~ '</think>' if m.reasoning_content }}"
        "{{ m.content }}<end>{% endfor %}{% if add_generation_prompt %}<assistant>:<think>{% endif %}"
    )
    turn = ChatTemplate.from_string(source).prepare([{"role": "user", "content": "Hi"}])

    assert turn.prefill.endswith("<think>")
    assert turn.parse("Hm.</think>Yes.<end>").reasoning == "Hm."
    assert turn.constraint("llama.cpp").grammar
