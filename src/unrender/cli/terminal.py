"""Prints all output of the command line. No other module of the command line writes to standard output or standard error.

Rules: all text is escaped in this module (see `unrender.printable`). Styles are added after escaping, and only for terminals that support
them. Output for programs is printed unchanged, except that some characters in JSON are escaped, which doesn't change its meaning.
"""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from unrender import (
    ArgumentsText,
    ContentText,
    Event,
    Malformed,
    MessageFinished,
    ReasoningText,
    ToolCallFinished,
    ToolCallStarted,
    UnrenderError,
)
from unrender.limits import MAX_REMARK
from unrender.printable import ascii_json, printable_json, printable_line, printable_lines

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

StyledPiece = tuple[str, str]
"""A string and its style, as rich spells it."""
Styled = Sequence[StyledPiece]

ROLE_STYLES: Mapping[str, str] = {
    "reasoning": "magenta",
    "content": "green",
    "marker": "dim",
    "name": "bold cyan",
    "argument": "cyan",
    "id": "yellow",
    "malformed": "red",
}
"""Styles of the parts of an answer, with the same colours as the animation in the documentation."""
_SIGNS: Mapping[str, str] = {
    "passed": "green",
    "skipped": "dim",
    "failed": "red",
    "error": "red",
    "warning": "yellow",
    "note": "cyan",
    "not examined": "red",
}
"""Styles of verdicts and severities. The verdicts themselves are words, so output without colours contains the same information."""
LabelledRow = tuple[str, str]
"""A label and its value."""
UNUSABLE, DEFECT, INTERRUPTED = 2, 3, 130
"""Exit codes."""
_DEFECT = "this is a bug in unrender; please report it with the command and its input"
INDENT = "  "
_MOST_ROWS, _LONGEST_VALUE = 200, 4000
"""Number of rows that are printed at each end of a long list, and maximum number of characters that are printed per value."""
_WORDS = 32
"""Minimum width of a table's last column. If a terminal is narrower, the column's text is printed below the row."""
_WIDEST = 40
"""Maximum width of a name in a table."""

NARROWEST = 20
"""Minimum width of folded text, even if the terminal is narrower."""


def width() -> int:
    """Return the value of the environment variable COLUMNS, or else the terminal's width. Returns 80 if both are unknown."""
    return _console().width


def print_line(*pieces: str | StyledPiece, columns: int | None = None) -> None:
    """Print pieces of text as one line, which is wrapped if `columns` is given. Line breaks within a piece are escaped."""
    parts = [(piece, "") if isinstance(piece, str) else piece for piece in pieces]
    _print(_text([(printable_line(text), style) for text, style in parts]), columns)


def print_sentence(*pieces: str | StyledPiece) -> None:
    """Print pieces of text like `print_line`, wrapped to the terminal's width."""
    print_line(*pieces, columns=max(width(), NARROWEST))


def print_block(pieces: Styled, *, indent: str = "") -> None:
    """Print indented text with its own line breaks. Long lines are folded, and trailing empty lines are left out."""
    columns = max(width() - len(indent), NARROWEST)
    text = _text([(printable_lines(text), style) for text, style in pieces])
    text.rstrip()
    for line in text.split("\n", allow_blank=True):
        for part in line.divide(range(columns, len(line), columns)):
            _print(_text([(indent, "")]) + part)


def print_heading(title: str, summary: str = "") -> None:
    """Print an empty line, followed by a title with a short summary next to it."""
    print_line()
    print_line((title, "bold"), "  " if summary else "", signed(summary))


def print_rows(rows: Sequence[LabelledRow]) -> None:
    """Print labels and values in two columns, and fold the values to the terminal's width.

    Very long values and lists are shortened to their start and end.
    """
    skipped = len(rows) - 2 * _MOST_ROWS
    if skipped > 1:
        rows = [*rows[:_MOST_ROWS], ("", f"… {skipped} more …"), *rows[-_MOST_ROWS:]]
    shown = [(printable_line(label), printable_line(shortened(value, _LONGEST_VALUE))) for label, value in rows]
    margin = max((len(label) for label, _ in shown), default=0) + 2 + len(INDENT)
    grid = _grid({"no_wrap": True}, {"overflow": "fold"})
    for (label, value), (_, whole) in zip(shown, rows, strict=True):
        grid.add_row(_text([(INDENT + label, "dim")]), _text([(value, signed(whole)[1])]))
    _print(grid, max(width(), margin + NARROWEST))


def signed(text: str) -> StyledPiece:
    """Return a string in the style of the verdict or severity at its start."""
    return text, _SIGNS.get(text.partition(" (")[0].partition(":")[0], "")


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table. Names are left-aligned, numbers are right-aligned, and the last column is text."""
    shown = [[printable_line(cell) for cell in row] for row in (head, *rows)]
    widths = [min(max(len(row[at]) for row in shown), _WIDEST) for at in range(len(head) - 1)]
    margin = sum(widths) + 2 * len(widths)
    beside = width() - margin >= _WORDS
    columns = [{"width": size, "no_wrap": True, "justify": "right" if at else "left"} for at, size in enumerate(widths)]
    for number, (*cells, words) in enumerate(shown):
        grid = _grid(*columns, {"overflow": "fold"})
        beneath = number and not beside
        texts = [(cell, signed(cell)[1] if number else "dim") for cell in (*cells, "" if beneath else words)]
        grid.add_row(*(_text([text]) for text in texts))
        _print(grid, max(width(), margin + 1))
        if beneath and words:
            grid = _grid({"width": 2}, {"overflow": "fold"})
            grid.add_row("", words)
            _print(grid, max(width(), NARROWEST))


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print a value as JSON. With `indent=None`, the JSON is printed on one line.

    Non-ASCII text is printed unescaped if the output's encoding allows it.
    """
    text = printable_json(json.dumps(value, indent=indent, ensure_ascii=False))
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = ascii_json(text)
    click.echo(text)


def print_document(text: str) -> None:
    """Print text that is meant for programs.

    The text is printed unchanged, except that unprintable characters are escaped on a terminal.
    """
    click.echo(printable_lines(text) if sys.stdout and sys.stdout.isatty() else text)


def escape_unencodable() -> None:
    """Escape characters that standard output's encoding can't represent."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def remark(text: str) -> None:
    """Print a line to standard error."""
    click.echo(printable_line(shortened(text, MAX_REMARK)), err=True)


def remark_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning. It replaces `warnings.showwarning`."""
    remark(f"warning: {message}")


class LogHandler(logging.Handler):
    """Prints log records as remarks."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record as one line, without a traceback."""
        remark(f"{record.levelname.lower()} {record.name}: {record.getMessage()}")


@contextmanager
def logged(level: int, name: str = "") -> Iterator[None]:
    """Print log records of at least this level while the block runs. With a `name`, only the records of that library are printed."""
    handler, logger = LogHandler(level), logging.getLogger(name)
    before, propagates = logger.level, logger.propagate
    logger.addHandler(handler)
    # Prevent the root logger's handler from printing the same records a second time.
    if name:
        logger.setLevel(level)
        logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        logger.propagate = propagates


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on standard error while the block runs, if it's a terminal.

    Yields a function that takes the numbers of finished and of all steps.
    """
    from rich.console import Console  # noqa: PLC0415 - an extra
    from rich.progress import Progress  # noqa: PLC0415

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_interactive) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _console() -> Console:
    from rich.console import Console  # noqa: PLC0415 - an extra

    return Console(highlight=False)


def _print(shown: Text | Table, columns: int | None = None) -> None:
    """Print a text as one line, or a table of this width. Styles are used if the output supports them."""
    console = _console()
    with console.capture() as page:
        console.print(shown, soft_wrap=columns is None, width=columns)
    click.echo("".join(line.rstrip() + "\n" for line in page.get()[:-1].split("\n")), nl=False)


def _grid(*columns: Mapping[str, Any]) -> Table:
    from rich.table import Table  # noqa: PLC0415 - an extra

    grid = Table.grid(padding=(0, 2, 0, 0))
    for settings in columns:
        grid.add_column(**settings)
    return grid


def _text(pieces: Styled) -> Text:
    from rich.text import Text  # noqa: PLC0415 - an extra

    return Text.assemble(*pieces)


def shortened(text: str, longest: int) -> str:
    """Return a text shortened to about `longest` characters, with its start and end."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} … {len(text) - 2 * half} characters … {text[-half:]}"


def print_event(event: Event) -> None:
    """Print an event as one line, in the colour of its part."""
    print_line(_styled(event))


def event_line(event: Event) -> str:
    """Return an event as one line of text, in which the model's text is quoted."""
    return _styled(event)[0]


def _styled(event: Event) -> StyledPiece:
    match event:
        case ReasoningText(text):
            return f"reasoning   {text!r}", ROLE_STYLES["reasoning"]
        case ContentText(text):
            return f"content     {text!r}", ROLE_STYLES["content"]
        case ToolCallStarted(index, id, name, known):
            line = f"call {index}      {_word(name)} id={_word(id)}"
            return line if known else f"{line} (unknown tool)", ROLE_STYLES["name"]
        case ArgumentsText(index, text):
            return f"arguments {index} {text!r}", ROLE_STYLES["argument"]
        case ToolCallFinished(index, status):
            return f"call {index}      {status}", ""
        case Malformed(text, position, expected):
            return f"malformed   {text!r} at character {position}: expected {expected}", ROLE_STYLES["malformed"]
        case MessageFinished():
            return "finished", ROLE_STYLES["marker"]


def event_data(event: Event) -> dict[str, Any]:
    """Return an event as plain JSON data, with its kind under `event`."""
    return {"event": type(event).__name__, **asdict(event)}


def _word(text: str) -> str:
    """Return a name, in quotes if it contains spaces or unprintable characters."""
    return text if text.isprintable() and " " not in text else repr(text)


def exit_of(error: Exception) -> tuple[int, str]:
    """Return the exit code and an unescaped message for an exception."""
    match error:
        case click.ClickException():  # Join the message's lines, because click lists the choices of an option on separate lines.
            return UNUSABLE, " ".join(filter(None, map(str.strip, error.format_message().split("\n"))))
        case UnrenderError():
            return UNUSABLE, str(error)
        case click.Abort():
            return INTERRUPTED, "interrupted"
        case OSError():
            return UNUSABLE, f"{error.filename or 'output'}: {error.strerror or error}"
        case RecursionError():
            return UNUSABLE, "an input is nested too deeply"
        case MemoryError():
            return UNUSABLE, "an input is too large for the available memory"
        case _:
            return DEFECT, f"{type(error).__name__}: {error}; {_DEFECT}"
