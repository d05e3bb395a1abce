"""The command line, `unrender`: the library's instruments for people and scripts.

Rules: results go to standard output and remarks to standard error; the exit code is 0 when all is well, 1 when something
was refuted or malformed, 2 when the command or its input cannot be used.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; exits with a sentence when the extra `cli` is not installed."""
    try:
        from unrender.cli.app import app  # noqa: PLC0415 - click and rich are an extra
    except ModuleNotFoundError as error:
        if error.name not in ("click", "rich"):
            raise
        print("unrender's command line needs the extra 'cli': pip install 'unrender[cli]'", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    app()
