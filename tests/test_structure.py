"""The house rules that no linter knows: sizes, names, docstrings, and blindness to models' names."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import public_api
import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "unrender"
MODULES = sorted(SOURCE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))

LONGEST_FILE = 400
LONGEST_FUNCTION = 40
"""Lines from the first statement after the docstring to the last."""
NAMES_THAT_SAY_NOTHING = {"utils", "util", "helpers", "helper", "common", "base", "manager", "misc", "core"}
MODEL_NAME = re.compile(
    r"\b(qwen|deepseek|llama[-_ ]?[0-9]|mistral|kimi|gemma|granite|cohere|command[-_ ]?r|minimax|nemotron|hermes"
    r"|gpt[-_ ]?oss|functionary|apriel|glm|smollm|phi[-_ ]?[0-9]|seed[-_ ]?oss)\b",
    re.IGNORECASE,
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, Function):
            yield node


def lines_of(function: Function) -> int:
    """Return how many lines a function's statements take, without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def strings_that_count(path: Path) -> Iterator[ast.Constant]:
    """Yield the string constants that are not docstrings (an expression of its own does nothing)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    idle = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in idle:
            yield node


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_module_says_what_it_is(path: Path) -> None:
    """Every module opens with a docstring."""
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_module_has_a_telling_name(path: Path) -> None:
    """No module is a drawer for odds and ends."""
    assert path.stem.strip("_") not in NAMES_THAT_SAY_NOTHING
    assert path.parent.name not in NAMES_THAT_SAY_NOTHING


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_module_is_short(path: Path) -> None:
    """A module fits into a reader's head."""
    lines = path.read_text(encoding="utf-8").count("\n")

    assert lines <= LONGEST_FILE


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_functions_are_short(path: Path) -> None:
    """No function goes on for pages."""
    sizes = {function.name: lines_of(function) for function in functions(path)}

    assert {name: lines for name, lines in sizes.items() if lines > LONGEST_FUNCTION} == {}


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_no_code_knows_a_model(path: Path) -> None:
    """No string that code could compare with names a model or a vendor."""
    named = [
        f"line {node.lineno}: {node.value!r:.60}"
        for node in strings_that_count(path)
        if MODEL_NAME.search(str(node.value))
    ]

    assert named == []


@pytest.mark.parametrize("path", TESTS, ids=relative)
def test_tests_state_a_behaviour(path: Path) -> None:
    """Every test says in a sentence what it holds true."""
    silent = [f.name for f in functions(path) if f.name.startswith("test_") and not ast.get_docstring(f)]

    assert silent == []


@pytest.mark.parametrize("path", [test for test in TESTS if "unit" in test.parts], ids=relative)
def test_unit_tests_mirror_the_source(path: Path) -> None:
    """Unit tests lie where the package they test lies."""
    package = SOURCE / path.parent.relative_to(ROOT / "tests" / "unit")

    assert package.is_dir()


SAME_IN_SEVERAL = {
    "install": "puts unrender into a library. Each integration has its own, and is called by its module: `trl.install(…)`",
}
"""Public names that several modules define, and why the meaning is one: no other may join them without a reason."""


def test_a_public_name_has_one_meaning() -> None:
    """The modules that users import give one name to one thing."""
    found: dict[str, set[object]] = {}
    for module in map(importlib.import_module, public_api.MODULES):
        for name in public_api.names(module):
            value = getattr(module, name)
            found.setdefault(name, set()).add(getattr(value, "__module__", None) or id(value))

    assert {name for name, meanings in found.items() if len(meanings) > 1} == set(SAME_IN_SEVERAL)


COVERED = tomllib.loads((ROOT / "tests" / "unit" / "covered.toml").read_text(encoding="utf-8"))
"""By module: the unit test that covers it instead of one of its own."""


def name_of(path: Path) -> str:
    """Return a module's name below `unrender`."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


@cache
def imported_by(path: Path) -> frozenset[str]:
    """Return the modules of the package that a file imports, and names that may be such modules."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("unrender"):
            module = (node.module or "").removeprefix("unrender").strip(".") or "__init__"
            found |= {module, *(f"{module}.{alias.name}".strip(".") for alias in node.names)}
    return frozenset(found)


def read_with(test: Path) -> list[Path]:
    """Return a test module, its folder's `conftest.py`, and the modules beside the tests and scripts that it imports."""
    nodes = ast.walk(ast.parse(test.read_text(encoding="utf-8")))
    names = [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
    beside = [ROOT / folder / f"{name}.py" for name in names for folder in ("tests", "scripts")]
    return [path for path in (test, test.with_name("conftest.py"), *beside) if path.exists()]


@cache
def reached_from(test: Path) -> frozenset[str]:
    """Return the modules that a test imports, and those that these import in turn."""
    known = {name_of(path): path for path in MODULES}
    reached: set[str] = set()
    waiting = {name for path in read_with(test) for name in imported_by(path)}
    while waiting:
        name = waiting.pop()
        if name in known and name not in reached:
            reached.add(name)
            waiting |= imported_by(known[name])
    return frozenset(reached)


@pytest.mark.parametrize("path", [path for path in MODULES if path.stem not in ("__init__", "__main__")], ids=relative)
def test_every_module_has_unit_tests(path: Path) -> None:
    """A module has a test module of its own, or `covered.toml` names one that reaches it."""
    own = ROOT / "tests" / "unit" / path.relative_to(SOURCE).parent / f"test_{path.stem}.py"
    if own.exists():
        assert name_of(path) not in COVERED
    else:
        assert name_of(path) in reached_from(ROOT / "tests" / "unit" / COVERED[name_of(path)])


def test_covered_modules_are_there() -> None:
    """No entry outlives its module."""
    assert set(COVERED) <= {name_of(path) for path in MODULES}


WRITERS = {"print", "echo", "secho", "Console", "stdout", "stderr", "__stdout__", "__stderr__"}


@pytest.mark.parametrize("path", sorted((SOURCE / "cli").glob("*.py")), ids=relative)
def test_one_module_prints(path: Path) -> None:
    """In the command line, only the module that escapes what it prints can reach a stream."""
    if path.name == "terminal.py":
        return
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    names = {getattr(node, "id", getattr(node, "attr", getattr(node, "name", ""))) for node in nodes}

    assert names & WRITERS == set()
