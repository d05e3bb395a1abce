"""Prints everything that the command line prints: no other module of it writes to a stream.

Rules: what is printed is escaped here (`unrender.printable`), whoever hands it over; styles are added afterwards, and only for
terminals that want them. What programs read from a pipe or a file comes as it is, but for JSON, which means the same escaped.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from contextvars import ContextVar
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from typing import Any, TextIO

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
from unrender.outputs import naming
from unrender.printable import ascii_json, printable_json, printable_line, printable_lines

Piece = tuple[str, str]
"""A text and its style."""
Styled = Sequence[Piece]

NO_STYLE, BOLD, DIM, RED, GREEN, YELLOW, MAGENTA, CYAN, BOLD_CYAN = "", "1", "2", "31", "32", "33", "35", "36", "1;36"
"""Styles, as the numbers that terminals know them by."""
ROLES: Mapping[str, str] = {
    "reasoning": MAGENTA,
    "content": GREEN,
    "marker": DIM,
    "name": BOLD_CYAN,
    "argument": CYAN,
    "id": YELLOW,
    "malformed": RED,
}
"""How the parts of an answer look, wherever one is printed: the colours of the documentation's film."""
_SIGNS: Mapping[str, str] = {
    "passed": GREEN,
    "skipped": DIM,
    "failed": RED,
    "error": RED,
    "warning": YELLOW,
    "note": CYAN,
    "not examined": RED,
}
"""Verdicts and severities: each is a word, so that what has no colours says the same."""
_EVENTS: Mapping[type[Event], str] = {
    ReasoningText: ROLES["reasoning"],
    ContentText: ROLES["content"],
    ToolCallStarted: ROLES["name"],
    ArgumentsText: ROLES["argument"],
    Malformed: ROLES["malformed"],
    MessageFinished: ROLES["marker"],
}

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

NARROWEST = 20
"""Columns that a folded text keeps, however narrow the terminal is."""

_PLAIN: ContextVar[bool] = ContextVar("plain", default=False)


@contextmanager
def plainly() -> Iterator[None]:
    """Print without styles and without progress in this block."""
    token = _PLAIN.set(True)
    try:
        yield
    finally:
        _PLAIN.reset(token)


@contextmanager
def aside() -> Iterator[None]:
    """Print on standard error in this block, since standard output holds something else."""
    with redirect_stdout(sys.stderr):
        yield


def width() -> int:
    """Return the width in columns: that in COLUMNS, else the terminal's, else 80."""
    return shutil.get_terminal_size().columns


def print_line(*pieces: str | Piece) -> None:
    """Print pieces of text as one line. A line break in a piece is shown as an escape."""
    parts = [(piece, NO_STYLE) if isinstance(piece, str) else piece for piece in pieces]
    _write(sys.stdout, _rendered([(printable_line(text), style) for text, style in parts], sys.stdout) + "\n")


def print_block(pieces: Styled, *, indent: str = "") -> None:
    """Print text with its own line breaks, indented and with long lines folded. Empty lines at its end are left out."""
    for line in _shown_lines(pieces, max(width() - len(indent), NARROWEST)):
        _write(sys.stdout, indent + _rendered(line, sys.stdout) + "\n")


def print_columns(left: Styled, right: Styled, *, indent: str = "", gap: str = "   ") -> None:
    """Print two texts side by side, with their own line breaks and long lines folded.

    On a narrow terminal, the right text is printed below the left one.
    """
    columns = (width() - len(indent) - len(gap)) // 2
    if columns < NARROWEST:
        print_block(left, indent=indent)
        _write(sys.stdout, "\n")
        print_block(right, indent=indent)
        return
    sides = [_shown_lines(pieces, columns) for pieces in (left, right)]
    for one, other in zip_longest(*sides, fillvalue=()):
        padding = " " * (columns - sum(len(text) for text, _ in one)) + gap if other else ""
        line = indent + _rendered(one, sys.stdout) + padding + _rendered(other, sys.stdout)
        _write(sys.stdout, line.rstrip() + "\n")


def print_heading(title: str, summary: str = "") -> None:
    """Print an empty line, then a title with a short summary beside it."""
    print_line()
    print_line((title, BOLD), "  " if summary else "", _signed(summary))


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
        _, style = _signed(value)
        print_line(INDENT, (label.ljust(margin - len(INDENT)), DIM), (first, style))
        for line in more:
            print_line(" " * margin, (line, style))


def _signed(text: str) -> Piece:
    """Return a text in the style of the verdict or the severity that it is, or that it gives the reason for."""
    return text, _SIGNS.get(text.partition(" (")[0].partition(":")[0], NO_STYLE)


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
        *before, last = [*cells, first] if first else cells
        texts = [*(f"{cell}  " for cell in before), last.rstrip()]
        print_line(*((text, _signed(text.strip())[1] if number else DIM) for text in texts))
        for line in lines:
            print_line(" " * indent, line)


def _cut(name: str) -> str:
    return name if len(name) <= _WIDEST else name[: _WIDEST - 1] + "…"


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print a value as JSON; `indent=None` prints it on one line.

    Non-ASCII text is printed unescaped where the output's encoding allows it.
    """
    text = printable_json(json.dumps(value, indent=indent, ensure_ascii=False))
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = ascii_json(text)
    _write(sys.stdout, text + "\n")


def print_document(text: str) -> None:
    """Print a text that programs read.

    It is printed exactly as it is, but on a terminal unprintable characters are escaped.
    """
    _write(sys.stdout, (printable_lines(text) if sys.stdout.isatty() else text) + "\n")


def remark(text: str) -> None:
    """Print a line to standard error."""
    _write(sys.stderr, printable_line(shortened(text, MAX_REMARK)) + "\n")


def remark_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning; replaces `warnings.showwarning`."""
    remark(f"warning: {message}")


class LogHandler(logging.Handler):
    """Prints records as remarks."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record as a line; an exception's traceback is left out."""
        remark(f"{record.levelname.lower()} {record.name}: {record.getMessage()}")


@contextmanager
def logged(level: int, name: str = "") -> Iterator[None]:
    """Print the log records of this level and above while the block runs; with a name, those of one library alone."""
    handler, logger = LogHandler(level), logging.getLogger(name)
    before, propagates = logger.level, logger.propagate
    logger.addHandler(handler)
    # All records of this library come here, so the root's handler must not print its warnings once more.
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
def progress(total: int) -> Iterator[Progress]:
    """Show on standard error how much of `total` is done while the block runs.

    Nothing is shown when standard error is not a terminal, or inside `plainly`.
    """
    shown = Progress(total, sys.stderr if sys.stderr.isatty() and not _PLAIN.get() else None)
    try:
        yield shown
    finally:
        shown.show("")


class Progress:
    """A line of progress, written over again and again: how many items are done, and which was the last."""

    def __init__(self, total: int, stream: TextIO | None) -> None:
        self._total, self._done, self._stream, self._shown = total, 0, stream, 0
        self._started = time.monotonic()

    def advance(self, name: str) -> None:
        """Count one more item as done, and show its name."""
        self._done += 1
        self.say(name)

    def say(self, name: str) -> None:
        """Show the name of the item in work, and how long the rest will take at the pace so far."""
        left = (time.monotonic() - self._started) / self._done * (self._total - self._done) if self._done else 0
        self.show(f"{self._done}/{self._total}  " + (f"{left:.0f} s left  " if left >= 1 else "") + name)

    def show(self, line: str) -> None:
        """Show a line given by the caller instead; an empty one removes what is shown."""
        line = printable_line(line)[: width() - 1]
        if self._stream and (line or self._shown):
            # The line before is covered with spaces; without a new one, the cursor goes back to where the line began.
            _write(self._stream, "\r" + line.ljust(self._shown) + ("" if line else "\r"))
            self._shown = len(line)


class ReaderGone(Exception):
    """Whoever read what is printed has gone, as `head` does when it has enough: nothing more is to be said."""


def let_go() -> None:
    """Drop what is still written to a stream that takes nothing any more: its reader has gone, or its disk is full."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            # Python flushes once more at its end, and would complain: the stream's file is exchanged under it.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


@contextmanager
def streams() -> Iterator[None]:
    """Give the block streams to print on, where the caller of the process has closed them."""
    with ExitStack() as opened:
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:
                nowhere = opened.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
                opened.callback(setattr, sys, name, None)
                setattr(sys, name, nowhere)
        yield


def _write(stream: TextIO, text: str) -> None:
    """Write and flush; characters that the stream's encoding does not have are written as their numbers.

    Raises `ReaderGone`, or an `OSError` that names the stream.
    """
    try:
        with naming("standard output" if stream is sys.stdout else "standard error"):
            try:
                stream.write(text)
            except UnicodeEncodeError:
                encoding = stream.encoding or "ascii"
                stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
            stream.flush()
    except BrokenPipeError as error:
        raise ReaderGone from error


def _rendered(pieces: Styled, stream: TextIO) -> str:
    """Return escaped pieces as one text, with the codes of their styles where the stream's reader wants them."""
    unwanted = _PLAIN.get() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if unwanted or not stream.isatty():
        return "".join(text for text, _ in pieces)
    return "".join(f"\x1b[{style}m{text}\x1b[0m" if style and text else text for text, style in pieces)


def _shown_lines(pieces: Styled, columns: int) -> list[list[Piece]]:
    """Return escaped text in lines of at most so many characters; empty lines at its end are left out."""
    lines: list[list[Piece]] = [[]]
    for text, style in pieces:
        first, *more = printable_lines(text).split("\n")
        lines[-1].append((first, style))
        lines += [[(line, style)] for line in more]
    while lines and not "".join(text for text, _ in lines[-1]).strip():
        lines.pop()
    return [part for line in lines for part in _folded(line, columns)]


def _folded(line: Styled, columns: int) -> Iterator[list[Piece]]:
    """Yield a line in parts of at most so many characters; an empty line is one part."""
    part: list[Piece] = []
    left = columns
    for text, style in line:
        at = 0
        # A piece may begin in the middle of a line: its first part gets what room is left.
        while len(text) - at > left:
            yield [*part, (text[at : at + left], style)]
            part, at, left = [], at + left, columns
        part.append((text[at:], style))
        left -= len(text) - at
    yield part


def shortened(text: str, longest: int) -> str:
    """Shorten a text to about `longest` characters, keeping its beginning and end."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} … {len(text) - 2 * half} characters … {text[-half:]}"


def print_event(event: Event) -> None:
    """Print an event as a line, in the colour of its part."""
    print_line((event_line(event), _EVENTS.get(type(event), NO_STYLE)))


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
    import click  # noqa: PLC0415 - an extra, and `remark` says which

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
