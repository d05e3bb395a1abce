"""What commands print: tables on a console that also reads well in 80 columns, without colour and in a pipe."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from unrender.cli.describe import Row
from unrender.parsing import events as ev

INDENT = "  "
NARROWEST = 20
"""Columns that the second column keeps, however narrow the terminal is."""


def console() -> Console:
    """Return a console on standard output that prints text as it is: `[x]` and `:)` are no markup here."""
    return Console(markup=False, highlight=False, emoji=False)


def print_json(value: Any) -> None:
    """Print a value as indented JSON, non-ASCII text as it is."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_heading(out: Console, title: str, summary: str = "") -> None:
    """Print an empty line, a title, and behind it a few words that sum up what follows."""
    out.print()
    out.print(Text.assemble((title, "bold"), "  " if summary else "", summary))


def print_text(out: Console, text: Text) -> None:
    """Print text with its own line breaks, indented, long lines folded; empty lines at its end are left out."""
    text = text.copy()
    text.rstrip()
    width = max(out.width - len(INDENT), NARROWEST)
    for line in text.split(allow_blank=True):
        for piece in line.divide(range(width, len(line), width)):
            out.print(Text(INDENT) + piece, soft_wrap=True)


def print_rows(out: Console, rows: Sequence[Row]) -> None:
    """Print labels and what stands behind them in two columns, the second folded to the terminal's width.

    rich's own tables fill lines up with spaces, which a pipe keeps.
    """
    margin = max((len(label) for label, _ in rows), default=0) + 2 + len(INDENT)
    for label, value in rows:
        first, *more = textwrap.wrap(value, max(out.width - margin, NARROWEST), break_on_hyphens=False) or [""]
        out.print(Text.assemble(INDENT, (label.ljust(margin - len(INDENT)), "dim"), first), soft_wrap=True)
        for line in more:
            out.print(" " * margin + line, soft_wrap=True)


def event_line(event: ev.Event) -> str:
    """Return an event as one line of text, quoted where it carries the model's text."""
    match event:
        case ev.ReasoningText(text):
            return f"reasoning   {text!r}"
        case ev.ContentText(text):
            return f"content     {text!r}"
        case ev.ToolCallStarted(index, id, name, known):
            return f"call {index}      {name} id={id}" + ("" if known else " (unknown tool)")
        case ev.ArgumentsText(index, text):
            return f"arguments {index} {text!r}"
        case ev.ToolCallFinished(index, status):
            return f"call {index}      {status}"
        case ev.Malformed(text, position, expected):
            return f"malformed   {text!r} at character {position}: expected {expected}"
        case ev.MessageFinished():
            return "finished"


def event_data(event: ev.Event) -> dict[str, Any]:
    """Return an event as plain JSON data, its kind under `event`."""
    return {"event": type(event).__name__, **asdict(event)}
