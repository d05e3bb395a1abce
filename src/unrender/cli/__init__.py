"""The command line, `unrender`: the library's instruments for people and scripts.

In: words, files, standard input. Out: text for people, JSON for programs, an exit code. Open `commands` first, which groups all
commands. They are in `templates`, `format`, `answers`, `batch` and `serving`. `inputs` takes
what a command line names, `examining` asks many templates, `description` puts a format in words, `output` lays out rows and tables
and says how a command ended, `terminal` prints.

Rules: results go to standard output and remarks to standard error; the exit code is 0 when all is well, 1 when something
failed or is malformed, 2 when the command or its input cannot be used, 3 when unrender itself has a defect. Only
`unrender.cli.terminal` prints.
"""

from __future__ import annotations

import sys

from unrender.cli.terminal import UNUSABLE, print_document, remark
from unrender.version import __version__

__all__ = ["main"]


def main() -> None:
    """Run the command line; without the extra `cli`, print the version, or exit with a sentence that names the extra."""
    try:
        import rich  # noqa: F401, PLC0415 - an extra, which is used where something is printed

        from unrender.cli.commands import app  # noqa: PLC0415 - click is an extra
    except ModuleNotFoundError as error:
        if error.name not in {"click", "rich"}:
            raise
        if sys.argv[1:] == ["--version"]:
            print_document(f"unrender, version {__version__}")
            return
        remark("unrender's command line needs the extra 'cli': pip install 'unrender[cli]'")
        sys.exit(UNUSABLE)
    app(prog_name="unrender")
