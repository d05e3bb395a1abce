"""A checkout into a test run: sets up `.venv`, sees to the vendors' templates, and runs pytest.

python3 scripts/test.py                      the short run: unit tests but the slow ones, and other tests that you changed
python3 scripts/test.py --all                all tests, as CI runs them
python3 scripts/test.py --set-up             no tests: only the environment and what is fetched
python3 scripts/test.py [pytest's arguments] what you name
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import fetch
from environment import ROOT, Environment, variables

# Each process gets one stretch of the tests, so that what a module's tests share is made once; who is done takes of the others' rest.
_ALL = ("--numprocesses", "logical", "--dist", "worksteal", "--quiet")
_SHORT = (*_ALL, "-m", "not full and not slow", "tests/test_structure.py", "tests/unit")


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
    """Return what pytest is called with."""
    if not arguments:
        return [*_SHORT, *_beside_unit(changed_files(ROOT))]
    return [*_ALL, *arguments[1:]] if arguments[0] == "--all" else list(arguments)


def changed_files(root: Path) -> list[str]:
    """Return the files that differ from `main`, and those that git does not know; none where git cannot tell."""
    base = _git(root, "merge-base", "HEAD", "main") or ["HEAD"]
    changed = _git(root, "diff", "--name-only", "--diff-filter=d", base[0])
    return sorted({*changed, *_git(root, "ls-files", "--others", "--exclude-standard")})


def _beside_unit(files: Sequence[str]) -> list[str]:
    """Return the test modules among `files` that no other argument names."""
    named = [Path(file) for file in files if file.startswith("tests/") and not file.startswith("tests/unit/")]
    return [
        path.as_posix()
        for path in named
        if path.name.startswith("test_") and path.suffix == ".py" and path.name != "test_structure.py"
    ]


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
