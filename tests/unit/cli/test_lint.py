"""`unrender lint`: findings for people and programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


def test_findings_come_with_conversation_and_fix(run):
    """A finding says what was seen, what it does, how to fix it, and shows the conversation."""
    result = run("lint", "chat_template.jinja")

    assert "\narguments-double-encoded  warning\n  found " in result.stdout
    assert 'assistant: calls find_animal with "{\\"city\\": \\"NAIROBI\\"}"' in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_nothing_left_exits_with_0(run):
    """What is ignored is not reported and does not fail."""
    found = json.loads(run("lint", "chat_template.jinja", "--json").stdout)["chat_template.jinja"]
    ignored = [word for finding in found for word in ("--ignore", finding["rule"])]

    result = run("lint", "chat_template.jinja", *ignored)

    assert result.exit_code == 0
    assert "nothing found" in result.stdout


@pytest.mark.slow
def test_directory_gives_a_table(run):
    """A directory of templates gives a line for each, and how often each rule was broken."""
    Path("many").mkdir()
    for name in ("one", "two"):
        Path(f"many/{name}.jinja").write_text(Path("chat_template.jinja").read_text(), encoding="utf-8")

    result = run("lint", "many")

    head, *lines = result.stdout.splitlines()
    assert head.split() == ["template", "errors", "warnings", "notes", "seconds", "rules"]
    assert [line.split()[0] for line in lines if line[:3] in ("one", "two")] == ["one", "two"]
    assert any(line.startswith("2 templates: ") for line in lines)


def test_rules_are_listed(run):
    """The rules can be read without a template."""
    result = run("lint", "--rules")

    assert result.exit_code == 0
    assert "history-not-prefix-stable" in result.stdout


def test_unknown_rule_and_no_template_are_mistakes(run):
    """A rule that does not exist, and nothing to examine, end in exit code 2."""
    assert run("lint", "chat_template.jinja", "--ignore", "nothing").exit_code == 2
    assert run("lint").exit_code == 2


REFUSING = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"


def test_errors_alone_fail(run):
    """Warnings and notes are shown and do not fail, unless it is asked for; errors do."""
    plain = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
    Path("plain.jinja").write_text(plain, encoding="utf-8")
    Path("refusing.jinja").write_text(REFUSING + plain, encoding="utf-8")

    assert run("lint", "plain.jinja").exit_code == 0
    assert run("lint", "plain.jinja", "--fail-on", "warning").exit_code == 1
    assert run("lint", "refusing.jinja").exit_code == 1


def test_finding_names_its_severity_and_page(run):
    """As data, a finding says how bad it is, and where its rule is explained."""
    found = json.loads(run("lint", "chat_template.jinja", "--json").stdout)["chat_template.jinja"]
    pages = (Path(__file__).parents[3] / "docs/reference/lint.md").read_text(encoding="utf-8")

    assert {finding["severity"] for finding in found} <= {"error", "warning", "note"}
    for finding in found:
        page, _, anchor = finding["page"].partition("#")
        assert page == "docs/reference/lint.md"
        assert f"\n## {anchor}\n" in pages
