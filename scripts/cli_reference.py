"""The command line into its reference page: the help of every command, as a terminal of 80 columns shows it."""

from __future__ import annotations

from collections.abc import Iterator

import click
import environment

from unrender.cli.commands import app

PAGE = environment.ROOT / "docs" / "reference" / "cli.md"

OPENING = """# Command line

Written by `scripts/cli_reference.py`; do not edit.

Results go to standard output, remarks and progress to standard error.
The exit code is 0 when all is well, 1 when something was refuted or malformed, 2 when the command or its input cannot
be used, and 3 when unrender itself has a defect.

Text from outside (names, ids, markers, paths, a template's errors) is never obeyed by a terminal: control and format
characters are shown as their numbers.
Colours and progress are for terminals; `--plain`, before or after the command, does without, as `NO_COLOR` does without colours.
"""


def main() -> None:
    """Write the page to where it is published."""
    PAGE.write_text(text(), encoding="utf-8")


def text() -> str:
    """Return the page as it is published."""
    return "\n".join([OPENING, *_helps(app, "unrender")])


def _helps(command: click.Command, path: str) -> Iterator[str]:
    settings = {**app.context_settings, "terminal_width": 80, "color": False}
    context = click.Context(command, info_name=path, **settings)
    yield f"## {path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from _helps(command.commands[name], f"{path} {name}")


if __name__ == "__main__":
    main()
