"""Groups all commands, and converts every error into one line and an exit code."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Never

import click

from unrender import __version__
from unrender.cli.terminal import escape_unencodable, exit_of, logged, print_document, remark, remark_warning
from unrender.errors import SchemaWarning
from unrender.signatures import did_you_mean


class CommandGroup(click.Group):
    """A group that lists its commands under headings.

    A command's module is imported on use, because each command needs different parts of the library. `sections` maps each heading to its
    commands and their modules.
    """

    def __init__(self, *args: Any, sections: Mapping[str, Mapping[str, str]], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._sections = sections
        self._modules = {name: module for section in sections.values() for name, module in section.items()}

    def list_commands(self, _context: click.Context) -> list[str]:
        """Return the names of the commands in the order in which the help text lists them."""
        return [*self._modules]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with this name, or None if there is no such command."""
        if cmd_name in self._modules and cmd_name not in self.commands:
            module = importlib.import_module(f"unrender.cli.{self._modules[cmd_name]}")
            self.add_command(with_verbose(getattr(module, f"{cmd_name.replace('-', '_')}_command")))
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that `args` start with. The error for an unknown command suggests a similar one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            meant = did_you_mean(args[0], self._modules)
            raise click.UsageError(error.message.rstrip(".") + meant if meant else error.message, ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings."""
        widest = max(map(len, self._modules))
        for title, names in self._sections.items():
            with formatter.section(title):
                found = {name: self.get_command(ctx, name) for name in names}
                helps = [(name.ljust(widest), it.get_short_help_str()) for name, it in found.items() if it]
                formatter.write_dl(helps)


class Commands(CommandGroup):
    """The main group. Every error is printed on one line, without a traceback, and sets the exit code."""

    def main(  # type: ignore[override]  # it never returns
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> Never:
        """Run the command line and exit, as `click.Group.main` does."""
        # Disable progress bars, since their text wouldn't be escaped.
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        escape_unencodable()
        with logged(logging.WARNING), warnings.catch_warnings(action="always", category=SchemaWarning):
            warnings.showwarning = remark_warning
            sys.exit(self._code(args, prog_name, extra))

    def _code(self, args: Sequence[str] | None, prog_name: str | None, extra: dict[str, Any]) -> int:
        words = list(sys.argv[1:] if args is None else args) or ["--help"]
        # In standalone mode, click would exit with its own messages and codes.
        try:
            code = super().main(words, prog_name, **extra | {"standalone_mode": False})
        except click.exceptions.NoArgsIsHelpError as error:
            print_document(error.format_message())
            return 0
        except Exception as error:  # noqa: BLE001 - top-level handler
            return _code_of(error)
        return code if isinstance(code, int) else 0


def _code_of(error: Exception) -> int:
    """Print the error in one line, and return the exit code."""
    code, text = exit_of(error)
    with suppress(OSError):  # Ignore errors here, because standard error may be closed.
        if isinstance(error, click.UsageError) and error.ctx:
            for line in (*error.ctx.get_usage().splitlines(), f"Try '{error.ctx.command_path} --help' for help.", ""):
                remark(line)
        remark(f"Error: {text}")
    return code


def _verbose(context: click.Context, _option: click.Parameter, verbose: bool) -> None:
    if verbose:
        context.with_resource(logged(logging.DEBUG, "unrender"))


_VERBOSE = click.Option(
    ["-v", "--verbose"],
    is_flag=True,
    expose_value=False,
    callback=_verbose,
    help="Print each decision of the analysis on standard error.",
)
"""Option that every command accepts, and that may also precede the command's name."""


def with_verbose(command: click.Command) -> click.Command:
    """Return the command with the option --verbose."""
    command.params.append(_VERBOSE)
    return command


format_command = CommandGroup(
    "format",
    short_help="Show, compare, list or export formats.",
    help="Show, compare, list or export formats: how a model writes its answers, as data.",
    sections={"Commands": dict.fromkeys(("show", "diff", "list", "export"), "format")},
)
batch_command = CommandGroup(
    "batch",
    short_help="Replay a recorded stream, or rescue calls.",
    help="Replay a recorded stream, or rescue calls from a recorded message.",
    sections={"Commands": dict.fromkeys(("replay", "rescue"), "answers")},
)


@click.group(
    "unrender",
    cls=Commands,
    sections={
        "Templates": {
            "example": "format",
            **dict.fromkeys(("inspect", "verify", "lint"), "templates"),
            "format": "commands",
            "grammar": "answers",
        },
        "Answers": {**dict.fromkeys(("preview", "parse", "explain"), "answers"), "batch": "commands"},
        "Serving": dict.fromkeys(("serve", "playground", "probe"), "serving"),
    },
    context_settings={"max_content_width": 80, "help_option_names": ["-h", "--help"]},
)
@click.version_option(version=__version__)
def app() -> None:
    """Derive a model's output format from its chat template; parse, check and serve with it.

    TEMPLATE is a Jinja file, a model's directory, a GGUF file, or an id on the hub.

    Exit codes: 0 success, 1 a check failed or the output is malformed, 2 invalid command or input, 3 internal error.
    """


with_verbose(app)
