"""`unrender inspect`: what a person and a program get to see of a format."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from unrender.format import Format


@pytest.mark.slow
def test_shows_an_answer_as_the_model_writes_it(run):
    """The page shows one answer with slots for the model's own words."""
    result = run("inspect", "chat_template.jinja")

    assert result.exit_code == 0
    assert '  <think>«reasoning»</think>\n  «content»\n  <call name="«name»">«arguments»</call><|end|>' in result.stdout


@pytest.mark.slow
def test_fits_a_terminal(run):
    """No line is wider than 80 columns, and a pipe gets no escape sequences."""
    result = run("inspect", "chat_template.jinja")

    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "\x1b" not in result.stdout


@pytest.mark.slow
def test_json_holds_the_format(run):
    """With --json, the format can be read back."""
    data = json.loads(run("inspect", "chat_template.jinja", "--json").stdout)

    assert Format.from_dict(data["format"]).reasoning.end == "</think>"
    assert data["capabilities"]["supports_tool_calls"] is True


@pytest.mark.slow
def test_json_holds_proof_and_evidence(run):
    """With --json, the verdicts and what was compared are there as data."""
    data = json.loads(run("inspect", "chat_template.jinja", "--json").stdout)

    assert data["proof"]["proved"] is True
    assert {"R1", "C1", "T1"} <= {evidence["comparison"] for evidence in data["evidence"]}


def test_shows_one_comparison(run):
    """With --compare, both renderings are beside each other, needles and all, and below them what differs."""
    result = run("inspect", "chat_template.jinja", "--compare", "T2")

    assert result.exit_code == 0
    assert "T2  tools.call_start  what is written once, and what for each call?" in result.stdout
    assert re.search(r"^  a call {20,}two calls$", result.stdout, re.MULTILINE)
    assert re.search(r"^  only in two calls +'.*get_mulbrix", result.stdout, re.MULTILINE)
    assert re.search(r"^  decided by +what is between two", result.stdout, re.MULTILINE)
    assert "Capabilities" not in result.stdout


def test_says_when_nothing_differs(run):
    """A comparison whose renderings are alike says so; small letters name it as well."""
    shown = run("inspect", "chat_template.jinja", "--compare", "t7").stdout

    assert re.search(r"^  difference +none$", shown, re.MULTILINE)


@pytest.mark.slow
def test_every_comparison_shows_something_of_its_own(run):
    """No two comparisons show the same two renderings."""
    names = {evidence["comparison"] for evidence in evidence_of(run)} - {""}
    pages = {name: run("inspect", "chat_template.jinja", "--compare", name).stdout.splitlines()[2:] for name in names}

    assert names >= {"R1", "R3", "C1", "T1", "T2", "T3", "T4", "T5", "T6", "T7", "A3"}
    assert len(set(map(tuple, pages.values()))) == len(pages)


@pytest.mark.slow
def test_json_holds_both_sides_and_their_split(run):
    """With --json, each comparison has two texts, and what of them is shared gives them again."""
    for evidence in evidence_of(run):
        split = evidence["split"]
        for side in ("left", "right"):
            assert split["prefix"] + split[side] + split["suffix"] == evidence[side]["text"]


def evidence_of(run):
    return json.loads(run("inspect", "chat_template.jinja", "--json").stdout)["evidence"]


def test_unknown_comparison_is_bad_input(run):
    """A comparison that was not made ends with exit code 2, and the names of those that were."""
    result = run("inspect", "chat_template.jinja", "--compare", "R9")

    assert result.exit_code == 2
    assert "R1" in result.stderr


def test_format_prints_what_from_json_reads(run):
    """`unrender format show` prints the Format's own JSON."""
    assert Format.from_json(run("format", "show", "chat_template.jinja").stdout).reasoning.end == "</think>"


@pytest.mark.parametrize("command", ["inspect", "format", "grammar", "parse", "verify"])
def test_every_command_explains_itself(run, command):
    """`--help` says what a command does."""
    result = run(command, "--help")

    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) > 5


def test_broken_template_is_bad_input(run, tmp_path):
    """A template that does not compile ends with exit code 2, its name, and no traceback."""
    (tmp_path / "broken.jinja").write_text("{% for %}", encoding="utf-8")

    result = run("inspect", "broken.jinja")

    assert result.exit_code == 2
    assert result.stderr.startswith("Error: broken.jinja: ")


@pytest.mark.slow
def test_says_what_is_done_for_tools(run):
    """After a template that ignores tools, the page shows the call syntax that is asked for instead."""
    Path("plain.jinja").write_text("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}", encoding="utf-8")

    shown = run("inspect", "plain.jinja").stdout
    data = json.loads(run("inspect", "plain.jinja", "--json").stdout)["help"]

    assert '{"name": "NAME", "arguments": ARGUMENTS}' in shown
    assert data == {"offers": True, "format_name": "tool-call-json", "writes_calls": True, "writes_results": True}
    assert "Help" not in run("inspect", "chat_template.jinja").stdout
