"""The generators at a size for CI: stored inputs pass, new ones break nothing, and a hunt reports its findings."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import hunt
import pytest
from hunting import outputs
from hunting.drawn_formats import Data, cases
from hunting.formats import check_case
from hunting.tally import Failure, Tally, drawing, keep_failure, kept_inputs, spent
from hypothesis import given, seed, settings

SECONDS = 1
GENERATORS = hunt.generators()
KEPT = [(name, text) for name in GENERATORS for text in kept_inputs(name)]


@pytest.mark.few(12)
@pytest.mark.parametrize(("name", "text"), KEPT, ids=[f"{name}-{i}" for i, (name, _) in enumerate(KEPT)])
def test_what_once_broke_holds(name: str, text: str) -> None:
    """A stored input no longer breaks a guarantee."""
    assert GENERATORS[name].replay(text) is None


@seed(23)
@given(cases())
@drawing(max_examples=settings().max_examples)
def test_random_formats_break_no_promise(case: Data) -> None:
    """A random Format is rejected with the name of a field, or works; `scripts/hunt.py` tries many more."""
    check_case(case)


def test_tallies_add_up() -> None:
    """Counts are summed. Of two failures of one kind, the one with the smaller input is kept."""
    long, short, other = (
        Failure(kind=kind, detail="", input=text) for kind, text in (("a", "xx"), ("a", "x"), ("b", "y"))
    )

    both = Tally(tried=3, refused=1, failures=(long, other)) + Tally(tried=2, failures=(short,))

    assert (both.tried, both.refused, set(both.failures)) == (5, 1, {short, other})


def test_inputs_are_kept_character_for_character(tmp_path: Path) -> None:
    """Stored inputs keep line breaks and lone surrogates."""
    text = "a\r\nb\ud800\x00"

    keep_failure(tmp_path, "formats", Failure(kind="k", detail="", input=text))

    assert kept_inputs("formats", tmp_path) == [text]


def test_a_hunt_in_children_counts_its_inputs(tmp_path: Path) -> None:
    """The script runs a generator in child processes and adds up their counts."""
    tallies = hunt.hunt(["formats"], 1.0, seed=1, keep=tmp_path)

    assert tallies["formats"].tried > 0


def test_a_child_that_dies_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that hangs or crashes is reported with the seed that reproduces it."""
    monkeypatch.setattr(hunt, "PATIENCE", 0.01)
    (late,) = hunt.child("formats", 7, 1.0, tmp_path).failures
    monkeypatch.setattr(hunt, "PATIENCE", 20.0)
    (broken,) = hunt.child("no such generator", 7, 1.0, tmp_path).failures

    assert (late.kind, broken.kind) == ("the process died", "the process died")
    assert late.input == "--child formats --seed 7"
    assert "no such generator" in broken.detail


def test_a_report_names_each_failure() -> None:
    """The report lists counts and failures."""
    lines = hunt.report("formats", Tally(tried=2, refused=1, failures=(Failure(kind="k", detail="d", input="i"),)))

    assert lines == ["formats: 2 inputs tried, 1 refused, 1 kinds of failures", "- k", "  'd'", "  'i'"]


def test_a_short_hunt_finds_nothing(tmp_path: Path) -> None:
    """Random texts keep every guarantee."""
    tally = outputs.hunt(Random(0), spent() + SECONDS, tmp_path)

    assert tally.failures == ()
    assert tally.tried > 0


def test_a_broken_promise_is_found_and_made_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parser that loses a character is detected, with a text of only that character."""

    def loses(_reading: object, text: str, _seed: int) -> None:
        assert "{" not in text

    monkeypatch.setattr(outputs, "drawn", lambda _: outputs.named("json_envelope"))
    monkeypatch.setitem(outputs._CHECKS, "alike for every chunking", loses)
    tally = outputs.hunt(Random(1), spent() + 1, tmp_path)

    (failure,) = tally.failures
    assert json.loads(failure.input)["text"] == "{"
    assert kept_inputs(outputs.NAME, tmp_path) == [failure.input]
