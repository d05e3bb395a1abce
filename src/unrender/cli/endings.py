"""Turns an exception into the sentence and the exit code of the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass

import click

from unrender import UnrenderError

UNUSABLE, DEFECT, INTERRUPTED = 2, 3, 130
_BREAK = re.compile(r"\s*\n\s*")
_REPORT = "this is a defect of unrender; please report it, with the command and its input"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a command ended."""

    code: int
    text: str
    """What went wrong, as it was met: whoever prints it escapes it."""


def ending(error: Exception) -> Ending:
    """Return the sentence and the exit code for an exception of any kind."""
    match error:
        case click.ClickException():
            return Ending(code=UNUSABLE, text=_one_line(error.format_message()))
        case UnrenderError():
            return Ending(code=UNUSABLE, text=str(error))
        case click.Abort():
            return Ending(code=INTERRUPTED, text="interrupted")
        case OSError():
            return Ending(code=UNUSABLE, text=f"{error.filename or 'a file'}: {error.strerror or error}")
        case RecursionError():
            return Ending(code=UNUSABLE, text="an input is nested too deeply to be read")
        case MemoryError():
            return Ending(code=UNUSABLE, text="an input is too large for the memory there is")
        case _:
            return Ending(code=DEFECT, text=f"{type(error).__name__}: {error}; {_REPORT}")


def _one_line(text: str) -> str:
    """Return a message as one line; click lists the values of an option below each other."""
    return _BREAK.sub(" ", text)
