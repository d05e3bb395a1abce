"""`unrender batch audit`: answers and messages in, losses out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

CALL = '<call name="get_weather">{"city": "Paris"}</call><|end|>\n'


@pytest.fixture
def audit(run):
    """Return a function that audits two answers, of which one lost its call."""
    right = {"content": "", "tool_calls": [{"function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}]}
    rows = [{"text": CALL, "message": right}, {"text": CALL, "message": {"content": CALL}}]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return lambda *more: run(
        "batch", "audit", "chat_template.jinja", "a.jsonl", "--tools", "tools.json", "--jobs", "1", *more
    )


def test_prints_losses(audit):
    """Losses are printed by reason and calls by tool, and the exit code says that there are some."""
    result = audit()

    assert result.exit_code == 1
    shown = [line.split() for line in result.stdout.splitlines()]
    assert ["as", "they", "were", "meant", "1", "50.0%"] in shown
    assert "a call is left in the content as text        1  50.0%" in result.stdout
    assert ["get_weather", "2", "1"] in shown


def test_prints_json_for_programs(audit):
    """With --json, the numbers are JSON."""
    assert json.loads(audit("--json").stdout)["wrong"] == {"get_weather": 1}


def test_writes_a_page(audit):
    """With --html, a page is written."""
    audit("--html", "audit.html")

    assert "1 of 2 answers (50.0%)" in Path("audit.html").read_text(encoding="utf-8")


def test_compares_another_column(audit):
    """The column with the message may have another name; where it is missing, the whole message is."""
    assert json.loads(audit("--message", "answer", "--json").stdout)["losses"] == {"no message at all": 2}
