"""The characters of a rendered conversation that the model wrote."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from unrender import ChatTemplate
from unrender.training import AssistantMask, assistant_mask

TEMPLATES = Path(__file__).parent.parent / "templates"
CHAT = [
    {"role": "user", "content": "What time is it?"},
    {"role": "assistant", "content": "Which city?"},
    {"role": "user", "content": "Oslo."},
    {"role": "assistant", "content": "It is noon."},
]
MARKED = """{%- for m in messages -%}
<|{{ m.role }}|>
{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|end|>{% endgeneration %}
{% else %}{{ m.content }}<|end|>
{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}"""


def said(template: ChatTemplate, messages, **kwargs) -> list[str]:
    mask = assistant_mask(template, messages, **kwargs)
    return [mask.text[part.start : part.end] for part in mask.written]


def marks(source: str) -> tuple[str, list[tuple[int, int, int]]]:
    """Return the mask of a template's own `{% generation %}`, by rendering marks in its place."""
    marked = source.replace("{% generation %}", "\ue000").replace("{% endgeneration %}", "\ue001")
    text = ChatTemplate.from_string(marked)._with_tools.render(CHAT, add_generation_prompt=False).unwrap()
    written, plain = [], ""
    for piece in text.split("\ue000"):
        inside, closed, after = piece.partition("\ue001")
        if closed:
            written.append((2 * len(written) + 1, len(plain), len(plain) + len(inside)))
        plain += inside + after
    return plain, written


def test_the_mask_is_that_of_generation_tags():
    """`{% generation %}` in a template marks the model's text, and the mask agrees."""
    plain = MARKED.replace("{% generation %}", "").replace("{% endgeneration %}", "")

    mask = assistant_mask(ChatTemplate.from_string(plain), CHAT)

    assert (mask.text, [(part.message, part.start, part.end) for part in mask.written]) == marks(MARKED)


@pytest.mark.few(40)
@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(TEMPLATES.glob("*.jinja")), ids=lambda path: path.stem)
def test_what_the_model_wrote_is_read_as_the_message(path):
    """In every family of formats, the masked text is parsed into the message and contains nothing else."""
    template = ChatTemplate.from_file(path, bos_token="<s>", eos_token="</s>")

    first, last = said(template, [*CHAT, {"role": "user", "content": "Thanks."}])

    assert "Which city?" in first
    assert "It is noon" not in first
    assert "Oslo" not in first + last
    assert "Thanks" not in last
    message = template.prepare(CHAT[:3]).parse(last)
    # If the prompt opens reasoning and the history drops it, reasoning and answer can't be distinguished.
    assert (message.content + message.reasoning).strip().endswith("It is noon.")


def test_tokens_follow_their_first_character():
    """A token belongs to its first character. Special tokens without characters never count."""
    shown = ChatTemplate.from_string("{% for m in messages %}{{ m.content }} {% endfor %}")
    mask = assistant_mask(shown, [*CHAT[:1], CHAT[1], CHAT[2]])
    mask = AssistantMask(text="ab cd ef", written=(replace(mask.written[0], start=3, end=6),))

    assert mask.tokens([(0, 0), (0, 2), (2, 4), (3, 5), (5, 6), (6, 8)]) == [0, 0, 0, 1, 1, 0]
    assert mask.characters() == [False] * 3 + [True] * 3 + [False] * 2
