"""Earlier work in a process changes no result: steps in a shuffled session give the results of a fresh process.

A session runs in its own process, with half of its templates cached on disk, in one of the `WAYS`: in sequence, in
threads, or in a forked child whose parent has busy threads. A vandal may also modify all arguments and results as far
as possible.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import remembering
from cases import thinned
from vendor import all_vendor_templates

from unrender import ChatTemplate

TESTS = Path(__file__).resolve().parents[1]
OWN = sorted((TESTS / "templates").rglob("*.jinja"))
ALL = [*OWN, *all_vendor_templates().values()]
QUICK = sorted(set(remembering.OPERATIONS) - remembering.SLOW)
Step = tuple[str, str]


def results(steps: list[Step], way: str, cache: Path | None = None, *, vandal: bool = False) -> list[str]:
    """Return the results of the steps in a new process."""
    asked = json.dumps({"steps": steps, "way": way, "vandal": vandal})
    run = subprocess.run(
        [sys.executable, str(TESTS / "remembering.py")],
        input=asked,
        capture_output=True,
        text=True,
        env={**os.environ, "UNRENDER_CACHE": str(cache or "off")},
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    found: list[str] = json.loads(run.stdout)
    return found


WAYS = ("alone", "threads", "forked")


def differing(
    steps: list[Step], expected: dict[Step, str], folder: Path, *, seed: int, ways: Sequence[str] = WAYS
) -> list[str]:
    """Return the steps whose result in a session differs from a fresh process."""
    drawn = random.Random(seed)
    kept = [path for path in sorted({path for path, _ in steps}) if drawn.random() < 0.5]
    found = []
    for way in ways:
        cache, vandal = folder / way, drawn.random() < 0.5
        results([(path, "analysed") for path in kept], "alone", cache)
        session = drawn.sample(steps * 2, len(steps) * 2)
        given = results(session, way, cache, vandal=vandal)
        assert len(given) == len(session), f"the child of the session {way!r} ended early"
        found += [
            f"{way}, vandal: {vandal}, {Path(step[0]).stem}, {step[1]}:\n{_about(expected[step], text)}"
            for step, text in zip(session, given, strict=True)
            if text != expected[step]
        ]
    return found


def _about(expected: str, found: str) -> str:
    at = max(0, len(os.path.commonprefix([expected, found])) - 60)
    return f"  fresh   {expected[at : at + 160]}\n  session {found[at : at + 160]}"


@pytest.mark.few(1)
@pytest.mark.parametrize("way", WAYS)
def test_a_session_gives_what_fresh_processes_give(tmp_path, way):
    """A session with a few operations on two templates gives the results of fresh processes."""
    drawn = random.Random(22)
    steps = [
        (str(path), operation)
        for path in (drawn.choice(OWN), drawn.choice(ALL))
        for operation in drawn.sample(QUICK, 2)
    ]
    expected = dict(zip(steps, results(steps, "fresh"), strict=True))

    assert differing(steps, expected, tmp_path, seed=22, ways=[way]) == []


@pytest.mark.full
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("part", range(12))
def test_every_template_and_operation(tmp_path, part):
    """All available templates and all operations give the results of fresh processes, for three seeds."""
    paths = random.Random(0).sample(ALL, len(ALL))[part::12]
    steps = [(str(path), operation) for path in paths for operation in remembering.OPERATIONS]
    expected = dict(zip(steps, results(steps, "fresh"), strict=True))

    assert [line for seed in range(3) for line in differing(steps, expected, tmp_path / str(seed), seed=seed)] == []


OLD = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}<assistant>"


@pytest.mark.parametrize("operation", ["described", pytest.param("verified", marks=pytest.mark.full)])
def test_what_is_found_on_disk_breaks_nothing_after_it(tmp_path, operation):
    """After a cached template from disk was used, other templates are analysed correctly."""
    for name, source in (("old", OLD), ("new", f"{OLD} ")):
        (tmp_path / name).write_text(source, encoding="utf-8")
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    results([(old, "analysed")], "alone", tmp_path / "cache")

    assert results([(old, operation), (new, "analysed")], "alone", tmp_path / "cache") == results(
        [(old, operation), (new, "analysed")], "fresh"
    )


@thinned(3)
def test_what_is_handed_out_is_out_of_reach_of_caches(tmp_path, step):
    """The vandal changes everything reachable from arguments and results, but later results don't change."""
    path = TESTS / "templates" / "tagged-repr.jinja"
    steps = [(str(path), operation) for operation in QUICK[::step]]

    assert dict(zip(steps * 2, results(steps * 2, "alone", vandal=True), strict=True)) == dict(
        zip(steps, results(steps, "fresh"), strict=True)
    )


def test_the_vandal_reaches_what_it_should():
    """The vandal finds lists and dicts in arguments, in results, and in their properties and methods."""
    held = remembering.Held()
    template = held.got(ChatTemplate.from_file(OWN[0]))
    turn = remembering._turn(template, held, tools=remembering.TOOLS)
    held.got(turn.parser())

    reached = list(map(id, remembering.reachable(held)))

    assert {id(turn.request.tools[0].parameters["properties"]), id(held[1])} <= set(reached)
    assert id(template.variables) in reached
