"""Records of the agent loops: one line of JSON per loop, and figures printed at the end."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from engines import installed
from environment import ROOT

collect_ignore = [] if all(map(installed, ("langchain", "xllamacpp"))) else ["test_loops.py"]
TRANSCRIPTS = Path(os.environ.get("UNRENDER_TRANSCRIPTS") or ROOT / ".cache" / "agents")
_LOOPS = pytest.StashKey[list[dict[str, Any]]]()


@pytest.fixture(scope="session")
def example() -> Path:
    """Return the path of the model that `unrender serve --example-model` downloads."""
    import small_model  # noqa: PLC0415 - only where its packages are

    return small_model.path()


@pytest.fixture(scope="session")
def keep(pytestconfig: pytest.Config) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yield a function that records a loop in the transcript."""
    loops = pytestconfig.stash.setdefault(_LOOPS, [])
    TRANSCRIPTS.mkdir(parents=True, exist_ok=True)
    with (TRANSCRIPTS / "loops.jsonl").open("w", encoding="utf-8") as file:

        def keep(loop: dict[str, Any]) -> None:
            loops.append(loop)
            print(json.dumps(loop, ensure_ascii=False), file=file, flush=True)

        yield keep


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print how many tasks each program solved and how its loops ended. Solving tasks is up to the model."""
    programs: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for loop in config.stash.get(_LOOPS, []):
        programs[loop["program"]].append(loop)
    for name, loops in programs.items():
        solved, calls = sum(loop["solved"] for loop in loops), sum(len(loop["calls"]) for loop in loops)
        ends = ", ".join(
            f"{number} {reason}" for reason, number in Counter(loop["end"] for loop in loops).most_common()
        )
        seconds = sum(loop["seconds"] for loop in loops) / len(loops)
        told = f"{name}: {solved} of {len(loops)} solved, {calls} calls, {seconds:.1f} s each; ended: {ends}"
        terminalreporter.write_line(told)
    if programs:
        terminalreporter.write_line(f"transcripts: {TRANSCRIPTS / 'loops.jsonl'}")
