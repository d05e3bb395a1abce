"""Groups all commands, and turns every failure into a line and an exit code in one place."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Never

import click

from unrender import SchemaWarning, __version__
from unrender.cli.answers import chat_command, explain_command, grammar_command, parse_command
from unrender.cli.batch import audit_command, read_command, replay_command
from unrender.cli.format import declared_command, diff_command, example_command, export_command, show_command
from unrender.cli.serving import engine_args_command, playground_command, serve_command
from unrender.cli.templates import inspect_command, lint_command, verify_command
from unrender.cli.terminal import UNUSABLE, ReaderGone, ending, let_go, logged, plainly, remark, remark_warning, streams

_MOVED = {
    "diff": "format",
    "declared": "format",
    "export": "format",
    "read": "batch",
    "audit": "batch",
    "replay": "batch",
}
"""Commands of earlier releases, and the groups that they are in now."""


class CommandGroup(click.Group):
    """A group that lists its commands under headings, and says where a command of an earlier release is now."""

    def __init__(self, *args: Any, sections: Mapping[str, Sequence[click.Command]], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._sections = {title: [command.name or "" for command in found] for title, found in sections.items()}
        for command in (command for found in sections.values() for command in found):
            self.add_command(command)

    def list_commands(self, _context: click.Context) -> list[str]:
        """Return the names of the commands in the order of the help."""
        return [name for names in self._sections.values() for name in names]

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, those of a section together."""
        widest = max(map(len, self.commands))
        for title, names in self._sections.items():
            with formatter.section(title):
                helps = [(name.ljust(widest), self.commands[name].get_short_help_str()) for name in names]
                formatter.write_dl(helps)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command, as click does. Fails with the new name where an earlier release had another."""
        if self.name == "unrender" and args[0] in _MOVED:
            ctx.fail(f"{args[0]!r} has become 'unrender {_MOVED[args[0]]} {args[0]}'")
        if self.name == "format" and args[0] not in self.commands and not args[0].startswith("-"):
            ctx.fail(f"no command {args[0]!r}; what printed a template's format is 'unrender format show' now")
        return super().resolve_command(ctx, args)


class Commands(CommandGroup):
    """Commands that always end in a line and an exit code; no exception and no traceback leaves them."""

    def main(  # type: ignore[override]  # it never returns, in whichever mode
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> Never:
        """Run the command line and exit, as `click.Group.main` does."""
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # They are printed by others, as they are.
        with streams(), logged(logging.WARNING), warnings.catch_warnings(action="always", category=SchemaWarning):
            warnings.showwarning = remark_warning
            sys.exit(self._code(args, prog_name, extra))

    def _code(self, args: Sequence[str] | None, prog_name: str | None, extra: dict[str, Any]) -> int:
        words = list(sys.argv[1:] if args is None else args) or ["--help"]
        # Not standalone: click would end the process itself, with texts and codes of its own.
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


def _code_of(error: Exception) -> int:
    """Say in a line what ended the command, and return the exit code."""
    try:
        if isinstance(error, ReaderGone):
            return 0  # As for other tools before `head`: it had enough, and nothing went wrong.
        if isinstance(error, click.UsageError) and error.ctx:
            for line in (*error.ctx.get_usage().splitlines(), f"Try '{error.ctx.command_path} --help' for help.", ""):
                remark(line)
        code, text = ending(error)
        remark(f"Error: {text}")
        return code
    except (ReaderGone, OSError) as gone:  # There is nobody to tell.
        return 0 if isinstance(gone, ReaderGone) else UNUSABLE
    finally:
        let_go()


def _verbose(context: click.Context, _option: click.Parameter, verbose: bool) -> None:
    if verbose:
        context.with_resource(logged(logging.DEBUG, "unrender"))


def _plain(context: click.Context, _option: click.Parameter, plain: bool) -> None:
    if plain:
        context.with_resource(plainly())


_COMMON = (
    click.Option(
        ["--plain"], is_flag=True, expose_value=False, callback=_plain, help="Print without colours and progress."
    ),
    click.Option(
        ["-v", "--verbose"],
        is_flag=True,
        expose_value=False,
        callback=_verbose,
        help="Print each decision of the analysis on standard error.",
    ),
)
"""Options of every command, which may also stand before it."""

format_group: CommandGroup = CommandGroup(
    "format",
    short_help="Show, compare, declare or export a format.",
    help="Show, compare, declare or export a format: how a model writes its answers, as data.",
    sections={"Commands": (show_command, diff_command, declared_command, export_command, example_command)},
)
batch_group: CommandGroup = CommandGroup(
    "batch",
    short_help="Read recorded answers, and find what was lost.",
    help="Read recorded answers: many of them from files, or one as its chunks came.",
    sections={"Commands": (read_command, audit_command, replay_command)},
)


@click.group(
    "unrender",
    cls=Commands,
    sections={
        "Templates": (inspect_command, verify_command, lint_command, format_group, grammar_command),
        "Answers": (chat_command, parse_command, explain_command, batch_group),
        "Serving": (serve_command, engine_args_command, playground_command),
    },
    context_settings={"max_content_width": 80, "help_option_names": ["-h", "--help"]},
)
@click.version_option(version=__version__)
def app() -> None:
    """Derive from a chat template how a model writes its answers, and use that.

    TEMPLATE is a Jinja file, a model's directory, a GGUF file, or an id on the hub.

    Exit codes: 0 all is well, 1 something failed or is malformed, 2 the command or its input cannot be used, 3 unrender
    itself has a defect.
    """


def _with_common(command: click.Command) -> None:
    command.params += _COMMON
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        _with_common(inner)


_with_common(app)
