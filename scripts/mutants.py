"""The modules that derive a format, read by it and write it, into small changes of them, and the share that unit tests notice.

Usage: `nice -n 10 python3 scripts/mutants.py [--package parsing] [--count 300] [--seed 1] [--only analysis.turn]`. Each mutant changes one place of
one module; the module's unit tests run in a process of their own, up to the first failure. What survives is argued in
`scripts/mutants.toml`, or wants a test, or is code that nobody needs. Exits with 1 below the bar, or when a survivor is not argued.

Strategy: all tests are collected once. Each mutant is a fork in which the changed function gets its new code; what is
outside functions (defaults of classes, tables) is changed by importing the module anew, which takes longer. Tests that have
noticed a mutant before are asked first; of tests that are named after behaviours, those that enter the changed function.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import resource
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "unrender"
ARGUED = Path(__file__).with_suffix(".toml")
BAR = 0.9
"""The share of mutants that unit tests have to kill."""


def _modules(package: str) -> tuple[Path, ...]:
    return tuple(sorted(path for path in (SOURCE / package).glob("*.py") if path.stem != "__init__"))


PACKAGES = {
    "analysis": (*_modules("analysis"), SOURCE / "assemble.py"),
    "parsing": _modules("parsing"),
    "grammar": _modules("grammar"),
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
    "assemble": ["test_assemble_halves.py"],
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change of one module."""

    module: str
    """Without the package, e.g. `analysis.turn`."""
    function: str
    """The function or class that holds the place; empty at the top of the module."""
    line: int
    change: str
    """What was there, and what is there now."""
    number: int
    """Which of the module's places it is."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is argued by, wherever in the module it moves."""
        return self.module, self.function, self.change


Place = tuple[ast.AST, str, int | None, ast.expr | ast.stmt, str]
"""Parent, field, position in a list, what to put there, and the name of the function around."""

_SWAPPED: dict[type, type] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_TWINS = (
    ("partition", "rpartition"),
    ("lstrip", "rstrip"),
    ("removeprefix", "removesuffix"),
    ("startswith", "endswith"),
    ("find", "rfind"),
    ("min", "max"),
    ("any", "all"),
    ("common_prefix", "common_suffix"),
    ("closers_of", "openers_of"),
    ("is_tag", "is_word"),
)
_TWIN = {left: right for pair in _TWINS for left, right in (pair, pair[::-1])}


def _changed(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:  # noqa: C901 -- a table, by kind of node
    """Yield what may be in the place of a node."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in _SWAPPED:
            yield ast.Compare(node.left, [_SWAPPED[type(op)]()], node.comparators)
        case ast.BoolOp():
            yield ast.BoolOp(_SWAPPED[type(node.op)](), node.values)
            for at in range(len(node.values)):
                rest = [*node.values[:at], *node.values[at + 1 :]]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        case ast.BinOp() if type(node.op) in _SWAPPED:
            yield ast.BinOp(node.left, _SWAPPED[type(node.op)](), node.right)
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.IfExp():
            yield ast.IfExp(node.test, node.orelse, node.body)
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=str(value)) if " " not in value.strip():
            yield ast.Constant("" if value else "x")
        case ast.Attribute(attr=name) if name in _TWIN:
            yield ast.Attribute(node.value, _TWIN[name], node.ctx)
        case ast.Name(id=name) if name in _TWIN and name in ("min", "max", "any", "all"):
            yield ast.Name(_TWIN[name], node.ctx)
        case ast.Slice():
            yield from (_without(node, name) for name in ("lower", "upper", "step") if getattr(node, name))
        case ast.comprehension(ifs=[_, *_]):
            yield ast.comprehension(node.target, node.iter, [], node.is_async)  # type: ignore[misc]
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.If():
            yield ast.If(ast.Constant(value=False), node.body, node.orelse)
        case ast.Continue():
            yield ast.Break()
        case ast.Break():
            yield ast.Continue()


def _without(node: ast.Slice, name: str) -> ast.Slice:
    """Return a slice without one of its bounds."""
    bounds = {field: None if field == name else getattr(node, field) for field in ("lower", "upper", "step")}
    return ast.Slice(bounds["lower"], bounds["upper"], bounds["step"])


_SKIPPED = {"annotation", "returns", "decorator_list", "type_ignores", "names"}


def places(tree: ast.Module) -> list[Place]:
    """Return all places of a module that a mutant may change, in their order."""
    return list(_places(tree, ""))


def _places(parent: ast.AST, function: str) -> Iterator[Place]:
    if isinstance(parent, ast.FunctionDef | ast.ClassDef):
        function = f"{function}.{parent.name}".removeprefix(".")
    for field, value in ast.iter_fields(parent):
        if field in _SKIPPED or _is_idle(parent):
            continue
        children = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        for position, child in children:
            if isinstance(child, ast.AST):
                yield from ((parent, field, position, other, function) for other in _changed(child))
                yield from _places(child, function)


def _is_idle(node: ast.AST) -> bool:
    """Return whether a node does nothing that a test could see: docstrings, imports for types."""
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    typing = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return docstring or typing


def mutated(tree: ast.Module, place: Place, name: str) -> CodeType:
    """Compile a module with one place changed; the tree is as before afterwards."""
    parent, field, position, other, _ = place
    before = getattr(parent, field) if position is None else getattr(parent, field)[position]
    _put(parent, field, position, other)
    try:
        return compile(ast.fix_missing_locations(tree), name, "exec")
    finally:
        _put(parent, field, position, before)


def _put(parent: ast.AST, field: str, position: int | None, node: ast.AST) -> None:
    if position is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[position] = node


def mutants(path: Path) -> list[Mutant]:
    """Return all mutants of a module."""
    found = []
    for number, (parent, field, position, other, function) in enumerate(places(ast.parse(path.read_text("utf-8")))):
        node = getattr(parent, field) if position is None else getattr(parent, field)[position]
        change = f"{_shown(node)} -> {_shown(other)}"
        line = getattr(node, "lineno", getattr(parent, "lineno", 0))
        found.append(Mutant(module=_name(path), function=function, line=line, change=change, number=number))
    return found


def _shown(node: ast.AST) -> str:
    if isinstance(node, ast.If):
        return f"if {ast.unparse(node.test)}"
    if isinstance(node, ast.comprehension):
        return ast.unparse(node).strip()
    return ast.unparse(ast.fix_missing_locations(node))


def _name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


class _Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from other code than its file's."""

    def __init__(self, name: str, code: CodeType) -> None:
        self.name, self.code = name, code

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        found = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        return importlib.util.spec_from_file_location(fullname, found.origin, loader=self) if found else None

    def exec_module(self, module: ModuleType) -> None:
        exec(self.code, vars(module))  # noqa: S102 -- that is what it is for


def own_tests(path: Path, *, alone: bool = False) -> list[Path]:
    """Return the test modules of a module; `alone`, without those of its package that are named after something else."""
    package = _UNIT / path.relative_to(SOURCE).parent
    names = [f"test_{path.stem}.py", *_MORE.get(path.stem, ()), _RECORDS]
    if package.name in _BY_BEHAVIOUR:
        covering = _COVERED.get(_name(path), "").removeprefix(f"{package.name}/")
        others = sorted(test.name for test in package.glob("test_*.py"))
        names = [f"test_{path.stem}.py", covering or names[0]]
        names += [] if alone else [*others, *_BY_BEHAVIOUR[package.name]]
    return [(package / name).resolve() for name in dict.fromkeys(names) if (package / name).exists()]


_COVERED: dict[str, str] = tomllib.loads((_UNIT / "covered.toml").read_text("utf-8"))
"""By module: the unit test that covers it instead of one of its own."""


def outermost(mutant: Mutant, tree: ast.Module) -> str:
    """Return the function whose code holds the changed place; empty where no function does."""
    names = mutant.function.split(".")
    body: Any = tree
    for depth, name in enumerate(names, 1):
        body = next((node for node in body.body if getattr(node, "name", None) == name), None)
        if isinstance(body, ast.FunctionDef):
            return ".".join(names[:depth])
        if body is None:
            break
    return ""


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def changed_in_place(module: ModuleType, function: str, code: CodeType) -> bool:
    """Give a live function its new code; False where that is not possible, or changes nothing."""
    found: Any = module
    for name in function.split("."):
        found = vars(found).get(name) if found is not None and hasattr(found, "__dict__") else None
    found = getattr(found, "fget", None) or getattr(found, "__wrapped__", found)
    new = next((item for item in _codes(code) if item.co_qualname == function), None)
    if not isinstance(found, FunctionType) or new is None or new == found.__code__:
        return False
    found.__code__ = new
    return True


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
    sys.meta_path.insert(0, _Mutated(f"unrender.{mutant.module}", code))
    tests = [*map(str, own), *([f"{_UNIT}/analysis/test_analyze.py::{_GOLDEN}"] if golden else [])]
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
    chosen = [path for path in TARGETS if _name(path) in options.only] if options.only else PACKAGES[options.package]
    everything = [(path, mutant) for path in chosen for mutant in mutants(path)]
    count = min(options.count, len(everything))
    sample = random.Random(options.seed).sample(everything, count)  # noqa: S311 -- which mutants is not a secret
    sample.sort(key=lambda item: (item[0].stem in _LAST, item[1].module, item[1].number))
    begun = time.monotonic()
    trials = Trials(sample, check=not options.trust, golden=not options.own)
    tests = [str(test) for path in chosen for test in own_tests(path, alone=options.own)]
    golden = f"{_UNIT}/analysis/test_analyze.py::{_GOLDEN}"
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
