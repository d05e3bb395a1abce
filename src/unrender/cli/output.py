"""Prints what commands share: headings, two columns that fit 80 columns and pipes, events, and the sentence that ends a command."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

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
from unrender.cli.terminal import BOLD, DIM, NARROWEST, NO_STYLE, print_line, shortened, width
from unrender.printable import printable_line

Row = tuple[str, str]
"""A label and its value."""
UNUSABLE, DEFECT, INTERRUPTED = 2, 3, 130
"""Exit codes."""
_DEFECT = "this is a defect of unrender; please report it, with the command and its input"
INDENT = "  "
_MOST_ROWS, _LONGEST_VALUE = 200, 4000
"""Half the rows of a list, and the characters of a value, that are printed."""
_WORDS = 32
"""Columns that the words of a table need beside its numbers; with fewer they go below them."""
_WIDEST = 40
"""Characters of a name in a table."""


def print_heading(title: str, summary: str = "") -> None:
    """Print an empty line, then a title with a short summary beside it."""
    print_line()
    print_line((title, BOLD), "  " if summary else "", summary)


def print_rows(rows: Sequence[Row]) -> None:
    """Print labels and their values in two columns, the second folded to the terminal's width.

    Of very long values, and of very many rows, only the beginning and the end are printed.
    """
    skipped = len(rows) - 2 * _MOST_ROWS
    if skipped > 1:
        rows = [*rows[:_MOST_ROWS], ("", f"… {skipped} more …"), *rows[-_MOST_ROWS:]]
    shown = [(printable_line(label), printable_line(shortened(value, _LONGEST_VALUE))) for label, value in rows]
    margin = max((len(label) for label, _ in shown), default=0) + 2 + len(INDENT)
    for label, value in shown:
        first, *more = textwrap.wrap(value, max(width() - margin, NARROWEST), break_on_hyphens=False) or [""]
        print_line(INDENT, (label.ljust(margin - len(INDENT)), DIM), first)
        for line in more:
            print_line(" " * margin, line)


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: names aligned left, numbers aligned right, and words in the last column."""
    shown = [[printable_line(cell) for cell in row] for row in (head, *rows)]
    widths = [min(max(len(row[at]) for row in shown), _WIDEST) for at in range(len(head) - 1)]
    margin = sum(widths) + 2 * len(widths)
    beside = width() - margin >= _WORDS
    indent = margin if beside else 2 * len(INDENT)
    for number, (name, *numbers, words) in enumerate(shown):
        cells = [_cut(name).ljust(widths[0])]
        cells += [cell.rjust(column) for cell, column in zip(numbers, widths[1:], strict=True)]
        lines = textwrap.wrap(words, max(width() - indent, NARROWEST), break_on_hyphens=False)
        first = lines.pop(0) if lines and (beside or not number) else ""
        print_line(("  ".join([*cells, first]).rstrip(), NO_STYLE if number else DIM))
        for line in lines:
            print_line(" " * indent, line)


def _cut(name: str) -> str:
    return name if len(name) <= _WIDEST else name[: _WIDEST - 1] + "…"


def event_line(event: Event) -> str:
    """Return an event as one line of text. The model's text is quoted."""
    match event:
        case ReasoningText(text):
            return f"reasoning   {text!r}"
        case ContentText(text):
            return f"content     {text!r}"
        case ToolCallStarted(index, id, name, known):
            return f"call {index}      {_word(name)} id={_word(id)}" + ("" if known else " (unknown tool)")
        case ArgumentsText(index, text):
            return f"arguments {index} {text!r}"
        case ToolCallFinished(index, status):
            return f"call {index}      {status}"
        case Malformed(text, position, expected):
            return f"malformed   {text!r} at character {position}: expected {expected}"
        case MessageFinished():
            return "finished"


def event_data(event: Event) -> dict[str, Any]:
    """Return an event as plain JSON data, with its kind under `event`."""
    return {"event": type(event).__name__, **asdict(event)}


def _word(text: str) -> str:
    """Return a name as it is, quoted where it would look like more than a name."""
    return text if text.isprintable() and " " not in text else repr(text)


def ending(error: Exception) -> tuple[int, str]:
    """Return the exit code and the sentence for an exception of any kind. Whoever prints the sentence escapes it."""
    match error:
        case click.ClickException():  # Click lists the values of an option below each other.
            return UNUSABLE, " ".join(filter(None, map(str.strip, error.format_message().split("\n"))))
        case UnrenderError():
            return UNUSABLE, str(error)
        case click.Abort():
            return INTERRUPTED, "interrupted"
        case OSError():
            return UNUSABLE, f"{error.filename or 'a file'}: {error.strerror or error}"
        case RecursionError():
            return UNUSABLE, "an input is nested too deeply to be read"
        case MemoryError():
            return UNUSABLE, "an input is too large for the memory there is"
        case _:
            return DEFECT, f"{type(error).__name__}: {error}; {_DEFECT}"
