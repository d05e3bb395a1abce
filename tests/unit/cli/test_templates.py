"""Tests of `inspect`, `verify` and `lint`, in text and in JSON."""

from __future__ import annotations

import json
import os
import time
import warnings
from pathlib import Path

import pytest

from unrender import TemplateError
from unrender.cli.examining import examine


@pytest.mark.slow
def test_json_holds_both_sides_and_their_split(run):
    """--json contains both texts of each comparison, split into common and different parts."""
    found = json.loads(run("inspect", "chat_template.jinja", "--json").stdout)["evidence"]
    for evidence in found:
        split = evidence["split"]
        for side in ("left", "right"):
            assert split["prefix"] + split[side] + split["suffix"] == evidence[side]["text"]
    names = {evidence["comparison"] for evidence in found}
    assert names >= {"R1", "R3", "C1", "T1", "T2", "T3", "T4", "T5", "T6", "T7", "A3"}


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
