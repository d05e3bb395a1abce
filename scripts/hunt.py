"""Search for bugs with random inputs: run the generators of `tests/hunting` in child processes with limits.

python scripts/hunt.py --minutes 10 [--only NAME] [--seed S] [--keep FOLDER] [--processes N]

Minutes are processor time, so the number of inputs doesn't depend on other load. The script prints the number of tried
and rejected inputs, and a minimised failure of each kind. It saves these inputs as regressions, which the tests replay.
The exit status is 1 if there was a failure.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import math
import random
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import environment

TESTS = environment.ROOT / "tests"
sys.path[:0] = [str(environment.ROOT / "src"), str(TESTS)]

from hunting.tally import REGRESSIONS, Failure, Generator, Tally, spent  # noqa: E402

MODULES = ("formats", "outputs", "templates")
PROCESSES = 2
SLICE = 60.0
"""Processor seconds of one child. Its findings are stored before the next child can crash."""
GRACE = 60
"""Additional processor seconds before the system stops a child that doesn't end."""
PATIENCE = 20.0
"""Wall-clock limit of a child, as a multiple of its processor time, since the child may be waiting."""
MEMORY = 3 << 30
"""Maximum address space of a child in bytes."""


def generators() -> dict[str, Generator]:
    """Return all generators by name."""
    modules: list[Generator] = [importlib.import_module(f"hunting.{name}") for name in MODULES]
    return {module.NAME: module for module in modules}


def main() -> None:
    """Run the search, print the report, and exit with 1 if there was a failure."""
    options = _options()
    if options.child:
        _hunt_here(options.child, options.seed, options.minutes * 60, options.keep)
        return
    names = [name for name in generators() if options.only in (None, name)]
    if not names:
        sys.exit(f"--only: expected one of {sorted(generators())}, found {options.only!r}")
    tallies = hunt(names, options.minutes * 60, options.seed, options.keep, options.processes)
    for name, tally in tallies.items():
        print(*report(name, tally), sep="\n")
    sys.exit(any(tally.failures for tally in tallies.values()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, required=True, help="processor time over all generators")
    parser.add_argument("--processes", type=int, default=PROCESSES, help="how many hunt at once")
    parser.add_argument("--only", help="the name of one generator")
    parser.add_argument("--seed", type=int, default=0, help="the same seed draws the same inputs")
    parser.add_argument("--keep", type=Path, default=REGRESSIONS, help="the folder for inputs that fail")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def hunt(names: list[str], seconds: float, seed: int, keep: Path, processes: int = PROCESSES) -> dict[str, Tally]:
    """Run the generators in turn and in parallel, each for a slice of processor time. Return their results."""
    tallies = dict.fromkeys(names, Tally())
    slices = math.ceil(seconds / SLICE)

    def work(turn: int) -> tuple[str, Tally]:
        name = names[turn % len(names)]
        return name, child(name, seed * 1_000_003 + turn, min(SLICE, seconds - turn * SLICE), keep)

    with ThreadPoolExecutor(processes) as pool:
        for name, found in pool.map(work, range(slices)):
            tallies[name] = tallies[name] + found
    return tallies


def child(name: str, seed: int, seconds: float, keep: Path) -> Tally:
    """Run a generator in a child process. If the process doesn't end, this counts as a failure."""
    options = ["--child", name, "--seed", str(seed), "--minutes", str(seconds / 60), "--keep", str(keep)]
    try:
        done = subprocess.run(
            [sys.executable, __file__, *options],
            capture_output=True,
            text=True,
            timeout=PATIENCE * (seconds + GRACE),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _died(name, seed, f"it did not end within {PATIENCE * (seconds + GRACE):.0f} s")
    if done.returncode:
        return _died(name, seed, done.stderr[-2_000:] or f"exit status {done.returncode}")
    data = json.loads(done.stdout.splitlines()[-1])
    failures = tuple(Failure(**failure) for failure in data["failures"])
    return Tally(tried=data["tried"], refused=data["refused"], failures=failures)


def _died(name: str, seed: int, detail: str) -> Tally:
    failure = Failure(kind="the process died", detail=detail, input=f"--child {name} --seed {seed}")
    return Tally(failures=(failure,))


def _hunt_here(name: str, seed: int, seconds: float, keep: Path) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds) + GRACE, resource.RLIM_INFINITY))
    tally = generators()[name].hunt(random.Random(seed), spent() + seconds, keep)  # noqa: S311 - no secrets
    print(json.dumps(dataclasses.asdict(tally)))


def report(name: str, tally: Tally) -> list[str]:
    """Return the report: a line of counts, and a few lines for each failure."""
    lines = [f"{name}: {tally.tried} inputs tried, {tally.refused} refused, {len(tally.failures)} kinds of failures"]
    for failure in tally.failures:
        lines += [f"- {failure.kind}", f"  {failure.detail!r:.400}", f"  {failure.input!r:.1000}"]
    return lines


if __name__ == "__main__":
    main()
