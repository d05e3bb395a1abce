"""`unrender format export`, as a person and a script use it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unrender.verify.engines import installed

TRANSFORMERS = pytest.mark.skipif(not installed("transformers"), reason="transformers is not installed")
REFUSED = """\
{%- for message in messages %}{{ '<|' ~ message.role ~ '|>' ~ message.content }}
{%- for call in message.tool_calls or [] %}{{ '<calls>[' if loop.first else ', ' }}{{ call.function.name ~ '(' }}
{%- for key, value in call.function.arguments | items %}{{ key ~ '=' ~ value | tojson }}{{ ', ' if not loop.last }}{% endfor %}
{{- ')' }}{{ ']</calls>' if loop.last }}{%- endfor %}{{ '<|end|>' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}
"""


def test_the_response_template_is_printed(run) -> None:
    """Standard output is the response template, standard error what it leaves out."""
    result = run("format", "export", "chat_template.jinja")

    assert json.loads(result.stdout)["start_anchor"] == "<|assistant|>\n"
    assert "not expressed: call syntaxes that are tolerated" in result.stderr
    assert result.exit_code == 0


def test_reasoning_is_named_as_asked(run) -> None:
    """The field names are those of the engine that is asked for."""
    result = run("format", "export", "chat_template.jinja", "--field-names", "vllm")

    assert sorted(json.loads(result.stdout)["fields"]) == ["content", "thinking", "tool_calls"]


def test_a_configuration_keeps_what_else_is_in_it(run) -> None:
    """With --write the response template is put into the file beside what was there."""
    Path("tokenizer_config.json").write_text('{"eos_token": "<|end|>"}', encoding="utf-8")

    result = run("format", "export", "chat_template.jinja", "--write", "tokenizer_config.json")
    config = json.loads(Path("tokenizer_config.json").read_text(encoding="utf-8"))

    assert (result.exit_code, result.stdout) == (0, "")
    assert config["eos_token"] == "<|end|>"
    assert config["response_template"]["version"] == 1


@pytest.mark.parametrize("content", ["[]", "{", None])
def test_a_file_that_is_no_configuration_is_refused(run, content: str | None) -> None:
    """Only a JSON object is written into; anything else is exit code 2 and stays as it is."""
    if content is not None:
        Path("config.json").write_text(content, encoding="utf-8")

    result = run("format", "export", "chat_template.jinja", "--write", "config.json")

    assert (result.exit_code, "config.json" in result.stderr) == (2, True)
    assert content is None or Path("config.json").read_text(encoding="utf-8") == content


def test_a_format_that_cannot_be_expressed_is_refused(run) -> None:
    """The exit code is 2 and the reason is told."""
    Path("refused.jinja").write_text(REFUSED, encoding="utf-8")

    result = run("format", "export", "refused.jinja")

    assert (result.exit_code, result.stdout) == (2, "")
    assert "tool calls: they are written as code" in result.stderr


@pytest.mark.skipif(installed("transformers"), reason="transformers is installed")
def test_a_check_without_transformers_says_what_is_missing(run) -> None:
    """The check is not passed over in silence."""
    result = run("format", "export", "chat_template.jinja", "--check")

    assert (result.exit_code, "needs transformers" in result.stderr) == (2, True)


@TRANSFORMERS
def test_an_export_is_checked(run) -> None:
    """With --check, what transformers reads alike is printed, and the exit code is 0."""
    result = run("format", "export", "chat_template.jinja", "--check")

    assert "tool calls" in result.stdout
    assert "proved (4 of 4)" in result.stdout
    assert result.exit_code == 0


@TRANSFORMERS
def test_a_declared_response_template_is_checked(run) -> None:
    """With --declared, what another response template reads differently is shown, and the exit code is 1."""
    declared = {"start_anchor": "<|assistant|>\n", "fields": {"content": {"close": "<|end|>"}}}
    Path("declared.json").write_text(json.dumps({"response_template": declared}), encoding="utf-8")

    result = run("format", "export", "chat_template.jinja", "--declared", "declared.json")
    data = json.loads(run("format", "export", "chat_template.jinja", "--declared", "declared.json", "--json").stdout)

    assert "tool_calls transformers" in result.stdout
    assert data["proved"] is False
    assert result.exit_code == 1
