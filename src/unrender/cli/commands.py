"""Groups all commands, and converts every error into one line and an exit code."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Never

import click

from unrender import __version__
from unrender.cli.terminal import UNUSABLE, ReaderGone, ending, let_go, logged, plainly, remark, remark_warning, streams
from unrender.errors import SchemaWarning


class CommandGroup(click.Group):
    """A group that lists its commands under headings.

    Commands are imported on use, because each needs different parts of the library. `sections` maps the names of commands to modules.
    """

    def __init__(self, *args: Any, sections: Mapping[str, Mapping[str, str]], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._sections = sections
        self._modules = {name: module for section in sections.values() for name, module in section.items()}

    def list_commands(self, _context: click.Context) -> list[str]:
        """Return the names of the commands in the order in which the help text lists them."""
        return [*self._modules]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with this name, or None."""
        if cmd_name in self._modules and cmd_name not in self.commands:
            module = importlib.import_module(f"unrender.cli.{self._modules[cmd_name]}")
            self.add_command(with_common(getattr(module, f"{cmd_name.replace('-', '_')}_command")))
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings."""
        widest = max(map(len, self._modules))
        for title, names in self._sections.items():
            with formatter.section(title):
                found = {name: self.get_command(ctx, name) for name in names}
                helps = [(name.ljust(widest), it.get_short_help_str()) for name, it in found.items() if it]
                formatter.write_dl(helps)


class Commands(CommandGroup):
    """The main group. Every error ends in one line and an exit code, without a traceback."""

    def main(  # type: ignore[override]  # it never returns
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> Never:
        """Run the command line and exit, as `click.Group.main` does."""
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # Progress bars wouldn't be escaped.
        with streams(), logged(logging.WARNING), warnings.catch_warnings(action="always", category=SchemaWarning):
            warnings.showwarning = remark_warning
            sys.exit(self._code(args, prog_name, extra))

    def _code(self, args: Sequence[str] | None, prog_name: str | None, extra: dict[str, Any]) -> int:
        words = list(sys.argv[1:] if args is None else args) or ["--help"]
        # In standalone mode, click would exit with its own messages and codes.
        try:
            code = super().main(words, prog_name, **extra | {"standalone_mode": False})
        except Exception as error:  # noqa: BLE001 - top-level handler
            return _code_of(error)
        return code if isinstance(code, int) else 0

    def make_context(self, *given: Any, **named: Any) -> click.Context:
        """Create the context as click does. A broken pipe while the help is printed raises `ReaderGone`."""
        with _print_alone():
            return super().make_context(*given, **named)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. A broken pipe raises `ReaderGone`."""
        with _print_alone():
            return super().invoke(ctx)


@contextmanager
def _print_alone() -> Iterator[None]:
    """Replace `BrokenPipeError` with `ReaderGone`. Otherwise click would exit with code 1, e.g. if the output is piped to `head`."""
    try:
        yield
    except BrokenPipeError as error:  # Broken pipes to subprocesses are handled elsewhere.
        raise ReaderGone from error


def _code_of(error: Exception) -> int:
    """Print the error in one line, and return the exit code."""
    try:
        if isinstance(error, ReaderGone):
            return 0  # This isn't an error. The reader, e.g. `head`, needs no more output.
        if isinstance(error, click.UsageError) and error.ctx:
            for line in (*error.ctx.get_usage().splitlines(), f"Try '{error.ctx.command_path} --help' for help.", ""):
                remark(line)
        code, text = ending(error)
        remark(f"Error: {text}")
        return code
    except (ReaderGone, OSError) as gone:  # Standard error isn't writable.
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
"""Options of every command, which are also accepted before the command's name."""


def with_common(command: click.Command) -> click.Command:
    """Return the command with the common options."""
    command.params += _COMMON
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
    sections={"Commands": {"replay": "batch", "rescue": "answers"}},
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
        "Serving": dict.fromkeys(("serve", "playground"), "serving"),
    },
    context_settings={"max_content_width": 80, "help_option_names": ["-h", "--help"]},
)
@click.version_option(version=__version__)
def app() -> None:
    """Derive a model's output format from its chat template; parse, check and serve with it.

    TEMPLATE is a Jinja file, a model's directory, a GGUF file, or an id on the hub.

    Exit codes: 0 success, 1 a check failed or the output is malformed, 2 invalid command or input, 3 internal error.
    """


with_common(app)
