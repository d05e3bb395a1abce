"""House rules beyond the linters: sizes, names, docstrings, and no code for model names."""

from __future__ import annotations

import ast
import hashlib
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import reference

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "unrender"
MODULES = sorted(SOURCE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))

LONGEST_FILE = 600
"""Maximum lines of a module."""
LONGEST_FUNCTION = 40
"""Maximum lines of a function, from the first statement after the docstring to the last."""
NAMES_THAT_SAY_NOTHING = {"utils", "util", "helpers", "helper", "common", "base", "manager", "misc", "core"}
MODEL_NAME = re.compile(
    r"\b(qwen|deepseek|llama[-_ ]?[0-9]|mistral|kimi|gemma|granite|cohere|command[-_ ]?r|minimax|nemotron|hermes"
    r"|gpt[-_ ]?oss|functionary|apriel|glm|smollm|phi[-_ ]?[0-9]|seed[-_ ]?oss)\b",
    re.IGNORECASE,
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(code: str) -> ast.Module:
    return ast.parse(code)


def tree_of(path: Path) -> ast.Module:
    return parsed(path.read_text(encoding="utf-8"))


def functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, Function):
            yield node


def lines_of(function: Function) -> int:
    """Return the number of lines of a function's statements, without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def strings_that_count(path: Path) -> Iterator[ast.Constant]:
    """Yield the string constants that are not docstrings (a bare string expression has no effect)."""
    tree = tree_of(path)
    idle = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in idle:
            yield node


def test_modules_say_what_they_are() -> None:
    """Every module starts with a docstring."""
    assert [relative(path) for path in MODULES if not ast.get_docstring(tree_of(path))] == []


CLAUSE = re.compile(r"\W*(What|How|Where|Who|When|Whether)\b")


def remarks(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield docstrings, and the strings that follow assignments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def python_of(path: Path) -> Iterator[str]:
    """Yield the Python code in a file: the whole module, or the examples on a page."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield text
        return
    for block in re.findall(r"^```python[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if '"""' in block and ">>> " not in block:
            yield block


@pytest.mark.parametrize("folder", ["src", "tests", "scripts", "benchmarks", "fuzz", "docs"])
def test_docstrings_begin_with_a_noun_or_a_verb(folder: str) -> None:
    """No docstring starts with a question word. It starts with a noun for a thing, or with a verb for an action."""
    clauses = [
        f"{relative(path)}: {remark.value!r:.60}"
        for path in sorted((ROOT / folder).rglob("*.md" if folder == "docs" else "*.py"))
        for code in python_of(path)
        for remark in remarks(parsed(code))
        if CLAUSE.match(str(remark.value))
    ]

    assert clauses == []


def test_modules_have_telling_names() -> None:
    """No module has a catch-all name."""
    parts = {relative(path): {path.stem.strip("_"), path.parent.name} for path in MODULES}

    assert {
        path: names & NAMES_THAT_SAY_NOTHING for path, names in parts.items() if names & NAMES_THAT_SAY_NOTHING
    } == {}


def test_modules_are_short() -> None:
    """Modules are short enough to keep in mind."""
    lengths = {relative(path): path.read_text(encoding="utf-8").count("\n") for path in MODULES}

    assert {path: lines for path, lines in lengths.items() if lines > LONGEST_FILE} == {}


def test_functions_are_short() -> None:
    """Functions are short."""
    sizes = {
        f"{relative(path)}::{function.name}": lines_of(function) for path in MODULES for function in functions(path)
    }

    assert {name: lines for name, lines in sizes.items() if lines > LONGEST_FUNCTION} == {}


def test_no_code_knows_a_model() -> None:
    """No string in the code contains the name of a model or a vendor, so code can't depend on one."""
    named = [
        f"{relative(path)}:{node.lineno}: {node.value!r:.60}"
        for path in MODULES
        for node in strings_that_count(path)
        if MODEL_NAME.search(str(node.value))
    ]

    assert named == []


@pytest.mark.slow
def test_tests_state_a_behaviour() -> None:
    """Every test has a docstring that states the expected behaviour as a sentence."""
    silent = [
        f"{relative(path)}::{function.name}"
        for path in TESTS
        for function in functions(path)
        if function.name.startswith("test_") and not ast.get_docstring(function)
    ]

    assert silent == []


def test_unit_tests_mirror_the_source() -> None:
    """Unit tests are in the folder that mirrors the tested package."""
    unit = ROOT / "tests" / "unit"
    elsewhere = [
        path for path in TESTS if unit in path.parents and not (SOURCE / path.parent.relative_to(unit)).is_dir()
    ]

    assert elsewhere == []


CALL_FIELDS = re.compile(r"\b(call_start|call_end|section_start|name_prefix)\b")
KNOW_CALLS = ("answer", "format", "analysis", "proof")


def test_few_modules_know_the_fields_of_a_call_syntax() -> None:
    """Code that reads or writes answers walks their tree. The only exceptions are the nearest syntax and `salvage`."""
    knowing = {relative(path) for path in MODULES if CALL_FIELDS.search(path.read_text("utf-8"))}
    others = {path for path in knowing if Path(path).parts[2] not in KNOW_CALLS}

    assert others == {"src/unrender/explain/nearest.py", "src/unrender/conversation/salvage.py"}


EDGES = {"batch", "cli", "gateway", "integrations", "playground", "probe", "testing"}
"""Packages that nothing else imports, so their names may repeat the core's."""
CORE = [path for path in MODULES if path.relative_to(SOURCE).parts[0] not in EDGES]
MOST_MODULES = 15


def defined_in(path: Path) -> set[str]:
    """Return the public names that a module defines or assigns."""
    found = set()
    for node in tree_of(path).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
        found |= {node.name} if isinstance(node, Function | ast.ClassDef) else set()
    return {name for name in found if not name.startswith("_")} - {"P", "T"}


def test_a_name_of_the_core_has_one_home() -> None:
    """No two modules of the core define the same public name, or have the same name."""
    homes: dict[str, list[str]] = {}
    for path in CORE:
        for name in {*defined_in(path), *({f"{path.stem}.py"} - {"__init__.py"})}:
            homes.setdefault(name, []).append(relative(path))

    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_a_room_can_be_looked_over() -> None:
    """No folder has more modules than a reader can survey."""
    rooms = {relative(path.parent): len(list(path.parent.glob("*.py"))) - 1 for path in MODULES}

    assert {room: modules for room, modules in rooms.items() if modules > MOST_MODULES} == {}


SAME_IN_SEVERAL = {
    "install": "puts unrender into a library. Each integration has its own, and is called by its module: `trl.install(…)`"
}
"""Public names that several modules define with one meaning, and the reason. New ones need a reason, too."""


def test_a_public_name_has_one_meaning() -> None:
    """The modules that users import use each name for one thing only."""
    found: dict[str, set[object]] = {}
    for module in map(importlib.import_module, reference.PUBLIC):
        for name in reference.names(module):
            value = getattr(module, name)
            found.setdefault(name, set()).add(getattr(value, "__module__", None) or id(value))

    assert {name for name, meanings in found.items() if len(meanings) > 1} == set(SAME_IN_SEVERAL)


def name_of(path: Path) -> str:
    """Return a module's name below `unrender`."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def bound_by(module: Path) -> set[str]:
    """Return the names that a module binds by importing, defining, assigning, and exporting, lazily or not."""
    found: set[str] = set()
    scopes = [node for node in ast.walk(tree_of(module)) if isinstance(node, Function | ast.ClassDef)]
    inside = {id(node) for scope in scopes for node in ast.walk(scope) if node is not scope}
    for node in ast.walk(tree_of(module)):
        if id(node) in inside:
            continue
        if isinstance(node, Function | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found | set(getattr(importlib.import_module(f"unrender.{name_of(module)}".rstrip(".")), "__all__", ()))


def modules_beside(package: Path) -> set[str]:
    """Return the names of the modules and packages next to an `__init__.py`."""
    modules = {path.stem for path in package.parent.glob("*.py") if path != package}
    return modules | {path.parent.name for path in package.parent.glob("*/__init__.py")}


def test_no_name_is_that_of_a_module_beside_it() -> None:
    """A package's name is never also its submodule: importing the submodule would replace the name."""
    packages = [path for path in MODULES if path.name == "__init__.py"]
    shadowed = {relative(path): bound_by(path) & modules_beside(path) for path in packages}

    assert {path: names for path, names in shadowed.items() if names} == {}


def test_no_definition_has_its_modules_name() -> None:
    """No function or class has the name of its module."""
    alike = [
        relative(path)
        for path in MODULES
        for node in tree_of(path).body
        if isinstance(node, Function | ast.ClassDef) and node.name == path.stem
    ]

    assert alike == []


WRITERS = {"print", "echo", "secho", "Console", "stdout", "stderr", "__stdout__", "__stderr__"}


def test_one_module_prints() -> None:
    """In the command line, only the module that escapes its output can write to a stream."""
    others = [path for path in (SOURCE / "cli").rglob("*.py") if path.name != "terminal.py"]
    names = {relative(path): names_in(path) & WRITERS for path in others}

    assert {path: writers for path, writers in names.items() if writers} == {}


OWN_LIMITS = {
    "src/unrender/gateway/backends/connection.py",
    "src/unrender/gateway/config.py",
    "src/unrender/gateway/uploads.py",
    "src/unrender/schema/admission.py",
    "src/unrender/limits.py",
}
"""The table of limits, and modules with numbers for their own checks only."""
LIMIT_NAME = re.compile(r"_?(MAX|MOST|LARGEST|LONGEST|DEEPEST)(_[A-Z_]+)?")


def test_limits_are_in_one_table() -> None:
    """Every limit has its name, unit and reason in `unrender.limits`."""
    found = set()
    for path in MODULES:
        for node in tree_of(path).body:
            name = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else ""
            if LIMIT_NAME.fullmatch(name) and isinstance(node, ast.Assign) and is_number(node.value):
                found.add(relative(path))

    assert found - OWN_LIMITS == set()


def is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


OWN_CACHE = {"src/unrender/values/scanner.py"}
"""Modules with a function cache of their own; each gives its reason there."""


def test_a_process_has_one_cache() -> None:
    """Only `unrender.cache` caches values computed from arguments; `functools.cache` is for values made once."""
    found = set()
    for path in MODULES:
        for function in functions(path):
            names = {ast.unparse(item).partition("(")[0].rpartition(".")[2] for item in function.decorator_list}
            if "lru_cache" in names or ("cache" in names and function.args.args and path.stem != "buffer"):
                found.add(relative(path))

    assert found == OWN_CACHE


RELEASED = {
    "tests/unit/format/version_1.json": "09bbcd5da28a7e14c5274429211a3ae33b647d2687f808cca5d3d4855c322fa9",
}
"""Digests of files as a release wrote them. Users have such files, so a rename in the code mustn't change them."""


@pytest.mark.parametrize("file", RELEASED)
def test_what_a_release_has_saved_stays_as_it_was(file: str) -> None:
    """The file of saved formats is unchanged. Otherwise, a global rename would also rename words in old formats."""
    assert hashlib.sha256((ROOT / file).read_bytes().replace(b"\r\n", b"\n")).hexdigest() == RELEASED[file]


def names_in(path: Path) -> set[str]:
    nodes = ast.walk(tree_of(path))
    return {getattr(node, "id", getattr(node, "attr", getattr(node, "name", ""))) for node in nodes}
