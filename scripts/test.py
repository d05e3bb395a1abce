"""A checkout into a test run: sets up `.venv`, sees to the vendors' templates, and runs pytest with what it is given.

python3 scripts/test.py [pytest's arguments]
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import environment
import fetch_templates


def main() -> None:
    """Run the tests and exit as pytest does."""
    python = environment.ready("tests-and-engines")
    if not (os.environ.get("UNRENDER_TEMPLATES") or (environment.ROOT.parent / "shared" / "templates").is_dir()):
        _fetch_if_possible(python)
    command = [str(python), "-m", "pytest", *(sys.argv[1:] or ["--numprocesses", "auto", "--quiet"])]
    sys.exit(subprocess.run(command, cwd=environment.ROOT, check=False).returncode)


def _fetch_if_possible(python: Path) -> None:
    try:
        fetch_templates.fetch(python)
    except fetch_templates.FetchError as error:
        print(f"warning: {error}\nThe tests run without the vendors' templates.", file=sys.stderr)


if __name__ == "__main__":
    main()
