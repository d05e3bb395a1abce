"""The modules that derive a format, read by it and write it, into small changes of them, and the share that unit tests notice.

Usage: `nice -n 10 python3 scripts/mutants.py [--package parsing] [--count 300] [--seed 1] [--only analysis.turn]`. Each mutant changes one place of
one module; the module's unit tests run in a process of their own, up to the first failure. What survives is argued in
`scripts/mutants.toml`, or wants a test, or is code that nobody needs. Exits with 1 below the bar, or when a survivor is not argued.

Strategy: all tests are collected once, and each mutant (see `mutating`) is tried in a fork. Tests that have noticed a mutant
before are asked first; of tests that are named after behaviours, those that enter the changed function.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib
import json
import os
import random
import resource
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from environment import ROOT
from mutating import SOURCE, Mutant, Mutated, changed_in_place, mutants, mutated, name_of, outermost, places

from unrender.cache import SHARED

ARGUED = Path(__file__).with_suffix(".toml")
BAR = 0.9
"""The share of mutants that unit tests have to kill."""


def _modules(package: str) -> tuple[Path, ...]:
    return tuple(sorted(path for path in (SOURCE / package).rglob("*.py") if path.stem != "__init__"))


PACKAGES = {
    "analysis": _modules("analysis"),
    "parsing": (*_modules("machine"), *_modules("parser"), *_modules("values")),
    "grammar": (*_modules("grammar"), *_modules("schema"), *_modules("nodes")),
}
"""What a run takes its sample from."""
TARGETS = tuple(path for paths in PACKAGES.values() for path in paths)
_BY_BEHAVIOUR = {"parsing": (), "grammar": ("../test_grammar_by_hand.py", "../test_assemble_halves.py")}
"""Packages whose tests are named after behaviours: all of them are asked, and these of other folders."""
_UNIT = ROOT / "tests" / "unit"
_GOLDEN = "test_format_is_golden"
"""What sees the analysis as a whole: asked when a module's own tests have noticed nothing."""
_MORE = {
    "analyze": ["test_preserved_tokens.py"],
    "argument_code": ["test_program.py"],
    "assemble": ["test_assemble_halves.py"],
    "calls": ["test_program.py"],
    "capabilities": ["test_discovery.py", "test_shape.py"],
    "declared": ["../formats/test_declared.py"],
    "result": ["test_evidence.py"],
}
"""Further tests of a module."""
_RECORDS = "test_records.py"
"""What is tested of every module of a package that has such a file."""
_LAST = {"allowance", "analyze", "discovery", "stored"}
"""Modules whose tests analyse whole templates: their mutants are tried after all others."""
_SLOW = {
    "test_analysis_ends",
    "test_every_analysis_comes_back_equal",
    "test_every_template_gives_a_format_that_a_parser_reads",
    "test_format_does_not_depend_on_needles",
    "test_format_does_not_depend_on_tokens_or_dates",
    "test_no_needle_is_left",
    "test_odd_templates_are_analysed",
    "test_probes_are_few",
    "test_what_compiles_slowly_is_refused",
}
"""Tests that take seconds, and are not asked."""
_SECONDS, _BYTES = 30, 4 << 30
"""What one mutant may cost; one that does not end counts as killed, and is counted apart."""


def own_tests(path: Path, *, alone: bool = False) -> list[Path]:
    """Return the test modules of a module; `alone`, without those of its package that are named after something else."""
    package = _UNIT / path.relative_to(SOURCE).parent
    names = [f"test_{path.stem}.py", *_MORE.get(path.stem, ()), _RECORDS]
    if package.name in _BY_BEHAVIOUR:
        covering = _COVERED.get(name_of(path), "").removeprefix(f"{package.name}/")
        others = sorted(test.name for test in package.glob("test_*.py"))
        names = [names[0], *_MORE.get(path.stem, ()), covering or names[0]]
        names += [] if alone else [*others, *_BY_BEHAVIOUR[package.name]]
    return [(package / name).resolve() for name in dict.fromkeys(names) if (package / name).exists()]


_COVERED: dict[str, str] = {}
"""By module: the unit test that covers it instead of one of its own."""


class Trials:
    """Runs no test by itself: forks for each mutant, and runs those of its module there."""

    def __init__(self, sample: Sequence[tuple[Path, Mutant]], *, check: bool, golden: bool) -> None:
        self.sample, self.check, self.golden = sample, check, golden
        self.survivors, self.endless, self.begun = list[Mutant](), 0, False
        self.kills = Counter[tuple[str, str]]()
        """How many mutants of a module, and of all ("") each test has killed: such tests are asked first."""
        self.heard, self.told = os.pipe()
        os.set_blocking(self.heard, False)
        self.entered = dict[str, frozenset[str]]()
        """By test: the functions that it has entered when nothing was changed. Others cannot notice a change in a function."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try all mutants, if the tests pass without any."""
        items = [item for item in session.items if not _is_slow(item)]
        session.items[:] = items
        gc.freeze()  # Forks share what was imported for as long as nobody writes to it.
        self.begun = not self.check or self._passes_unchanged(session, items)
        for number, (path, mutant) in enumerate(self.sample if self.begun else (), 1):
            status = _status(partial(self._try, session, path, mutant), _SECONDS)
            if status == 0:  # What was made when the module was imported still holds the old code.
                status = _status(partial(self._try_anew, path, mutant), _SECONDS)
            self._note_killers(path)
            self.endless += os.WIFSIGNALED(status)
            if status == 0:
                self.survivors.append(mutant)
            if status == 0 or number % 20 == 0:
                _say(f"{number} tried, {len(self.survivors)} alive", end="  " if status == 0 else "\n")
            if status == 0:
                _say(f"{mutant.module}:{mutant.line} {mutant.function}: {mutant.change}")
        return True

    def _passes_unchanged(self, session: pytest.Session, items: Sequence[pytest.Item]) -> bool:
        """Return whether all tests pass without any change; notes what they enter where tests are named after behaviours."""
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as notes:
            if _status(partial(self._passes_noting, session, items, Path(notes.name)), 20 * _SECONDS):
                return False
            if all(path.parent.name in _BY_BEHAVIOUR for path, _ in self.sample):
                self.entered = {test: frozenset(found) for test, found in json.load(notes).items()}
        return True

    def _passes_noting(self, session: pytest.Session, items: Sequence[pytest.Item], notes: Path) -> bool:
        """Run all tests as if each were alone; write down which functions each enters."""
        entered, caches = {}, _caches()
        for item in items:
            for cache in caches:
                cache.cache_clear()
            SHARED.clear()
            codes = set[CodeType]()
            sys.settrace(lambda frame, _event, _arg, codes=codes: codes.add(frame.f_code))  # type: ignore[misc]
            passes = self._passes(session, [item])
            sys.settrace(None)
            if not passes:
                return False
            entered[item.nodeid] = sorted({_entry(code) for code in codes if code.co_filename.startswith(str(SOURCE))})
        notes.write_text(json.dumps(entered), "utf-8")
        return True

    def _try(self, session: pytest.Session, path: Path, mutant: Mutant) -> bool:
        """Return whether the tests pass with the function changed in place, or it cannot be."""
        tree = ast.parse(path.read_text("utf-8"))
        function = outermost(mutant, tree)
        code = mutated(tree, places(tree)[mutant.number], str(path))
        module = importlib.import_module(f"unrender.{mutant.module}")
        can_be = function == mutant.function and changed_in_place(module, function, code)
        return not can_be or self._run(session, path, f"{path}:{function}")

    def _try_anew(self, path: Path, mutant: Mutant) -> bool:
        """Return whether the tests pass when the changed module is imported before all others."""
        tree = ast.parse(path.read_text("utf-8"))
        code = mutated(tree, places(tree)[mutant.number], str(path))
        tests = sorted(own_tests(path, alone=not self.golden), key=lambda test: -self.kills[path.stem, str(test)])
        return _run_anew(tests, mutant, code, golden=self.asks_golden(path), teller=_Teller(self.told))

    def asks_golden(self, path: Path) -> bool:
        """Return whether golden formats are asked about a module: not about what is made of formats."""
        return path.parent.name == "analysis" and self.golden

    def _run(self, session: pytest.Session, path: Path, entry: str) -> bool:
        """Return whether the module's tests pass, as far as they enter the changed function: its own first."""
        own = own_tests(path, alone=not self.golden)
        items = [item for test in own for item in session.items if item.path == test]
        items = [item for item in items if not self.entered or entry in self.entered[item.nodeid]]
        items.sort(key=lambda item: (-self.kills[path.stem, item.nodeid], -self.kills["", item.nodeid]))
        golden = [item for item in session.items if getattr(item, "originalname", "") == _GOLDEN]
        return self._passes(session, [*items, *(golden if self.asks_golden(path) else ())])

    def _note_killers(self, path: Path) -> None:
        """Count the test that has failed, and its file."""
        while chunk := _read(self.heard):
            for nodeid in chunk.splitlines():
                test = str(ROOT / nodeid.partition("::")[0])
                self.kills.update([(path.stem, nodeid), ("", nodeid), (path.stem, test)])

    def _passes(self, session: pytest.Session, items: Iterable[pytest.Item]) -> bool:
        for item in items:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            if session.testsfailed:
                return False
        return True


def _caches() -> list[Any]:
    """Return what remembers results from one test to the next."""
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] == "unrender"]
    return [value for module in modules for value in vars(module).values() if hasattr(value, "cache_clear")]


def _entry(code: CodeType) -> str:
    """Return the file of a function, and the name of the outermost function that it is in."""
    return f"{code.co_filename}:{code.co_qualname.partition('.<locals>')[0]}"


class _Teller:
    """Tells the process that counts which test has failed."""

    def __init__(self, told: int) -> None:
        self.told = told

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the test's name."""
        if report.failed:
            os.write(self.told, f"{report.nodeid}\n".encode())


def _read(pipe: int) -> str:
    """Return what is waiting in a pipe."""
    try:
        return os.read(pipe, 1 << 16).decode()
    except BlockingIOError:
        return ""


def _is_slow(item: pytest.Item) -> bool:
    return getattr(item, "originalname", "") in _SLOW or item.get_closest_marker("slow") is not None


def _run_anew(own: Iterable[Path], mutant: Mutant, code: CodeType, *, golden: bool, teller: _Teller) -> bool:
    """Run a module's tests in a fresh interpreter state, with other code for one module."""
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(ROOT)) and name != "__main__":
            del sys.modules[name]
    sys.meta_path.insert(0, Mutated(f"unrender.{mutant.module}", code))
    tests = [*map(str, own), *([f"{_UNIT}/analysis/test_derivation.py::{_GOLDEN}"] if golden else [])]
    chosen = [*_OPTIONS, "-x", "-m", "not slow", "-k", f"not ({' or '.join(sorted(_SLOW))})"]
    # Most are noticed by the first few, and to collect the others takes seconds.
    parts = [part for part in (tests[:3], tests[3:]) if part]
    return all(pytest.main([*chosen, *part], plugins=[teller]) in (0, _NO_TESTS) for part in parts)


_NO_TESTS = 5
"""What pytest returns when none of the tests was chosen."""
_OPTIONS = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain", "--tb=no", f"--rootdir={ROOT}"]


def _status(passes: Callable[[], bool], seconds: int) -> int:
    """Run tests in a process of its own; return its status, which is 0 when they find nothing."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
        os._exit(0 if passes() else 1)
    finally:
        os._exit(1)


def _silence() -> None:
    """Let nothing through but what `_say` says: failing tests are what is wanted here."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _say(text: str, end: str = "\n") -> None:
    """Print to the terminal's own output, which pytest captures."""
    os.write(_OUTPUT, f"{text}{end}".encode())


_OUTPUT = os.dup(1)


def argued() -> dict[tuple[str, str, str], str]:
    """Return why each mutant that survives may do so."""
    entries = tomllib.loads(ARGUED.read_text("utf-8")).get("argued", [])
    return {(entry["module"], entry["function"], entry["change"]): entry["why"] for entry in entries}


def main() -> None:
    """Try a sample of mutants and report which ones no unit test notices."""
    options = _options()
    chosen = [path for path in TARGETS if name_of(path) in options.only] if options.only else PACKAGES[options.package]
    everything = [(path, mutant) for path in chosen for mutant in mutants(path)]
    count = min(options.count, len(everything))
    sample = random.Random(options.seed).sample(everything, count)  # noqa: S311 -- which mutants is not a secret
    sample.sort(key=lambda item: (item[0].stem in _LAST, item[1].module, item[1].number))
    begun = time.monotonic()
    trials = Trials(sample, check=not options.trust, golden=not options.own)
    tests = [str(test) for path in chosen for test in own_tests(path, alone=options.own)]
    golden = f"{_UNIT}/analysis/test_derivation.py::{_GOLDEN}"
    asked = [golden] if any(map(trials.asks_golden, chosen)) else []
    _silence()
    pytest.main([*_OPTIONS, *dict.fromkeys([*tests, *asked])], plugins=[trials, _Teller(trials.told)])
    if not trials.begun:
        _say("the tests do not pass without any change")
        sys.exit(2)
    _report(trials, len(everything), options.seed, time.monotonic() - begun)


def _report(trials: Trials, of: int, seed: int, seconds: float) -> None:
    why, count = argued(), len(trials.sample)
    tried = Counter(mutant.module for _, mutant in trials.sample)
    alive = Counter(mutant.module for mutant in trials.survivors)
    unargued = [mutant for mutant in trials.survivors if mutant.key not in why]
    for module, number in tried.items():
        _say(f"{module:28}{number - alive[module]:4} of {number:4}")
    killed = count - len(trials.survivors)
    _say(
        f"{killed} of {count} killed ({killed / max(count, 1):.1%}), of {of} possible ones, seed {seed}, {seconds:.0f} s"
    )
    _say(f"{trials.endless} of the killed did not end, or took too much")
    _say(f"{len(trials.survivors) - len(unargued)} survivors argued, {len(unargued)} open")
    for mutant in unargued:
        _say(f"open: {mutant.module}:{mutant.line} {mutant.function}: {mutant.change}")
    sys.exit(killed < BAR * count or bool(unargued))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=300, help="mutants to try")
    parser.add_argument("--package", choices=PACKAGES, default="analysis", help="where the sample is from")
    parser.add_argument("--seed", type=int, default=1, help="chooses which")
    parser.add_argument("--only", action="append", metavar="MODULE", help="e.g. analysis.turn; may be repeated")
    parser.add_argument("--own", action="store_true", help="ask a module's own tests alone, and no golden formats")
    parser.add_argument("--trust", action="store_true", help="do not look first whether the tests pass unchanged")
    return parser.parse_args()


if __name__ == "__main__":
    main()
