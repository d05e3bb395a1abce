"""`unrender format diff`, as a person and a script use it."""

from __future__ import annotations

import json
from pathlib import Path


def template() -> str:
    return Path("chat_template.jinja").read_text(encoding="utf-8")


def test_equal_formats_print_nothing(run) -> None:
    """A template and the file of its own format do not differ: exit code 0."""
    Path("kept.json").write_text(run("format", "show", "chat_template.jinja").stdout, encoding="utf-8")

    result = run("format", "diff", "chat_template.jinja", "kept.json")

    assert (result.exit_code, result.stdout) == (0, "")


def test_differences_are_named(run) -> None:
    """What differs is printed with both values, and the exit code is 1."""
    Path("other.jinja").write_text(template().replace("</think>", "</thought>"), encoding="utf-8")

    result = run("format", "diff", "chat_template.jinja", "other.jinja")

    assert "reasoning.end\n  - '</think>'\n  + '</thought>'\n" in result.stdout
    assert result.exit_code == 1


def test_differences_are_data_for_programs(run) -> None:
    """With --json, each difference has its path and both values."""
    Path("other.jinja").write_text(template().replace("<|end|>", "<|stop|>"), encoding="utf-8")

    found = json.loads(run("format", "diff", "chat_template.jinja", "other.jinja", "--json").stdout)

    assert {"path": "turn.end", "before": "<|end|>\n", "after": "<|stop|>\n"} in found


def test_a_tokenizer_configuration_is_a_template(run) -> None:
    """A JSON file with a chat template is read as a template, not as a format."""
    Path("tokenizer_config.json").write_text(json.dumps({"chat_template": template(), "version": 1}), encoding="utf-8")

    result = run("format", "diff", "chat_template.jinja", "tokenizer_config.json")

    assert (result.exit_code, result.stdout) == (0, "")


def test_a_broken_format_is_refused(run) -> None:
    """A file that is not a format of this version is exit code 2, with the reason."""
    Path("kept.json").write_text('{"version": 99}', encoding="utf-8")

    result = run("format", "diff", "chat_template.jinja", "kept.json")

    assert (result.exit_code, "format.version: 99 is not supported" in result.stderr) == (2, True)
