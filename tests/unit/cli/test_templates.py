"""Tests of `inspect`, `verify` and `lint`, in text and in JSON."""

from __future__ import annotations

import json
import os
import shutil
import time
import warnings
from pathlib import Path

import pytest
from cases import beside

from unrender import TemplateError
from unrender.cli.examining import examine


@pytest.mark.slow
def test_json_holds_both_sides_and_their_split(run):
    """--json contains both texts of each comparison, split into common and different parts."""
    found = evidence_of(run)
    for evidence in found:
        split = evidence["split"]
        for side in ("left", "right"):
            assert split["prefix"] + split[side] + split["suffix"] == evidence[side]["text"]
    names = {evidence["comparison"] for evidence in found}
    assert names >= {"R1", "R3", "C1", "T1", "T2", "T3", "T4", "T5", "T6", "T7", "A3"}


def evidence_of(run):
    return json.loads(run("inspect", "chat_template.jinja", "--json").stdout)["evidence"]


@pytest.mark.slow
def test_shows_a_counterexample(run):
    """A failed check is shown with its answer, and the exit code is 1."""
    # Texts aren't quoted, so a text that ends in a quoted word is ambiguous.
    Path("ambiguous.jinja").write_text(beside(__file__, "ambiguous.jinja"), encoding="utf-8")

    result = run("verify", "ambiguous.jinja")

    assert result.exit_code == 1
    assert "\nstrings  failed (" in result.stdout
    assert "\n  - tool_calls: " in result.stdout
    assert "\n  + tool_calls: " in result.stdout


def two_of_them(run, command):
    """Return the result of a command for a folder with two templates."""
    Path("many").mkdir()
    for name in ("one", "two"):
        shutil.copy("chat_template.jinja", f"many/{name}.jinja")
    return run(command, "many")


@pytest.mark.slow
def test_directory_gives_a_table(run):
    """The table has a row for each template, and a summary."""
    result = two_of_them(run, "verify")

    head, first, second, _, last = result.stdout.splitlines()
    assert head.split() == ["template", "passed", "skipped", "failed", "seconds"]
    assert first.split()[0] == "one"
    assert second.split()[0] == "two"
    assert last == "2 templates, 0 with failed checks"


@pytest.mark.slow
def test_history_is_no_proof(run):
    """A rewritten history is shown as a diff, but isn't a failure."""
    source = Path("chat_template.jinja").read_text(encoding="utf-8")
    Path("unstable.jinja").write_text(
        source.replace("{{- '<|end|>\\n' }}", "{{- '<|end|>\\n' if loop.last else '<|over|>\\n' }}"), encoding="utf-8"
    )

    result = run("verify", "unstable.jinja", "--all")

    assert result.exit_code == 0
    assert "follow-ups rewrite the last answer" in run("verify", "unstable.jinja").stdout
    assert ["content,", "then", "a", "question", "changed"] in [line.split() for line in result.stdout.splitlines()]
    assert "+ …" in result.stdout


@pytest.mark.slow
def test_bad_file_stops_nothing(run):
    """An invalid template doesn't stop the other checks, and the exit code is 2."""
    Path("many").mkdir()
    Path("many/good.jinja").write_text(Path("chat_template.jinja").read_text(encoding="utf-8"), encoding="utf-8")
    Path("many/bad.jinja").write_text("{% for %}", encoding="utf-8")

    result = run("verify", "many", "--samples", "1")
    data = json.loads(run("verify", "many", "--samples", "1", "--json").stdout)

    assert result.exit_code == 2
    assert "not examined: " in " ".join(result.stdout.split())
    assert result.stdout.splitlines()[-1] == "2 templates, 0 with failed checks, 1 not examined"
    assert data["many/good.jinja"]["passed"]
    assert "error" in data["many/bad.jinja"]


def test_nothing_left_exits_with_0(run):
    """Ignored rules aren't reported and don't fail."""
    found = json.loads(run("lint", "chat_template.jinja", "--json").stdout)["chat_template.jinja"]
    ignored = [word for finding in found for word in ("--ignore", finding["rule"])]

    result = run("lint", "chat_template.jinja", *ignored)

    assert result.exit_code == 0
    assert "nothing found" in result.stdout


@pytest.mark.slow
def test_directory_gives_a_table_of_findings(run):
    """The table has a row for each template, with the number of findings."""
    result = two_of_them(run, "lint")

    head, *lines = result.stdout.splitlines()
    assert head.split() == ["template", "errors", "warnings", "notes", "seconds", "rules"]
    assert [line.split()[0] for line in lines if line[:3] in ("one", "two")] == ["one", "two"]
    assert any(line.startswith("2 templates: ") for line in lines)


def test_finding_names_its_severity_and_page(run):
    """A finding's JSON contains its severity and the page of its rule."""
    found = json.loads(run("lint", "chat_template.jinja", "--json").stdout)["chat_template.jinja"]
    pages = (Path(__file__).parents[3] / "docs/reference/lint.md").read_text(encoding="utf-8")

    assert {finding["severity"] for finding in found} <= {"error", "warning", "note"}
    for finding in found:
        page, _, anchor = finding["page"].partition("#")
        assert page == "docs/reference/lint.md"
        assert f"\n## {anchor}\n" in pages


def ask(name: str) -> str:
    """Behave according to the name, in another process."""
    match name:
        case "hangs":
            time.sleep(60)
        case "dies":
            os._exit(7)
        case "fails":
            raise TemplateError("no such luck")
        case "breaks":
            raise KeyError("oh")
        case "warns":
            warnings.warn("\x1b[31mmind", UserWarning, stacklevel=1)
    return name.upper()


@pytest.mark.slow
def test_each_name_has_its_outcome_in_order():
    """A template that hangs, crashes or fails doesn't stop the others. Results are in order."""
    names = ["one", "hangs", "fails", "two", "dies", "breaks", "three"]

    outcomes = examine(names, ask, timeout=8, jobs=2)  # long enough for a process to start on a busy machine

    assert [outcome.name for outcome in outcomes] == names
    assert [outcome.result for outcome in outcomes] == ["ONE", None, None, "TWO", None, None, "THREE"]
    hangs, fails, dies, breaks = (outcomes[at].failure for at in (1, 2, 4, 5))
    assert hangs == "took longer than 8 s"
    assert fails == "no such luck"
    assert dies == "its process ended with code 7"
    assert breaks.startswith("KeyError: 'oh'; this is a bug in unrender")


def test_single_name_is_asked_here():
    """A single template without a time limit is checked in this process, and errors are raised."""
    assert examine(["one"], ask, timeout=None, jobs=2)[0].result == "ONE"
    with pytest.raises(TemplateError, match="no such luck"):
        examine(["fails"], ask, timeout=None, jobs=2)


@pytest.mark.slow
def test_warnings_of_processes_are_escaped(capfd):
    """Warnings of other processes are escaped."""
    examine(["warns", "one"], ask, timeout=20, jobs=1)

    assert "warning: \\x1b[31mmind\n" in capfd.readouterr().err
