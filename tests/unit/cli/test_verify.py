"""`unrender verify`: verdicts for people and programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

# Beside a call, content is written where reasoning belongs: no parser can tell them apart.
AMBIGUOUS = """\
{%- for message in messages %}
{{- '<|' ~ message.role ~ '|>' }}
{%- if message.reasoning_content %}{{ '<think>' ~ message.reasoning_content ~ '</think>' }}{% endif %}
{%- if message.tool_calls and message.content %}{{ '<think>' ~ message.content ~ '</think>' }}
{%- else %}{{ message.content }}{% endif %}
{%- for call in message.tool_calls or [] %}
{{- '<call name="' ~ call.function.name ~ '">' ~ call.function.arguments | tojson ~ '</call>' }}
{%- endfor %}
{{- '<|end|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}
"""


def test_proves_a_good_template(run):
    """All that the template renders is proved, and the exit code is 0."""
    result = run("verify", "chat_template.jinja")

    assert result.exit_code == 0
    assert "parallel tool calls" in result.stdout
    assert "proved (8 of 8)" in result.stdout
    assert "refuted" not in result.stdout


@pytest.mark.slow
def test_shows_a_counterexample(run):
    """What is refuted is shown with the answer that refutes it, and the exit code is 1."""
    Path("ambiguous.jinja").write_text(AMBIGUOUS, encoding="utf-8")

    result = run("verify", "ambiguous.jinja")

    assert result.exit_code == 1
    assert "content and tool calls  refuted by this answer" in result.stdout
    assert "\n  - content: " in result.stdout
    assert '\n  + content: ""' in result.stdout


@pytest.mark.slow
def test_directory_gives_a_table(run):
    """A directory of templates gives a line for each, and a sum."""
    Path("many").mkdir()
    for name in ("one", "two"):
        Path(f"many/{name}.jinja").write_text(Path("chat_template.jinja").read_text(), encoding="utf-8")

    result = run("verify", "many")

    head, first, second, _, last = result.stdout.splitlines()
    assert head.split() == ["template", "proved", "not", "observable", "refuted", "seconds"]
    assert first.split()[0] == "one"
    assert second.split()[0] == "two"
    assert last == "2 templates, 0 with something refuted"


@pytest.mark.slow
def test_history_is_no_proof(run):
    """A history that is written anew each time is shown as a diff, and does not fail."""
    source = Path("chat_template.jinja").read_text(encoding="utf-8")
    Path("unstable.jinja").write_text(
        source.replace("{{- '<|end|>\\n' }}", "{{- '<|end|>\\n' if loop.last else '<|over|>\\n' }}"), encoding="utf-8"
    )

    result = run("verify", "unstable.jinja")

    assert result.exit_code == 0
    assert ["content,", "then", "a", "question", "changed"] in [line.split() for line in result.stdout.splitlines()]
    assert "+ …" in result.stdout


@pytest.mark.slow
def test_report_is_a_page_of_markdown(run):
    """With --report, all is written to a file, beside what is printed."""
    result = run("verify", "chat_template.jinja", "--report", "report.md")

    page = Path("report.md").read_text(encoding="utf-8")
    assert result.exit_code == 0
    assert page.startswith("# What is proved\n")
    assert "| content | proved | 8 of 8 |  |" in page
    assert run("verify", "chat_template.jinja", "--report", "no/where.md").exit_code == 2


@pytest.mark.slow
def test_json_is_for_programs(run):
    """With --json, the report of each template is data."""
    data = json.loads(run("verify", "chat_template.jinja", "--json").stdout)

    findings = {finding["capability"]: finding["verdict"] for finding in data["chat_template.jinja"]["findings"]}
    assert findings["content"] == "proved"


@pytest.mark.parametrize("option", ["--samples", "--seed"])
def test_numbers_are_checked(run, option):
    """An option that wants a number says so."""
    assert run("verify", "chat_template.jinja", option, "many").exit_code == 2


@pytest.mark.slow
def test_bad_file_stops_nothing(run):
    """In a folder, a file that is not a template is named in the table, the others are examined, and the exit code is 2."""
    Path("many").mkdir()
    Path("many/good.jinja").write_text(Path("chat_template.jinja").read_text(encoding="utf-8"), encoding="utf-8")
    Path("many/bad.jinja").write_text("{% for %}", encoding="utf-8")

    result = run("verify", "many", "--samples", "1", "--report", "report.md")
    data = json.loads(run("verify", "many", "--samples", "1", "--json").stdout)

    assert result.exit_code == 2
    assert "not examined: " in " ".join(result.stdout.split())
    assert result.stdout.splitlines()[-1] == "2 templates, 0 with something refuted, 1 not examined"
    assert "\n| bad.jinja | " in Path("report.md").read_text(encoding="utf-8")
    assert data["many/good.jinja"]["proved"]
    assert "error" in data["many/bad.jinja"]


@pytest.mark.slow
def test_time_limit_stops_a_template(run):
    """What takes longer than --timeout is stopped, and said in the table."""
    result = run("verify", "chat_template.jinja", "--samples", "5000", "--timeout", "1.5")

    assert result.exit_code == 2
    assert "not examined: took longer than 1.5 s" in " ".join(result.stdout.split())
