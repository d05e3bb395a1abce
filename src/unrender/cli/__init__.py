"""The command line, `unrender`.

`commands` groups all commands, which are defined in `templates`, `format`, `answers` and `serving`. `inputs` loads files and
options, and writes files. `examining` checks many templates in parallel, and `terminal` prints.

Rules: results are written to standard output, and remarks to standard error. The exit code is 0 for success, 1 if a check failed or the
output is malformed, 2 for an invalid command or input, and 3 for an internal error. Only `unrender.cli.terminal` prints.
"""

from __future__ import annotations

import argparse

from unrender.version import __version__, install_command

__all__ = ["main"]


def main() -> None:
    """Run the command line. Without the extra `cli`, only --version works, and everything else exits with a message about the extra."""
    try:
        import rich  # noqa: F401, PLC0415 - check for the extra

        from unrender.cli.commands import app  # noqa: PLC0415 - click is an extra
    except ModuleNotFoundError as error:
        if error.name not in {"click", "rich"}:
            raise
        parser = argparse.ArgumentParser("unrender", add_help=False)
        parser.add_argument("--version", action="version", version=f"unrender, version {__version__}")
        parser.parse_known_args()
        parser.error(f"the command line needs the extra 'cli': {install_command('cli')}")
    app(prog_name="unrender")
