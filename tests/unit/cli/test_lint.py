"""`unrender lint`: findings for people and programs."""

from __future__ import annotations

import json
from pathlib import Path


def test_findings_come_with_conversation_and_fix(run):
    """A finding says what was seen, what it does, how to fix it, and shows the conversation."""
    result = run("lint", "chat_template.jinja")

    assert result.exit_code == 1
    assert "\narguments-double-encoded\n  found " in result.stdout
    assert 'assistant: calls find_animal with "{\\"city\\": \\"NAIROBI\\"}"' in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_nothing_left_exits_with_0(run):
    """What is ignored is not reported and does not fail."""
    found = json.loads(run("lint", "chat_template.jinja", "--json").stdout)["chat_template.jinja"]
    ignored = [word for finding in found for word in ("--ignore", finding["rule"])]

    result = run("lint", "chat_template.jinja", *ignored)

    assert result.exit_code == 0
    assert "nothing found" in result.stdout


def test_directory_gives_a_table(run):
    """A directory of templates gives a line for each, and how often each rule was broken."""
    Path("many").mkdir()
    for name in ("one", "two"):
        Path(f"many/{name}.jinja").write_text(Path("chat_template.jinja").read_text(), encoding="utf-8")

    result = run("lint", "many")

    assert result.stdout.splitlines()[0].split()[0] == "one"
    assert "in 2 templates" in result.stdout


def test_rules_are_listed(run):
    """The rules can be read without a template."""
    result = run("lint", "--rules")

    assert result.exit_code == 0
    assert "history-not-prefix-stable" in result.stdout


def test_unknown_rule_and_no_template_are_mistakes(run):
    """A rule that does not exist, and nothing to examine, end in exit code 2."""
    assert run("lint", "chat_template.jinja", "--ignore", "nothing").exit_code == 2
    assert run("lint").exit_code == 2
