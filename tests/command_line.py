"""The command line in this process, for tests."""

from __future__ import annotations

from collections.abc import Mapping

import click
from click.testing import CliRunner, Result

from unrender.cli.commands import app

COMMANDS: click.Group = app
"""All commands."""


def run(*arguments: str, text: str | bytes = "", env: Mapping[str, str] | None = None) -> Result:
    """Run a command with text on standard input and lines of 80 characters."""
    return CliRunner(env=env or {"COLUMNS": "80"}).invoke(app, arguments, input=text, prog_name="unrender")
