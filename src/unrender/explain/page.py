"""Lays out an explanation as a page of styled lines, for the command line, for `print` and for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any

from unrender.limits import MAX_COUNTED
from unrender.nodes import Role
from unrender.printable import excerpt, printable_line

Line = Sequence[tuple[str, str]]
"""Pieces of text, each with a style: the name of a role, "bold", "dim", "red", or "" for none."""

_SHOWN_AS = {Role.LAYOUT: "marker", Role.MARKER: "marker"}
"""Display names of some roles. White space between markers is displayed like a marker."""
_PARTS, _MARGIN, _NARROWEST = 8, 13, 20
"""Maximum number of an answer's parts, width of the column before their text, and minimum width of their text."""
_COLUMNS = 100
"""Width of a page that isn't printed in a terminal."""
_CSS: Mapping[str, str] = {
    "reasoning": "color:#8250df",
    "content": "color:#2da44e",
    "marker": "color:#808891",
    "name": "color:#0969da;font-weight:bold",
    "argument": "color:#0f8a84",
    "id": "color:#bf8700",
    "malformed": "color:#cf222e",
    "red": "color:#cf222e",
    "bold": "font-weight:bold",
    "dim": "color:#808891",
}
"""Styles in a notebook. The colours are readable on light and on dark pages."""


def page_of(explanation: Any, *, columns: int = _COLUMNS, everything: bool = False) -> Iterator[Line]:
    """Yield the result, the parts of the answer with a caret where parsing stopped, and the fix.

    Without `everything`, only the first parts and the main problem are shown.
    """
    reason, fix = _reason(explanation)
    yield [(reason[0].upper() + reason[1:], "bold")]
    yield from _parts(explanation, max(columns - _MARGIN, _NARROWEST), everything=everything)
    for tolerance in explanation.tolerances:
        yield [(f"Tolerated: {tolerance}.", "")]
    if fix:
        yield [("Fix: ", "bold"), (fix + ".", "")]


def page_text(lines: Iterable[Line]) -> str:
    """Return a page as plain text."""
    return "\n".join("".join(printable_line(text) for text, _ in line) for line in lines)


def page_html(lines: Iterable[Line]) -> str:
    """Return a page as HTML with colours."""
    shown = "\n".join(
        "".join(f'<span style="{_CSS.get(style, "")}">{escape(printable_line(text))}</span>' for text, style in line)
        for line in lines
    )
    return f'<pre style="white-space:pre-wrap">{shown}</pre>'


def _reason(explanation: Any) -> tuple[str, str]:
    """Return the main problem and its fix, or the result of parsing if there's no problem."""
    number, no_tools = len(explanation.message.tool_calls), "nothing can be a tool call: no tools were given"
    calls = f"{number or 'no'} tool call{'s' * (number != 1)}"
    if explanation.hints:
        hint = explanation.hints[0]
        return hint.text + "." * (not hint.text.endswith("?")), hint.fix
    if explanation.stops:
        read = f"parsed {calls}, with a mistake" if number else "parsing stopped"
        return f"{read}: expected {explanation.stops[0].expected}.", "`--all` shows what the model should write"
    if failed := explanation.message.failed_calls:
        return f"the call of {failed[0].name!r} is {failed[0].status}.", ""
    if not explanation.offered:
        return f"parsed, no problems. {no_tools.capitalize()}.", "Pass `--tools FILE`, or in Python `tools=[…]`"
    return f"parsed, no problems: {calls}.", ""


def _parts(explanation: Any, room: int, *, everything: bool) -> Iterator[Line]:
    """Yield a line for each part of the answer, and a line with a caret for each position where parsing stopped."""
    output = explanation.output
    stops, most = explanation.stops[:MAX_COUNTED], MAX_COUNTED if everything else _PARTS
    shown = 0
    for label, run in groupby(explanation.spans, key=lambda span: _SHOWN_AS.get(span.role, str(span.role))):
        spans = list(run)
        start, end = spans[0].start, spans[-1].end
        inside = [it for it in stops if start <= it.position < end or it.position == end == len(output)]
        if not inside and (shown >= most or (label == "marker" and not everything)):
            continue
        shown += 1
        for stop in inside or (None,):
            text, column = excerpt(output[start:end], stop.position - start if stop else 0, room)
            yield [("  ", ""), (label.ljust(_MARGIN - 2), "dim"), (text, label)]
            if stop:
                told = f"character {stop.position}: expected {stop.expected}"
                forms = (" " * column + f"^ {told}", f"{told} ^".rjust(column + 1), " " * column + "^")
                yield [(" " * _MARGIN, ""), (min(forms, key=lambda form: len(form) > room), "red")]
