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
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from contextvars import ContextVar
from itertools import zip_longest
from pathlib import Path
from typing import Any, TextIO

from unrender.batch.outputs import naming
from unrender.limits import LONGEST_REMARK
from unrender.printable import ascii_json, printable_json, printable_line, printable_lines

Piece = tuple[str, str]
"""A text and its style."""
Styled = Sequence[Piece]

NO_STYLE, BOLD, DIM, RED, GREEN, CYAN, BOLD_CYAN = "", "1", "2", "31", "32", "36", "1;36"
"""Styles, as the numbers that terminals know them by."""

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
    _write(sys.stderr, printable_line(shortened(text, LONGEST_REMARK)) + "\n")


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

    def advance(self, name: str) -> None:
        """Count one more item as done, and show its name."""
        self._done += 1
        self.say(name)

    def say(self, name: str) -> None:
        """Show the name of the item in work."""
        self.show(f"{self._done}/{self._total}  {name}")

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
