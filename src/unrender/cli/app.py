"""The group of all commands, and the one place where what goes wrong becomes a line and an exit code."""

from __future__ import annotations

import errno
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Never

import click

from unrender import __version__
from unrender.cli.chat import chat
from unrender.cli.diff import diff_
from unrender.cli.explain import explain_
from unrender.cli.export import export
from unrender.cli.formats import format_
from unrender.cli.grammar import grammar
from unrender.cli.inspect import inspect
from unrender.cli.lint import lint_
from unrender.cli.parse import parse
from unrender.cli.replay import replay_
from unrender.cli.terminal import let_go, plainly, remark
from unrender.cli.verify import verify_
from unrender.errors import SchemaWarning, UnrenderError

_UNUSABLE, _DEFECT, _INTERRUPTED = 2, 3, 130
_REPORT = "this is a defect of unrender; please report it, with the command and its input"


class Commands(click.Group):
    """Commands that end in a line and an exit code, whatever happens; no exception and no traceback leaves them."""

    def main(  # type: ignore[override]  # it never returns, in whichever mode
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> Never:
        """Run the command line and exit, as `click.Group.main` does."""
        with warnings.catch_warnings():
            warnings.simplefilter("always", SchemaWarning)
            warnings.showwarning = _warn
            sys.exit(self._code(args, prog_name, extra))

    def _code(self, args: Sequence[str] | None, prog_name: str | None, extra: dict[str, Any]) -> int:
        words = list(sys.argv[1:] if args is None else args) or ["--help"]
        try:
            code = super().main(words, prog_name, **extra | {"standalone_mode": False})
        except Exception as error:  # noqa: BLE001 - the last to know; every kind has its line
            return _ended(error)
        return code if isinstance(code, int) else 0


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    remark(f"warning: {message}")


def _usage(context: click.Context | None) -> Iterator[str]:
    if context:
        yield from context.get_usage().splitlines()
        yield from (f"Try '{context.command_path} --help' for help.", "")


def _ended(error: Exception) -> int:
    """Say in a line what ended the command, and return the exit code."""
    match error:
        case click.UsageError():
            for line in _usage(error.ctx):
                remark(line)
            remark(f"Error: {error.format_message()}")
            return _UNUSABLE
        case click.ClickException():
            remark(f"Error: {error.format_message()}")
            return error.exit_code
        case UnrenderError():
            remark(f"Error: {error}")
            return _UNUSABLE
        case click.Abort():
            remark("interrupted")
            return _INTERRUPTED
        case OSError(errno=errno.EPIPE):
            let_go()
            return 1
        case OSError():
            remark(f"Error: {error.filename or 'a file'}: {error.strerror or error}")
            return _UNUSABLE
        case RecursionError():
            remark("Error: an input is nested too deeply to be read")
            return _UNUSABLE
        case MemoryError():
            remark("Error: an input is too large for the memory there is")
            return _UNUSABLE
        case _:
            remark(f"Error: {type(error).__name__}: {error}; {_REPORT}")
            return _DEFECT


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


def _plain(context: click.Context, _option: click.Parameter, plain: bool) -> None:
    if plain:
        context.with_resource(plainly())


plain_option = click.Option(
    ["--plain"], is_flag=True, expose_value=False, callback=_plain, help="Print without colours and progress."
)
app.params.append(plain_option)
for command in (inspect, chat, parse, explain_, replay_, verify_, lint_, grammar, export, format_, diff_):
    command.params.append(plain_option)
    app.add_command(command)
