"""Groups all commands, and turns every failure into a line and an exit code in one place."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Never

import click

from unrender import __version__
from unrender.cli.audit import audit_command
from unrender.cli.chat import chat_command
from unrender.cli.declared import declared_command
from unrender.cli.diff import diff_command
from unrender.cli.endings import UNUSABLE, ending
from unrender.cli.engine_args import engine_args_command
from unrender.cli.explain import explain_command
from unrender.cli.export import export_command
from unrender.cli.formats import format_command
from unrender.cli.grammar import grammar_command
from unrender.cli.inspect import inspect_command
from unrender.cli.lint import lint_command
from unrender.cli.parse import parse_command
from unrender.cli.playground import playground_command
from unrender.cli.read import read_command
from unrender.cli.replay import replay_command
from unrender.cli.serve import serve_command
from unrender.cli.terminal import (
    ReaderGone,
    let_go,
    logged,
    plainly,
    remark,
    remark_warning,
    streams,
    verbosely,
)
from unrender.cli.verify import verify_command
from unrender.errors import SchemaWarning


class Commands(click.Group):
    """Commands that always end in a line and an exit code; no exception and no traceback leaves them."""

    def main(  # type: ignore[override]  # it never returns, in whichever mode
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> Never:
        """Run the command line and exit, as `click.Group.main` does."""
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # They are printed by others, as they are.
        with streams(), logged(), warnings.catch_warnings(action="always", category=SchemaWarning):
            warnings.showwarning = remark_warning
            sys.exit(self._code(args, prog_name, extra))

    def _code(self, args: Sequence[str] | None, prog_name: str | None, extra: dict[str, Any]) -> int:
        words = list(sys.argv[1:] if args is None else args) or ["--help"]
        try:
            code = super().main(words, prog_name, **extra | {"standalone_mode": False})
        except Exception as error:  # noqa: BLE001 - the last to know; every kind has its line
            return _code_of(error)
        return code if isinstance(code, int) else 0

    def make_context(self, *given: Any, **named: Any) -> click.Context:
        """Make the context, as click does; what it prints, such as the help, is ours to end."""
        with _print_alone():
            return super().make_context(*given, **named)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what is printed for it is ours to end."""
        with _print_alone():
            return super().invoke(ctx)


@contextmanager
def _print_alone() -> Iterator[None]:
    """Keep a broken pipe from click, which ends the process with 1 for it: a reader may go when it has enough."""
    try:
        yield
    except BrokenPipeError as error:  # Pipes to processes of ours are looked after where they are used.
        raise ReaderGone from error


def _usage(context: click.Context | None) -> Iterator[str]:
    if context:
        yield from context.get_usage().splitlines()
        yield from (f"Try '{context.command_path} --help' for help.", "")


def _code_of(error: Exception) -> int:
    """Say in a line what ended the command, and return the exit code."""
    try:
        return _ended(error)
    except (ReaderGone, OSError) as gone:  # There is nobody to tell.
        return 0 if isinstance(gone, ReaderGone) else UNUSABLE
    finally:
        let_go()


def _ended(error: Exception) -> int:
    if isinstance(error, ReaderGone):
        return 0  # As for other tools before `head`: it had enough, and nothing went wrong.
    if isinstance(error, click.UsageError):
        for line in _usage(error.ctx):
            remark(line)
    ended = ending(error)
    remark(f"Error: {ended.text}")
    return ended.code


@click.group(
    "unrender", cls=Commands, context_settings={"max_content_width": 80, "help_option_names": ["-h", "--help"]}
)
@click.version_option(version=__version__)
def app() -> None:
    """Derive from a chat template how a model writes its answers, and use that.

    TEMPLATE is a Jinja file, a model's directory, a GGUF file, or an id on the hub.

    Exit codes: 0 all is well, 1 something was refuted or malformed, 2 the command or its input cannot be used, 3 unrender
    itself has a defect.
    """


def _verbose(context: click.Context, _option: click.Parameter, verbose: bool) -> None:
    if verbose:
        context.with_resource(verbosely())


def _plain(context: click.Context, _option: click.Parameter, plain: bool) -> None:
    if plain:
        context.with_resource(plainly())


plain_option: click.Option = click.Option(
    ["--plain"], is_flag=True, expose_value=False, callback=_plain, help="Print without colours and progress."
)
verbose_option: click.Option = click.Option(
    ["-v", "--verbose"],
    is_flag=True,
    expose_value=False,
    callback=_verbose,
    help="Print each decision of the analysis on standard error.",
)
app.params += [plain_option, verbose_option]
for command in (
    inspect_command,
    chat_command,
    parse_command,
    explain_command,
    replay_command,
    verify_command,
    lint_command,
    grammar_command,
    export_command,
    format_command,
    diff_command,
    declared_command,
    read_command,
    audit_command,
    serve_command,
    engine_args_command,
    playground_command,
):
    command.params += [plain_option, verbose_option]
    app.add_command(command)
