"""How prompts end, and whether one extends the one before."""

from __future__ import annotations

from dataclasses import replace

import pytest
from unit.lint.conftest import changed, seen, sound

from unrender.lint import prompts

ASKS = "{%- if add_generation_prompt %}"
NEVER, ALWAYS = (ASKS, "{%- if false %}"), (ASKS, "{%- if true %}")
ROLE = "{{- '<|' ~ message.role ~ '|>' }}"
END = "{{- '<|end|>' }}"


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        ([], []),
        ([NEVER], ["`add_generation_prompt` does nothing; '<|assistant|>' is never asked for"]),
        ([ALWAYS], []),
        ([NEVER, (ROLE, "")], []),  # answers have no header
        ([NEVER, ("in messages %}", "in [] %}")], []),
        (  # headers differ, so none of them could be asked for
            [NEVER, (ROLE, "{{- '(' ~ (message.reasoning_content or message.content) ~ ')' }}")],
            ["`add_generation_prompt` does nothing; '(' is never asked for"],
        ),
    ],
)
def test_a_prompt_that_does_not_ask(changes, sentences):
    """A header that all answers have is missing at the prompt's end."""
    found = seen(prompts.generation_prompt_missing, changed(*changes))

    assert found == sentences


@pytest.mark.parametrize(
    ("changes", "count"),
    [([], 0), ([ALWAYS], 1), ([NEVER], 0), ([ALWAYS, ("'<|assistant|>'", "'<|bot|>'")], 0)],
)
def test_a_prompt_that_always_asks(changes, count):
    """The header of an answer is written after a finished conversation."""
    sentence = "the prompt for the next answer is written although `add_generation_prompt` is false"

    assert seen(prompts.generation_prompt_always, changed(*changes)) == [sentence] * count


@pytest.mark.parametrize(("header", "count"), [("<|assistant|>", 1), (">", 0), (" >", 0), ("<|user|>", 0)])
def test_the_header_is_one_of_the_formats(header, count):
    """A header of one character is not a header, nor is one that is not at the end."""
    turn = replace(sound().format.turn, headers=(header,))
    subject = replace(changed(ALWAYS), format=replace(sound().format, turn=turn))

    assert len(seen(prompts.generation_prompt_always, subject)) == count


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        ([], []),
        (
            [(END, "{{- '<|end|>' if loop.last else '<|over|>' }}")],
            [
                "the next question changes the prompt before it: 'end|><|assistant|>' is not kept",
                "the next question, with tools changes the prompt before it: 'end|><|assistant|>' is not kept",
                "a tool's result changes the prompt before it: 'end|><|assistant|>' is not kept",
            ],
        ),
        (
            [(END, "{{- '<|over|>' if message.role == 'assistant' and not loop.last else '<|end|>' }}")],
            [
                "the next question changes the answer before it: 'end|>' is not kept",
                "the next question, with tools changes the answer before it: 'end|>' is not kept",
                "a tool's result changes the answer before it: 'end|>' is not kept",
            ],
        ),
        (
            [
                (END, "{{- '<|over|>' if tools and not loop.last else '<|end|>' }}"),
                ("in message.tool_calls or []", "in []"),
            ],
            ["the next question, with tools changes the prompt before it: 'end|><|assistant|>' is not kept"],
        ),
        (
            [
                (END, "{{- '<|end|>' if loop.last else '<|over|>' }}"),
                ("{{- bos_token }}", "{{ raise_exception('no') if messages[2] is defined }}"),
            ],
            [],
        ),
    ],
)
def test_prompts_that_are_not_kept(changes, sentences):
    """What of the prompt or of the answer is changed is said, for each conversation that goes on."""
    assert seen(prompts.not_prefix_stable, changed(*changes)) == sentences


def test_the_changed_place_is_shown():
    """The excerpt is of the later prompt."""
    first = next(iter(prompts.not_prefix_stable(changed((END, "{{- '<|end|>' if loop.last else '<|over|>' }}")))))

    assert first.excerpt.startswith("<|user|>Tell me about ZEBRAS.<|over|><|assistant|>")
