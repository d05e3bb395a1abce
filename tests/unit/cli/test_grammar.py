"""`unrender grammar`: a grammar in each dialect, or a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.mark.parametrize(("dialect", "sign"), [("gbnf", "root ::="), ("lark", "start:")])
def test_prints_text(run, dialect, sign):
    """Dialects that are text are printed as they are, with the tool's name in them."""
    result = run("grammar", "chat_template.jinja", "--dialect", dialect, "--tools", "tools.json")

    assert result.exit_code == 0
    assert sign in result.stdout
    assert "get_weather" in result.stdout


def test_prints_structural_tags_as_json(run):
    """A structural tag is printed as JSON."""
    result = run("grammar", "chat_template.jinja", "--dialect", "structural-tag", "--tools", "tools.json")

    assert json.loads(result.stdout)["type"] == "structural_tag"


def test_names_what_a_dialect_cannot_express(run):
    """A keyword that is not enforced is named on standard error, and the grammar is printed all the same."""
    parameters = {"type": "object", "properties": {"city": {"type": "string", "pattern": "^(?=P)Paris$"}}}
    Path("tools.json").write_text(json.dumps([{"name": "get_weather", "parameters": parameters}]), encoding="utf-8")

    result = run("grammar", "chat_template.jinja", "--dialect", "gbnf", "--tools", "tools.json")

    assert result.exit_code == 0
    assert result.stderr.startswith("warning: tool 'get_weather'")
    assert "pattern" in result.stderr


def test_unknown_tool_is_bad_input(run):
    """A tool choice that is not among the tools ends with exit code 2 and the names that are."""
    arguments = ("--dialect", "gbnf", "--tools", "tools.json", "--tool-choice", "nope")

    result = run("grammar", "chat_template.jinja", *arguments)

    assert result.exit_code == 2
    assert "get_weather" in result.stderr
