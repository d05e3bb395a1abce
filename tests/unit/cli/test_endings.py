"""What is said of an exception, and the exit code."""

from __future__ import annotations

import click
import pytest

from unrender.cli.endings import ending
from unrender.errors import TemplateError

REPORT = "this is a defect of unrender; please report it, with the command and its input"


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (click.ClickException("no such thing"), 2, "no such thing"),
        (click.BadParameter("not that"), 2, "Invalid value: not that"),
        (TemplateError("line 3"), 2, "line 3"),
        (click.Abort(), 130, "interrupted"),
        (FileNotFoundError(2, "No such file", "a.json"), 2, "a.json: No such file"),
        (OSError(5, "Input/output error"), 2, "a file: Input/output error"),
        (OSError("odd"), 2, "a file: odd"),
        (RecursionError("deep"), 2, "an input is nested too deeply to be read"),
        (MemoryError(), 2, "an input is too large for the memory there is"),
        (KeyError("x"), 3, f"KeyError: 'x'; {REPORT}"),
        (ValueError("odd"), 3, f"ValueError: odd; {REPORT}"),
    ],
)
def test_endings(error, code, text):
    """What cannot be used is the caller's to mend, what nobody foresaw is ours."""
    ended = ending(error)

    assert (ended.code, ended.text) == (code, text)
