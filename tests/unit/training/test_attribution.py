"""The author of each part of a rendered conversation."""

from __future__ import annotations

from pathlib import Path

import pytest

from unrender import ChatTemplate
from unrender.training.masks import attributed_conversation, attributed_prompt

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
    ("<think>\n\n</think>\n\n", 2, True, True),
    ("Hi.", 2, True, True),
    ("<|end|>", 2, True, True),
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


def test_words_are_found_even_if_the_template_changes_them():
    """A filter keeps the marks around a text."""
    template = ChatTemplate.from_string(SOURCE.replace("{{ message.content }}", "{{ message.content | upper }}"))

    found = attributed_prompt(template, [{"role": "user", "content": "a"}])

    assert (found.bodies_certain, [part.text for part in found.parts if part.body]) == (True, ["A"])


def test_what_the_model_wrote_has_special_tokens(template):
    """The markers of an answer are special tokens, but its content is text. The author's text isn't."""
    pieces = attributed_prompt(template, MESSAGES).pieces()

    assert [text for text, body in pieces if body] == ["Hello", "Hi.", "Bye"]
