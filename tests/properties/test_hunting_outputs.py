"""The generator of mutated outputs: a short hunt finds nothing, and what hunts have kept stays fixed."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from hunting import outputs
from hunting.tally import kept_inputs, spent

SECONDS = 8


def test_a_short_hunt_finds_nothing(tmp_path: Path) -> None:
    """Some hundred mutated outputs keep every promise."""
    tally = outputs.hunt(Random(0), spent() + SECONDS, tmp_path)

    assert tally.failures == ()
    assert tally.tried > 0


@pytest.mark.parametrize("text", kept_inputs(outputs.NAME))
def test_a_kept_input_stays_fixed(text: str) -> None:
    """An input that failed once keeps every promise."""
    assert outputs.replay(text) is None


def test_a_broken_promise_is_found_and_made_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parser that loses a character is caught, with a text of the one character that it loses."""

    def loses(_reading: object, text: str, _seed: int) -> None:
        assert "{" not in text

    outputs._draw(Random(1))  # What is read is made once, and takes longer than the hunt.
    monkeypatch.setitem(outputs._CHECKS, "alike at every chunking", loses)
    tally = outputs.hunt(Random(1), spent() + 1, tmp_path)

    (failure,) = tally.failures
    assert json.loads(failure.input)["text"] == "{"
    assert kept_inputs(outputs.NAME, tmp_path) == [failure.input]
