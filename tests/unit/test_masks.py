"""The characters of a rendered conversation that the model wrote."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from unrender import ChatTemplate, RequestError, TemplateError
from unrender.training import AssistantMask, assistant_mask

TEMPLATES = Path(__file__).parent.parent / "templates"
TOOL = {
    "type": "function",
    "function": {"name": "now", "description": "", "parameters": {"type": "object", "properties": {}}},
}
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
DROPS_REASONING = """{%- for m in messages -%}
<|{{ m.role }}|>
{%- if m.reasoning_content and loop.last %}<think>{{ m.reasoning_content }}</think>{% endif -%}
{{ m.content }}<|end|>
{% endfor %}{% if add_generation_prompt %}<|assistant|><think>{% endif %}"""
NO_END = """{%- for m in messages -%}
{{ 'Asked: ' if m.role == 'user' else 'Said: ' }}{{ m.content }}
{% endfor %}{% if add_generation_prompt %}Said:{% endif %}"""


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


def test_the_prompts_own_words_are_not_the_models():
    """Text of the generation prompt is part of the prompt, even if the history has the same text."""
    messages = [CHAT[0], {"role": "assistant", "content": "Noon.", "reasoning_content": "Hm."}]

    assert said(ChatTemplate.from_string(DROPS_REASONING), messages) == ["Hm.</think>Noon.<|end|>"]


def test_borders_are_found_where_the_history_changes():
    """If earlier reasoning is dropped, the answer is still found between header and end."""
    messages = [{**m, "reasoning_content": "Hm."} if m["role"] == "assistant" else m for m in CHAT]

    assert said(ChatTemplate.from_string(DROPS_REASONING), messages) == [
        "Which city?<|end|>",
        "Hm.</think>It is noon.<|end|>",
    ]


def test_a_turn_without_an_end_ends_before_the_next_header():
    """Without an end of turn, a turn ends at the header of the next message."""
    first, last = said(ChatTemplate.from_string(NO_END), CHAT)

    assert first.strip() == "Which city?"
    assert last.strip() == "It is noon."


def test_calls_are_the_models():
    """The model wrote the call, its markers and the end of its turn, but not the result."""
    template = ChatTemplate.from_file(TEMPLATES / "json-tags.jinja")
    call = {"id": "abcdefghi", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    messages = [
        CHAT[0],
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "abcdefghi", "content": "12:00"},
        CHAT[3],
    ]

    first, last = said(template, messages, tools=[TOOL])

    [read] = template.prepare(messages[:1], tools=[TOOL]).parse(first).tool_calls
    assert (read.name, read.arguments_json) == ("now", "{}")
    assert "12:00" not in first + last


def test_tokens_follow_their_first_character():
    """A token belongs to its first character. Special tokens without characters never count."""
    shown = ChatTemplate.from_string("{% for m in messages %}{{ m.content }} {% endfor %}")
    mask = assistant_mask(shown, [*CHAT[:1], CHAT[1], CHAT[2]])
    mask = AssistantMask(text="ab cd ef", written=(replace(mask.written[0], start=3, end=6),))

    assert mask.tokens([(0, 0), (0, 2), (2, 4), (3, 5), (5, 6), (6, 8)]) == [0, 0, 0, 1, 1, 0]
    assert mask.characters() == [False] * 3 + [True] * 3 + [False] * 2


def test_an_answer_that_is_not_shown_is_an_error():
    """If a message's place is uncertain, the error names the message."""
    backwards = ChatTemplate.from_string("{% for m in messages|reverse %}{{ m.content }};{% endfor %}")

    with pytest.raises(RequestError, match=r"messages\[1\]: cannot tell where the rendering of this answer"):
        assistant_mask(backwards, CHAT)


def test_a_refusal_is_the_templates_own():
    """The error has the template's own message."""
    refuses = ChatTemplate.from_string("{% if messages|length > 3 %}{{ raise_exception('too long') }}{% endif %}x")

    with pytest.raises(TemplateError, match="too long"):
        assistant_mask(refuses, CHAT)


def test_tools_are_given_as_for_a_prompt():
    """Tools without descriptions are accepted, and rendered as in a prompt."""
    source = "{% for t in tools or [] %}{{ t.function.description + '!' }}{% endfor %}" + MARKED
    template = ChatTemplate.from_string(source)
    bare = [{"type": "function", "function": {"name": "now"}}]

    mask = assistant_mask(template, CHAT, tools=bare)

    assert mask.text.startswith(template.prepare(CHAT[:1], tools=bare).prompt)
    assert [mask.text[part.start : part.end] for part in mask.written] == ["Which city?<|end|>", "It is noon.<|end|>"]


def test_what_is_described_in_words_is_in_the_mask():
    """Injected tools and calls are written as by `prepare`."""
    template = ChatTemplate.from_string(MARKED)
    call = {"id": "a", "type": "function", "function": {"name": "now", "arguments": '{"city": "Rome"}'}}
    chat = [CHAT[0], {"role": "assistant", "content": "", "tool_calls": [call]}]

    mask = assistant_mask(template, chat, tools=[TOOL])

    (part,) = mask.written
    assert "Rome" in mask.text[part.start : part.end]
    assert mask.text.startswith(template.prepare(CHAT[:1], tools=[TOOL]).prompt)


RESULT_NAMED = (
    "{% set ns = namespace(name='', last=-1) %}"
    "{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
    "{% for m in messages %}{% if m.role == 'assistant' %}<bot>"
    "{% if m.reasoning_content and (m.tool_calls or loop.last) %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}{% set ns.name = c.function.name %}<call>{{ c.function.name }}"
    "{{ c.function.arguments | tojson }}</call>{% endfor %}"
    "{% elif m.role == 'tool' %}<result of={{ ns.name }}>{{ m.content }}{% else %}<user>{{ m.content }}{% endif %}</>"
    "{% endfor %}{% if add_generation_prompt %}<bot><think>{% endif %}"
)


def test_the_trace_of_an_agent_whose_results_name_the_call():
    """The mask finds a call with reasoning and the final answer, although the result repeats the tool's name."""
    call = {"id": "c", "type": "function", "function": {"name": "now", "arguments": '{"at": "Oslo"}'}}
    trace = [
        {"role": "user", "content": "When?"},
        {"role": "assistant", "content": "", "reasoning_content": "Ask.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "noon"},
        {"role": "assistant", "content": "At noon.", "reasoning_content": "So."},
        {"role": "user", "content": "Thanks"},
    ]

    mask = assistant_mask(ChatTemplate.from_string(RESULT_NAMED), trace, tools=[{"name": "now"}])

    written = [mask.text[part.start : part.end] for part in mask.written]
    assert written == ['Ask.</think><call>now{"at": "Oslo"}</call></>', "At noon.</>"]
