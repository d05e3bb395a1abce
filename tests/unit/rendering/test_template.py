"""Templates render as in transformers, and errors are returned as values."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import threading
from datetime import UTC, datetime

import pytest
from cases import cases
from plain_jinja import compiled
from rendering_rows import template_of
from vendor import vendor_templates

from unrender import Limits, TemplateError

NOON = datetime(2024, 5, 17, 12, 0, tzinfo=UTC)
CHAT = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Déjà <vu> & 'so'",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


def render(source, messages=(), **options):
    return template_of(source, bos_token="<s>", eos_token="</s>", clock=lambda: NOON).render(messages, **options)


@cases
def test_renders_as_transformers(source):
    """Counting and limits don't change a template's output."""
    x = {"a": "é", "b": [1, 2, 3], "c": {"d": [None, True, 1.5]}}

    assert render(source, x=x).unwrap() == compiled(source, NOON).render(x=x)


def conversations():
    """Yield keyword arguments of a few ordinary renderings."""
    call = {"id": "call00001", "type": "function", "function": {"name": "weather", "arguments": {"city": "Köln"}}}
    answered = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "name": "weather", "tool_call_id": "call00001", "content": "sunny"},
        {"role": "assistant", "content": "It is sunny.", "reasoning_content": "I see."},
    ]
    yield {"messages": CHAT, "tools": None, "add_generation_prompt": False}
    yield {"messages": CHAT[:1], "tools": None, "add_generation_prompt": True}
    yield {"messages": CHAT[:1], "tools": [TOOL], "add_generation_prompt": True}
    yield {"messages": answered, "tools": [TOOL], "add_generation_prompt": False}
    yield {"messages": [*answered, CHAT[0]], "tools": [TOOL], "add_generation_prompt": True}


@pytest.mark.few(6)
@pytest.mark.slow
@pytest.mark.parametrize("name", vendor_templates())
def test_vendor_template_renders_as_in_transformers(name):
    """Every vendor's template gives the same text as in transformers' sandbox, if that renders it."""
    source = vendor_templates()[name].read_text(encoding="utf-8")
    for variables in conversations():
        rendering = render(source, **variables)
        try:
            expected = compiled(source, NOON).render(documents=None, bos_token="<s>", eos_token="</s>", **variables)
        except Exception as error:  # noqa: BLE001 -- templates fail as programs do
            # Renderings that transformers rejects: lists that are appended to, and lazy lists as JSON.
            harmless = "is unsafe" in str(error) or "generator is not JSON serializable" in str(error)
            assert rendering.error is not None or harmless
        else:
            assert rendering.unwrap() == expected


def test_lists_may_be_changed():
    """A template may change its own lists and dicts and those passed in. The caller's objects don't change."""
    source = "{% set _ = messages.append('x') %}{{ messages[0].update(role='y') }}{{ messages }}"
    messages = [{"role": "user"}]
    before = copy.deepcopy(messages)

    first, second = render(source, messages), render(source, messages)

    assert first.unwrap() == second.unwrap() == "None[{'role': 'y'}, 'x']"
    assert messages == before


def test_counter_in_a_namespace():
    """Counting by appending to a list in a namespace works."""
    source = "{% set ns = namespace(ids=[]) %}{% for i in 'ab' %}{% set _ = ns.ids.append(i) %}{{ ns.ids | length }}{% endfor %}"

    assert render(source).unwrap() == "12"


def test_generation_blocks_are_transparent():
    """`{% generation %}` marks text for training, and writes only that text."""
    assert render("{% generation %}\n{{ 'a' }}{% endgeneration %}b").unwrap() == "ab"


def test_standard_variables():
    """Tokens, tools and documents are defined. The caller's variables take precedence."""
    source = (
        "{{ bos_token }}{{ eos_token }}{{ tools is none }}{{ documents is none }}{{ add_generation_prompt }}{{ mood }}"
    )

    assert render(source, mood="!").unwrap() == "<s></s>TrueTrueFalse!"
    assert render("{{ eos_token }}", eos_token="<e>").unwrap() == "<e>"


def test_refusal_is_the_templates_own_words():
    """`raise_exception` gives an error with the template's message and line, and no text."""
    rendering = render("a\nb{{ raise_exception('Roles must alternate') }}")

    assert (rendering.text, rendering.error, rendering.line) == ("", "Roles must alternate", 2)
    with pytest.raises(TemplateError, match="template, line 2: Roles must alternate"):
        rendering.unwrap()


@cases
def test_failure_is_a_value(source, error):
    """Any failure is an error with a reason and a line."""
    rendering = render(source)

    assert rendering.text == ""
    assert rendering.error.startswith(error)
    assert rendering.line == 2


def test_empty_text_is_no_error():
    """A template that writes nothing renders without an error."""
    rendering = render("{# nothing #}")

    assert (rendering.unwrap(), rendering.error, rendering.line, rendering.exhausted) == ("", None, None, False)


@cases
def test_source_that_does_not_compile(source, message):
    """Creating a template with a syntax error raises the error with its line."""
    with pytest.raises(TemplateError, match=message):
        template_of(source)


def test_no_other_file_is_read():
    """Including another template is a rendering error, since there are no others."""
    assert render("{% include 'x' %}").error


def test_digest():
    """Equal templates have equal digests, which include the tokens."""
    assert template_of("a").digest == template_of("a").digest
    assert len({template_of("a").digest, template_of("b").digest, template_of("a", eos_token="b").digest}) == 3


def test_special_tokens():
    """Tokens that the template reads are variables and part of its identity. A caller's variable takes precedence."""
    source, tokens = "{{ sep_token }}", {"sep_token": "<sep>", "pad_token": "<pad>"}
    template = pickle.loads(pickle.dumps(template_of(source, special_tokens=tokens)))

    assert template.render([]).text == "<sep>"
    assert template.render([], sep_token="|").text == "|"
    assert template == template_of(source, special_tokens={"sep_token": "<sep>"}) != template_of(source)
    assert template_of("a", special_tokens=tokens) == template_of("a")


@pytest.mark.parametrize("source", ["{{ .Prompt }}", "{{- range .Messages }}{{ .Content }}{{ end }}", "{{ if $last }}"])
def test_templates_of_go_are_told_apart(source):
    """The error for an Ollama template names its syntax and the file to use instead."""
    with pytest.raises(TemplateError, match=r"expected Jinja, found '\{\{.*Go's syntax.*tokenizer_config"):
        template_of(source)


def test_limited():
    """`limited` returns a copy with other limits. The original keeps its own."""
    template = template_of("{% for i in range(100) %}{{ i }}{% endfor %}")

    limited = template.limited(Limits(rendering_steps=10))

    assert limited.render([]).exhausted
    assert not template.render([]).exhausted
    assert limited.digest == template.digest


def test_threads():
    """One template renders in several threads at once, with separate limits for each rendering."""
    template = template_of("{% for i in range(2000) %}{{ i }}{% endfor %}")
    expected, texts = template.render([]), []
    threads = [threading.Thread(target=lambda: texts.append(template.render([]))) for _ in range(8)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert texts == [expected] * 8


def test_jinja_is_not_imported_early():
    """`import unrender` doesn't load Jinja."""
    code = "import sys, unrender; sys.exit('jinja2' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
