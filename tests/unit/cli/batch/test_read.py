"""`unrender batch read`: files in, one file out, and a summary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

CALL = '<think>rain?</think>\nOne moment.\n<call name="get_weather">{"city": "Paris"}</call><|end|>\n'
ROWS = [{"id": 1, "text": CALL}, {"id": 2, "text": "Yes.<|end|>\n"}, {"id": 3, "text": CALL[:-20]}]


@pytest.fixture
def read(run):
    """Return a function that reads `a.jsonl` into `out.jsonl`, in this process."""
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    fixed = ("--tools", "tools.json", "--jobs", "1")
    return lambda *more, text="": run(
        "batch", "read", "chat_template.jinja", *(more or ("a.jsonl", "-o", "out.jsonl")), *fixed, text=text
    )


def output() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("out.jsonl").read_text(encoding="utf-8").splitlines()]


def test_writes_messages_and_a_summary(read):
    """Messages go to the file, and what they add up to is printed."""
    result = read("a.jsonl", "-o", "out.jsonl", "--keep", "id")

    assert result.exit_code == 0
    assert [(record["id"], record["status"]) for record in output()] == [
        (1, "complete"),
        (2, "complete"),
        (3, "truncated"),
    ]
    shown = [line.split() for line in result.stdout.splitlines()]
    assert ["out.jsonl", "3", "messages"] in shown
    assert ["complete", "2", "66.7%"] in shown
    assert ["get_weather", "1", "1", "0"] in shown


def test_prints_json_for_programs(read):
    """With --json, the summary is JSON."""
    result = read("a.jsonl", "-o", "out.jsonl", "--json")

    assert json.loads(result.stdout)["calls"] == {"get_weather": {"complete": 1, "truncated": 1}}


def test_reads_standard_input(read):
    """`-` is JSONL on standard input."""
    assert read("-", "-o", "out.jsonl", text=json.dumps(ROWS[1])).exit_code == 0
    assert [record["content"] for record in output()] == ["Yes."]


def test_bad_rows_end_in_one(read):
    """Rows that cannot be read are counted by reason, and the exit code is 1."""
    result = read("-", "-o", "out.jsonl", text='{"text": 3}\n{"text": 4}\n{\n')

    assert result.exit_code == 1
    assert "text: expected the answer's text" in result.stdout
    assert len(Path("out.jsonl.bad.jsonl").read_text(encoding="utf-8").splitlines()) == 3


def test_columns_have_other_names(read):
    """The names of columns can be given."""
    read("-", "-o", "out.jsonl", "--column", "text=generated_text", text='{"generated_text": "Yes."}')

    assert [record["content"] for record in output()] == ["Yes."]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("b.jsonl", "-o", "out.jsonl"), "b.jsonl: No such file"),
        (("a.jsonl", "-o", "old.jsonl"), "old.jsonl: this file exists; start anew (force=True, or --force)"),
        (("a.jsonl", "-o", "no/out.jsonl"), "no/out.jsonl"),
        (("a.jsonl", "-o", "out.jsonl", "--column", "txt=a"), "expected ROLE=NAME"),
        (("a.jsonl", "-o", "out.jsonl", "--keep", "status"), "keep: 'status'"),
    ],
)
def test_says_what_is_wrong(read, arguments, told):
    """What cannot be used ends in code 2 and a sentence."""
    Path("old.jsonl").touch()
    result = read(*arguments)

    assert result.exit_code == 2
    assert told in result.stderr
