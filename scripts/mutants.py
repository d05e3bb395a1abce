"""Mutation tests: change one place of a module at a time, and report the share of changes that the tests detect.

Usage: `nice -n 10 .venv/bin/python scripts/mutants.py [--count 300] [--seed 1] [--only parsing]`. Each mutant changes
one place of one module. Tests run in a separate process until the first failure. The script lists the undetected
mutants: they need a row in `tests/corpus` or a test, or their code isn't needed. It exits with 1 if the share is too
low.

Strategy: all tests are collected once and run once without changes, to record the duration of each and the functions
that it enters. Each mutant (see `mutating`) is tried in a fork, with the tests that enter the changed function. Tests
that have detected a mutant of the module run first, then the fastest ones.
"""

from __future__ import annotations

import argparse
import ast
import cProfile
import gc
import importlib
import json
import os
import random
import re
import resource
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from environment import ROOT
from mutating import SOURCE, Mutant, changed_in_place, mutants, mutated, places

from unrender.cache import Cache

BAR = 0.88
"""The share of mutants that tests must kill."""
TARGETS = {
    "analysis": ("analysis", "proof"),
    "answer": ("answer",),
    "grammar": ("grammar", "schema", "nodes"),
    "machine": ("machine",),
    "parser": ("parser",),
    "values": ("values",),
}
"""Folders and files of the package from which a run draws its sample."""
TESTS = (
    "test_corpus.py",
    *(f"unit/{part}" for parts in TARGETS.values() for part in parts),
    *("unit/conversation", "unit/dialects", "unit/format", "unit/rendering", "unit/explain"),
    *(f"unit/{path.name}" for path in sorted((ROOT / "tests" / "unit").glob("test_*.py"))),
    *("properties", "conformance"),
)
"""Tests that may detect a mutant. Tests marked `slow` or `full` aren't run, but all cases of tests marked `few` are."""
_MANY, _CASES = re.compile(r"tests/(conformance|properties)/"), 20
"""Tests with a case for each template or format, and the number of cases to run. A hundred analyses take a minute."""
_SECONDS, _LONGEST, _BYTES = 60, 30, 4 << 30
"""Maximum seconds for the tests of one mutant and for one test. A test that doesn't end has detected the mutant."""


def files(only: Iterable[str] = ()) -> list[Path]:
    """Return the modules to change: all, or those of some targets."""
    roots = [SOURCE / part for name, parts in TARGETS.items() if not only or name in only for part in parts]
    return [path for root in roots for path in (sorted(root.rglob("*.py")) if root.is_dir() else [root])]


class Trials:
    """A pytest plug-in that forks for each mutant and runs the tests that may detect it."""

    def __init__(self, sample: Sequence[tuple[Path, Mutant]]) -> None:
        self.sample = sample
        self.survivors, self.endless, self.fixed, self.begun = list[Mutant](), 0, 0, False
        self.kills = Counter[tuple[str, str]]()
        """Mutants killed by each test, by module and in total (""). Tests with more kills run first."""
        self.heard, self.told = os.pipe()
        os.set_blocking(self.heard, False)
        self.entered = dict[str, frozenset[str]]()
        """For each test, the functions that it enters without mutants. It can't detect a mutant in another function."""
        self.seconds = dict[str, float]()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Remove cases of tests that have very many, since a few cases detect almost the same mutants."""
        cases = defaultdict[str, list[pytest.Item]](list)
        for item in items:
            cases[item.nodeid.partition("[")[0] if _MANY.search(item.nodeid) else item.nodeid].append(item)
        drawn = random.Random(len(items))  # noqa: S311 -- which cases is not a secret
        kept = {item for some in cases.values() for item in drawn.sample(some, min(len(some), _CASES))}
        items[:] = [item for item in items if item in kept]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try all mutants if the tests pass without changes."""
        gc.freeze()  # Forks share imported objects until one of them is modified.
        self.begun = self._passes_unchanged(session)
        for number, (path, mutant) in enumerate(self.sample if self.begun else (), 1):
            status = _status(partial(self._try, session, path, mutant), 2 * _SECONDS)
            while chunk := _read(self.heard):
                self.kills.update(key for test in chunk.splitlines() for key in ((path.stem, test), ("", test)))
            self.endless += os.WIFSIGNALED(status)
            self.fixed += os.waitstatus_to_exitcode(status) == _FIXED
            if status == 0:
                self.survivors.append(mutant)
                _say(f"alive: {mutant.module}:{mutant.line} {mutant.function}: {mutant.change}")
            if number % 20 == 0:
                _say(f"{number} tried, {len(self.survivors)} alive")
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Report a failed test to the parent process."""
        if report.failed:
            os.write(self.told, f"{report.nodeid}\n".encode())

    def _passes_unchanged(self, session: pytest.Session) -> bool:
        """Return whether all tests pass without changes. Record the entered functions and the duration of each."""
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as notes:
            if _status(partial(self._note, session, Path(notes.name)), 3 * 3600):
                return False
            for test, (seconds, entered) in json.load(notes).items():
                self.seconds[test], self.entered[test] = seconds, frozenset(entered)
        return True

    def _note(self, session: pytest.Session, notes: Path) -> int:
        """Run each test by itself, and record its seconds and the functions it enters. Return 1 if a test fails."""
        found = {}
        for item in session.items:
            clear_caches()
            begun = time.process_time()
            profiler = cProfile.Profile(builtins=False)  # Python's own trace functions are slow.
            profiler.enable()
            passes = _passes(session, item)
            profiler.disable()
            if not passes:
                _say(f"fails with nothing changed: {item.nodeid}")
                return 1
            codes = [entry.code for entry in profiler.getstats() if isinstance(entry.code, CodeType)]
            entered = sorted({_entry(code) for code in codes if code.co_filename.startswith(str(SOURCE))})
            found[item.nodeid] = (time.process_time() - begun, entered)
        notes.write_text(json.dumps(found), "utf-8")
        return 0

    def _try(self, session: pytest.Session, path: Path, mutant: Mutant) -> int:
        """Return 0 if tests pass with the changed function, 1 if one fails, `_FIXED` if it can't be changed."""
        tree = ast.parse(path.read_text("utf-8"))
        code = mutated(tree, places(tree)[mutant.number], str(path))
        module = importlib.import_module(f"unrender.{mutant.module}")
        if not changed_in_place(module, mutant.function, code):
            return _FIXED
        clear_caches()
        asked = [item for item in session.items if f"{path}:{mutant.function}" in self.entered[item.nodeid]]
        asked.sort(key=lambda item: (-self.kills[path.stem, item.nodeid], self.seconds[item.nodeid]))
        begun = time.process_time()
        for item in asked:
            used = time.process_time()
            if used - begun > _SECONDS:
                break
            # Only the soft limit: a lowered hard limit can't be raised again for the next test, not even by root
            # everywhere.
            resource.setrlimit(resource.RLIMIT_CPU, (int(used) + _LONGEST, resource.RLIM_INFINITY))
            if not _passes(session, item):
                return 1
        return 0


_FIXED = 3
"""The exit code for a function that can't be changed."""


def _passes(session: pytest.Session, item: pytest.Item) -> bool:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    return not session.testsfailed


def clear_caches() -> None:
    """Clear all caches."""
    for value in _caches(len(sys.modules)):
        if isinstance(value, Cache):
            value.__init__(value.limit)  # type: ignore[misc]
        else:
            value.cache_clear()


@lru_cache(maxsize=1)
def _caches(_modules: int) -> list[Any]:
    """Return all caches. The search is repeated after new modules were imported."""
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] in ("unrender", "rows")]
    values = [value for module in modules for value in vars(module).values()]
    return [value for value in values if isinstance(value, Cache) or hasattr(value, "cache_clear")]


def _entry(code: CodeType) -> str:
    """Return the file of a function, and the name of its outermost function."""
    return f"{code.co_filename}:{code.co_qualname.partition('.<locals>')[0]}"


def _read(pipe: int) -> str:
    """Return the available text in a pipe."""
    try:
        return os.read(pipe, 1 << 16).decode()
    except BlockingIOError:
        return ""


_OPTIONS = [
    *("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain", "--tb=no"),
    *("-m", "not slow and (few or not full)", f"--rootdir={ROOT}"),
]


def _status(found: Callable[[], int], seconds: int) -> int:
    """Run tests in a separate process; return its status, which is 0 if they pass."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
        os._exit(found())
    finally:
        os._exit(1)


def _say(text: str) -> None:
    """Print to the real standard output. Output of tests is hidden, since failures are expected."""
    os.write(_OUTPUT, f"{text}\n".encode())


_OUTPUT = os.dup(1)


def main() -> None:
    """Try a sample of mutants and report the undetected ones."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=300, help="mutants to try")
    parser.add_argument("--seed", type=int, default=1, help="chooses which")
    parser.add_argument(
        "--only", action="append", choices=TARGETS, default=[], help="where the sample is from; may be repeated"
    )
    options = parser.parse_args()
    everything = [(path, mutant) for path in files(options.only) for mutant in mutants(path)]
    sample = random.Random(options.seed).sample(everything, min(options.count, len(everything)))  # noqa: S311 -- which mutants is not a secret
    trials, begun = Trials(sample), time.monotonic()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.environ["UNRENDER_CACHE"] = (
        "off"  # Mutants change the analysis in memory, so stored analyses of the unchanged source are wrong.
    )
    pytest.main([*_OPTIONS, *(str(ROOT / "tests" / name) for name in TESTS)], plugins=[trials])
    if not trials.begun:
        _say("the tests do not pass without any change")
        sys.exit(2)
    _report(trials, len(everything), options.seed, time.monotonic() - begun)


def _report(trials: Trials, of: int, seed: int, seconds: float) -> None:
    count = len(trials.sample) - trials.fixed
    tried = Counter(mutant.module.partition(".")[0] for _, mutant in trials.sample)
    alive = Counter(mutant.module.partition(".")[0] for mutant in trials.survivors)
    for part, number in tried.items():
        _say(f"{part:28}{number - alive[part]:4} of {number:4}")
    killed = count - len(trials.survivors)
    share = killed / max(count, 1)
    _say(f"{killed} of {count} killed ({share:.1%}), of {of} possible ones, seed {seed}, {seconds:.0f} s")
    _say(f"{trials.endless} of the killed did not end, or took too much; {trials.fixed} others could not be made")
    sys.exit(share < BAR)


if __name__ == "__main__":
    main()
