"""The group of all commands, and the one place where callers' mistakes become exit code 2."""

from __future__ import annotations

from typing import Any

import click

from unrender.cli.diff import diff_
from unrender.cli.explain import explain_
from unrender.cli.export import export
from unrender.cli.formats import format_
from unrender.cli.grammar import grammar
from unrender.cli.inputs import BadInput
from unrender.cli.inspect import inspect
from unrender.cli.lint import lint_
from unrender.cli.parse import parse
from unrender.cli.replay import replay_
from unrender.cli.verify import verify_
from unrender.errors import UnrenderError


class Commands(click.Group):
    """Commands whose `UnrenderError`s end in a sentence and exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except UnrenderError as error:
            raise BadInput(str(error)) from error


@click.group(cls=Commands, context_settings={"max_content_width": 80})
@click.version_option(package_name="unrender")
def app() -> None:
    """Derive from a chat template how a model writes its answers, and use that.

    TEMPLATE is a Jinja file, a model's directory, a GGUF file, or an id on the hub.

    Exit codes: 0 all is well, 1 something was refuted or malformed, 2 the command or its input cannot be used.
    """


for command in (inspect, parse, explain_, replay_, verify_, lint_, grammar, export, format_, diff_):
    app.add_command(command)
