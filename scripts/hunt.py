"""Minutes of random inputs → what broke: runs the generators of `tests/hunting` in limited child processes.

python scripts/hunt.py --minutes 10 [--only NAME] [--seed S] [--keep FOLDER]

Prints the inputs tried and refused, and one minimised failure of each kind, and keeps their inputs as regressions, which
the tests replay. The exit status is 1 when anything broke.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import itertools
import json
import random
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import environment

TESTS = environment.ROOT / "tests"
sys.path[:0] = [str(environment.ROOT / "src"), str(TESTS)]

from hunting.tally import REGRESSIONS, Failure, Generator, Tally  # noqa: E402

MODULES = ("formats", "templates", "outputs")
PROCESSES = 2
SLICE = 60.0
"""Seconds that one child hunts; what it found is safe when the next one dies."""
GRACE = 60.0
"""Seconds after which a child that does not end is stopped."""
MEMORY = 3 << 30
"""Bytes of address space that a child may take."""


def generators() -> dict[str, Generator]:
    """Return the generators that are there, by name."""
    found = [path.stem for path in sorted((TESTS / "hunting").glob("*.py")) if path.stem in MODULES]
    modules: list[Generator] = [importlib.import_module(f"hunting.{name}") for name in found]
    return {module.NAME: module for module in modules}


def main() -> None:
    """Hunt, print, and exit with 1 when anything broke."""
    options = _options()
    if options.child:
        _hunt_here(options.child, options.seed, options.minutes * 60, options.keep)
        return
    names = [name for name in generators() if options.only in (None, name)]
    if not names:
        sys.exit(f"--only: expected one of {sorted(generators())}, found {options.only!r}")
    tallies = hunt(names, options.minutes * 60, options.seed, options.keep)
    for name, tally in tallies.items():
        print(*report(name, tally), sep="\n")
    sys.exit(any(tally.failures for tally in tallies.values()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, required=True, help="how long, over all generators together")
    parser.add_argument("--only", help="the name of one generator")
    parser.add_argument("--seed", type=int, default=0, help="the same seed draws the same inputs")
    parser.add_argument("--keep", type=Path, default=REGRESSIONS, help="the folder for inputs that fail")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def hunt(names: list[str], seconds: float, seed: int, keep: Path) -> dict[str, Tally]:
    """Run the generators in turn, a slice of time each, in `PROCESSES` children at once; return what each found."""
    deadline = time.monotonic() + seconds
    tallies = dict.fromkeys(names, Tally())

    def work(first: int) -> None:
        for turn in itertools.count(first, PROCESSES):
            left = deadline - time.monotonic()
            if left <= 0 and turn >= PROCESSES:
                return
            name = names[turn % len(names)]
            found = child(name, seed * 1_000_003 + turn, max(1.0, min(SLICE, left)), keep)
            tallies[name] = tallies[name] + found

    with ThreadPoolExecutor(PROCESSES) as pool:
        for done in [pool.submit(work, first) for first in range(PROCESSES)]:
            done.result()
    return tallies


def child(name: str, seed: int, seconds: float, keep: Path) -> Tally:
    """Hunt in a process of its own; that it does not come to an end is a failure, too."""
    options = ["--child", name, "--seed", str(seed), "--minutes", str(seconds / 60), "--keep", str(keep)]
    try:
        done = subprocess.run(
            [sys.executable, __file__, *options],
            capture_output=True,
            text=True,
            timeout=seconds + GRACE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _died(name, seed, f"it did not end within {GRACE} s of its time")
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
    tally = generators()[name].hunt(random.Random(seed), time.monotonic() + seconds, keep)  # noqa: S311 - no secrets
    print(json.dumps(dataclasses.asdict(tally)))


def report(name: str, tally: Tally) -> list[str]:
    """Return what was found, a line for the counts and a few for each failure."""
    lines = [f"{name}: {tally.tried} inputs tried, {tally.refused} refused, {len(tally.failures)} kinds of failures"]
    for failure in tally.failures:
        lines += [f"- {failure.kind}", f"  {failure.detail!r:.400}", f"  {failure.input!r:.1000}"]
    return lines


if __name__ == "__main__":
    main()
