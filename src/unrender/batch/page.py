"""Writes an audit as one HTML page: numbers, bars in SVG, and examples; it loads nothing and runs nothing.

Rules: every text that comes from a record is escaped here, and what would hide or reorder is shown as its number. A policy in the
page forbids scripts and everything from elsewhere, should anything slip through.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from unrender.batch.audit import Audit, Example, Loss
from unrender.limits import MOST_DRAWN
from unrender.printable import printable_lines

_BAR, _ROW, _LABEL, _NUMBER = 380, 24, 300, 150
"""Pixels: the longest bar, the height of a row, and the room at either side."""
_GOOD, _BAD = "#2a7f62", "#c0392b"

_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>What was lost</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse } th, td { padding: .2rem .8rem; text-align: left; border-bottom: 1px solid #ddd }
td.n { text-align: right } pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f5f5f5; padding: .5rem }
svg text { font: 13px system-ui, sans-serif } summary { cursor: pointer } .big { font-size: 1.4rem }
</style>
</head>
<body>
"""


def audit_page(audit: Audit, title: str) -> str:
    """Return the page in HTML; `title` says what was audited."""
    parts = [_HEAD, f"<h1>{_shown(title)}</h1>\n", _sentence(audit)]
    losses = [(loss.value, audit.losses[loss.value]) for loss in Loss if audit.losses[loss.value]]
    if losses:
        parts += ["<h2>Answers by what was lost</h2>\n", _bars([(name, n, 0) for name, n in losses], audit.rows)]
        parts += [
            _table(("what was lost", "answers", "share"), [(name, n, _share(n, audit.rows)) for name, n in losses])
        ]
    if audit.calls:
        parts += ["<h2>Calls by tool</h2>\n", *_tools(audit)]
    if losses:
        parts += ["<h2>Examples</h2>\n", *(_examples(name, audit.examples.get(name, ())) for name, _ in losses)]
    if audit.unreadable:
        rows = [(reason, n, "") for reason, n in audit.unreadable.most_common(MOST_DRAWN)]
        parts += ["<h2>Rows that could not be compared</h2>\n", _table(("why", "rows", ""), rows)]
    return "".join([*parts, "</body>\n</html>\n"])


def _sentence(audit: Audit) -> str:
    worse = audit.rows - audit.same
    return (
        f'<p class="big">{worse:,} of {audit.rows:,} answers ({_share(worse, audit.rows)}) mean more, or something else, than '
        f"the message that was recorded.</p>\n"
        f"<p>{audit.calls.total():,} complete calls were written; {audit.wrong.total():,} of them did not arrive as they were "
        f"meant ({_share(audit.wrong.total(), audit.calls.total())}).</p>\n"
    )


def _tools(audit: Audit) -> Iterator[str]:
    tools = [(name, audit.wrong[name], total) for name, total in audit.calls.most_common(MOST_DRAWN)]
    yield _bars([(name, wrong, total - wrong) for name, wrong, total in tools], max(total for *_, total in tools))
    yield _table(
        ("tool", "calls", "lost or changed"), [(name, n, f"{wrong:,} ({_share(wrong, n)})") for name, wrong, n in tools]
    )


def _bars(rows: Sequence[tuple[str, int, int]], most: int) -> str:
    """Return a chart with a bar for each row: what is lost in red and, beside it, what is not in green."""
    scale = _BAR / max(most, 1)
    drawn = "".join(_bar(at * _ROW, name, bad, good, scale) for at, (name, bad, good) in enumerate(rows))
    width, height = _LABEL + _BAR + _NUMBER, len(rows) * _ROW
    return f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">{drawn}</svg>\n'


def _bar(top: int, name: str, bad: int, good: int, scale: float) -> str:
    middle, width = top + _ROW * 0.68, max(bad * scale, 1.0 if bad else 0.0)
    label = name if len(name) <= 44 else f"{name[:43]}…"
    numbers = f"{bad:,}" if not good else f"{bad:,} of {bad + good:,}"
    return (
        f'<text x="{_LABEL - 8}" y="{middle:.1f}" text-anchor="end">{_shown(label)}</text>'
        f'<rect x="{_LABEL}" y="{top + 4}" width="{width:.1f}" height="{_ROW - 8}" fill="{_BAD}"/>'
        f'<rect x="{_LABEL + width:.1f}" y="{top + 4}" width="{good * scale:.1f}" height="{_ROW - 8}" fill="{_GOOD}"/>'
        f'<text x="{_LABEL + width + good * scale + 6:.1f}" y="{middle:.1f}">{numbers}</text>'
    )


def _table(head: Sequence[str], rows: Sequence[tuple[str, int, str]]) -> str:
    heads = "".join(f"<th>{_shown(word)}</th>" for word in head)
    lines = (
        f'<tr><td>{_shown(name)}</td><td class="n">{n:,}</td><td class="n">{_shown(more)}</td></tr>\n'
        for name, n, more in rows
    )
    return f"<table>\n<tr>{heads}</tr>\n{''.join(lines)}</table>\n"


def _examples(loss: str, examples: Sequence[Example]) -> str:
    shown = "".join(
        f"<p>{_shown(example.place)}</p>\n<p>meant</p><pre>{_shown(example.finding.meant)}</pre>\n"
        f"<p>recorded</p><pre>{_shown(example.finding.recorded)}</pre>\n"
        for example in examples
    )
    return f"<details>\n<summary>{_shown(loss)}</summary>\n{shown}</details>\n"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "0%"


def _shown(text: str) -> str:
    return escape(printable_lines(text))
