"""Set up `.venv`, download the vendors' templates, and run pytest.

python3 scripts/test.py                      the short run: fast unit tests, and other tests that you changed. If you only changed
                                             packages above `ChatTemplate`, e.g. the gateway, their unit tests are enough
python3 scripts/test.py --all                all tests, as in CI: of tests with very many cases, only a few
python3 scripts/test.py --nightly            all tests with all cases
python3 scripts/test.py --set-up             only set up the environment and download files
python3 scripts/test.py [pytest arguments]   the given tests
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import fetch
from environment import ROOT, Environment, import_layers, variables

# Each process gets a contiguous part of the tests, so that a module's fixtures are created once. An idle process takes
# tests from others.
_ALL = ("--numprocesses", "logical", "--dist", "worksteal", "--quiet")
_NIGHTLY = (*_ALL, "-m", "", "--hypothesis-profile", "nightly")
_SHORT = (*_ALL, "-m", "not full and not slow", "tests/test_structure.py")
_CORE = "chat_template"
"""The highest layer that the packages around the library share."""


def main() -> None:
    """Run the tests and exit as pytest does."""
    python = Environment.named("tests").ready()
    _fetch_if_possible(fetch.available_templates, "the vendors' templates")
    _fetch_if_possible(fetch.schema_suite, "the JSON Schema Test Suite")
    if sys.argv[1:] == ["--set-up"]:
        return
    command = [str(python), "-m", "pytest", *pytest_arguments(sys.argv[1:])]
    sys.exit(subprocess.run(command, cwd=ROOT, env=variables(), check=False).returncode)


def pytest_arguments(arguments: Sequence[str]) -> list[str]:
    """Return pytest's arguments."""
    if not arguments:
        changed = changed_files(ROOT)
        return [*_SHORT, *_units(changed), *_beside_unit(changed)]
    modes = {"--all": _ALL, "--nightly": _NIGHTLY}
    return [*modes[arguments[0]], *arguments[1:]] if arguments[0] in modes else list(arguments)


def changed_files(root: Path) -> list[str]:
    """Return changed files compared with `main`, and untracked files. Return nothing if git isn't available."""
    base = _git(root, "merge-base", "HEAD", "main") or ["HEAD"]
    changed = _git(root, "diff", "--name-only", "--diff-filter=d", base[0])
    return sorted({*changed, *_git(root, "ls-files", "--others", "--exclude-standard")})


def _units(files: Sequence[str]) -> list[str]:
    """Return the unit tests for changed files: all, unless the change can only affect packages above `ChatTemplate`.

    By the import contract, a change of the gateway affects the gateway and the layers above it, such as the command line.
    """
    sources = {Path(file).parts[2].removesuffix(".py") for file in files if file.startswith("src/unrender/")}
    layers = import_layers()
    above = layers[: layers.index([_CORE])]
    helpers = any(file.startswith("tests/") and not Path(file).name.startswith("test_") for file in files)
    if helpers or not sources or not sources <= {name for layer in above for name in layer}:
        return ["tests/unit"]
    lowest = max(at for at, layer in enumerate(above) if sources & set(layer))
    affected = [name for at, layer in enumerate(above) for name in layer if at < lowest or name in sources]
    folders = [Path("tests", "unit", name) for name in affected]
    changed = [Path(file) for file in files if file.startswith("tests/unit/") and file.endswith(".py")]
    return [path.as_posix() for path in (*folders, *changed) if (ROOT / path).exists()]


def _beside_unit(files: Sequence[str]) -> list[str]:
    """Return the test modules in `files` that aren't unit tests."""
    named = [Path(file) for file in files if file.startswith("tests/") and not file.startswith("tests/unit/")]
    tests = [path for path in named if path.match("test_*.py") and path.name != "test_structure.py"]
    return [path.as_posix() for path in tests]


def _git(root: Path, *arguments: str) -> list[str]:
    try:
        found = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)  # noqa: S607
    except OSError:
        return []
    return found.stdout.split("\n")[:-1] if found.returncode == 0 else []


def _fetch_if_possible(fetched: Callable[[], Path], what: str) -> None:
    try:
        fetched()
    except fetch.FetchError as error:
        print(f"warning: {error}\nThe tests run without {what}.", file=sys.stderr)


if __name__ == "__main__":
    main()
