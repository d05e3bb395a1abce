"""Set up `.venv`, download the vendors' templates, and run pytest.

python3 scripts/test.py                      the short run: fast unit tests, and other tests that you changed
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
from environment import ROOT, Environment, variables

# Each process gets a contiguous part of the tests, so that a module's fixtures are created once. An idle process takes
# tests from others.
_ALL = ("--numprocesses", "logical", "--dist", "worksteal", "--quiet")
_NIGHTLY = (*_ALL, "-m", "", "--hypothesis-profile", "nightly")
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
    """Return pytest's arguments."""
    if not arguments:
        return [*_SHORT, *_beside_unit(changed_files(ROOT))]
    modes = {"--all": _ALL, "--nightly": _NIGHTLY}
    return [*modes[arguments[0]], *arguments[1:]] if arguments[0] in modes else list(arguments)


def changed_files(root: Path) -> list[str]:
    """Return changed files compared with `main`, and untracked files. Return nothing if git isn't available."""
    base = _git(root, "merge-base", "HEAD", "main") or ["HEAD"]
    changed = _git(root, "diff", "--name-only", "--diff-filter=d", base[0])
    return sorted({*changed, *_git(root, "ls-files", "--others", "--exclude-standard")})


def _beside_unit(files: Sequence[str]) -> list[str]:
    """Return the test modules in `files` that aren't unit tests."""
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
