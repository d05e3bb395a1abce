"""`unrender format declared`: what is in effect, and files that are checked before they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

MINE = {"name": "mine", "why": "It is said.", "evidence": {"all": ["<|x|>"]}, "format": {"version": 1}}


def test_formats_in_effect_are_listed(run, monkeypatch):
    """The library's own and the user's are listed, each with its reason and what it applies to."""
    Path("formats").mkdir()
    Path("formats/mine.json").write_text(json.dumps(MINE), encoding="utf-8")
    monkeypatch.setenv("UNRENDER_FORMATS", "formats")

    listed = {item["name"]: item for item in json.loads(run("format", "declared", "--json").stdout)}

    assert listed["qwen3"]["origin"] == ""
    assert listed["mine"]["origin"] == str(Path("formats/mine.json").absolute())
    assert listed["mine"]["applies"] == "to sources with all of '<|x|>'"
    assert "\nmine  " in run("format", "declared").stdout


def test_files_are_checked(run):
    """Files are checked one by one, and the exit code says whether all can be used."""
    Path("mine.json").write_text(json.dumps(MINE), encoding="utf-8")
    Path("bad.json").write_text(json.dumps({**MINE, "why": ""}), encoding="utf-8")
    Path("taken.json").write_text(json.dumps({**MINE, "name": "qwen3"}), encoding="utf-8")

    assert run("format", "declared", "mine.json").exit_code == 0
    result = run("format", "declared", "mine.json", "bad.json", "taken.json", "nowhere.json")

    assert result.exit_code == 2
    assert result.stdout.count("\nmalformed  ") == 2
    assert "not read  nowhere.json: No such file or directory" in result.stdout
    assert run("format", "declared", "mine.json", "bad.json").exit_code == 1
    assert run("format", "declared", "-", text=json.dumps(MINE)).exit_code == 0
    assert "malformed  bad.json: why: expected a text, found ''" in result.stdout


@pytest.mark.parametrize(
    "command",
    [
        "format show {}",
        "inspect {}",
        "lint {}",
        "verify {}",
        "parse {}",
        "format export {}",
        "explain {} answer.txt",
    ],
)
def test_a_malformed_file_in_effect_ends_every_command(run, monkeypatch, command):
    """The sentence names file and field, and the exit code says that the input cannot be used."""
    Path("formats").mkdir()
    Path("formats/bad.json").write_text(json.dumps({**MINE, "why": ""}), encoding="utf-8")
    monkeypatch.setenv("UNRENDER_FORMATS", "formats")
    Path("t.jinja").write_text("{{ messages[-1].content }}", encoding="utf-8")
    Path("answer.txt").write_text("Hi", encoding="utf-8")

    result = run(*command.format("t.jinja").split())

    assert result.exit_code == 2
    assert "bad.json: why: expected a text, found ''" in " ".join(result.stderr.split("\n"))
