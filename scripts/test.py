"""A checkout into a test run: sets up `.venv`, sees to the vendors' templates, and runs pytest with what it is given.

python3 scripts/test.py [pytest's arguments]
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import environment
import fetch_schema_suite
import fetch_templates


def main() -> None:
    """Run the tests and exit as pytest does."""
    python = environment.ready("tests-and-engines")
    if not (os.environ.get("UNRENDER_TEMPLATES") or (environment.ROOT.parent / "shared" / "templates").is_dir()):
        _fetch_if_possible(fetch_templates.fetch, python, "the vendors' templates")
    _fetch_if_possible(fetch_schema_suite.fetch, python, "the JSON Schema Test Suite")
    command = [str(python), "-m", "pytest", *(sys.argv[1:] or ["--numprocesses", "auto", "--quiet"])]
    sys.exit(subprocess.run(command, cwd=environment.ROOT, check=False).returncode)


def _fetch_if_possible(fetch: Callable[[Path], Path], python: Path, what: str) -> None:
    try:
        fetch(python)
    except fetch_templates.FetchError as error:
        print(f"warning: {error}\nThe tests run without {what}.", file=sys.stderr)


if __name__ == "__main__":
    main()
