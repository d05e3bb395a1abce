"""The author of each part of a rendered conversation."""

from __future__ import annotations

from pathlib import Path

import pytest
from byte_tokenizer import byte_level

from unrender import ChatTemplate
from unrender.token_ids import PromptEncoder
from unrender.training.attribution import attributed_conversation, attributed_prompt

SOURCE = (Path(__file__).resolve().parents[2] / "templates" / "json-tags.jinja").read_text(encoding="utf-8")
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
    {"role": "assistant", "content": "Hi."},
    {"role": "user", "content": "Bye"},
]
SAID = [
    ("<|system|>", 0, False, False),
    ("Be brief.", 0, True, False),
    ("<|end|>", 0, False, False),
    ("<|user|>", 1, False, False),
    ("Hello", 1, True, False),
    ("<|end|>", 1, False, False),
    ("<|assistant|>", 2, False, False),
    ("<think>\n\n</think>\n\nHi.<|end|>", 2, True, True),
    ("<|user|>", 3, False, False),
    ("Bye", 3, True, False),
    ("<|end|>", 3, False, False),
]


@pytest.fixture(scope="module")
def template():
    return ChatTemplate.from_string(SOURCE)


def parts(found):
    return [(part.text, part.message, part.body, part.sampled) for part in found.parts]


def test_each_part_has_an_owner(template):
    """Headers and ends belong to their message, and a generation prompt to none."""
    assert parts(attributed_conversation(template, MESSAGES)) == SAID
    assert parts(attributed_prompt(template, MESSAGES)) == [*SAID, ("<|assistant|>", None, False, False)]


@pytest.mark.parametrize("form", ["trim", "tojson"])
def test_words_are_found_as_templates_write_them(form):
    """Trimmed texts and texts as JSON are found."""
    template = ChatTemplate.from_string(SOURCE.replace("{{ message.content }}", f"{{{{ message.content | {form} }}}}"))

    found = attributed_prompt(template, [{"role": "user", "content": ' Say "é" \n'}])

    assert found.bodies_certain
    assert [part.text for part in found.parts if part.body] == ['Say "é"' if form == "trim" else ' Say \\"é\\" \\n']


def test_words_that_are_not_certain_are_no_bodies():
    """If the places of texts are uncertain, the prompt is one part, or only the model's answers are separate."""
    template = ChatTemplate.from_string(SOURCE.replace("{{ message.content }}", "{{ message.content | upper }}"))

    found = attributed_prompt(template, [{"role": "user", "content": "a"}])

    assert (found.bodies_certain, [part.body for part in found.parts]) == (False, [False])


def test_what_the_model_wrote_has_special_tokens(template):
    """For the encoder, texts of other messages are bodies, and the model's answers aren't."""
    encoder = PromptEncoder(byte_level(("<|end|>", "<think>", "</think>")))

    pieces = attributed_prompt(template, MESSAGES).pieces(encoder, MESSAGES)

    assert [text for text, body in pieces if body] == ["Be brief.", "Hello", "Bye"]
