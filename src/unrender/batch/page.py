"""Writes an audit as one HTML page: numbers, bars in SVG, and examples; it loads nothing and runs nothing.

Rules: every text that comes from a record is escaped here, and what would hide or reorder is shown as its number. A policy in the
page forbids scripts and everything from elsewhere, should anything slip through.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined

from unrender.batch.audit import Audit, Loss
from unrender.limits import MOST_DRAWN
from unrender.printable import printable_lines


def audit_page(audit: Audit, title: str) -> str:
    """Return the page in HTML; `title` says what was audited."""
    # Every text that the template writes goes through `finalize`, and is escaped after that.
    environment = Environment(autoescape=True, finalize=_shown, undefined=StrictUndefined, keep_trailing_newline=True)
    template = environment.from_string(files("unrender.batch").joinpath("audit.html").read_text(encoding="utf-8"))
    losses = [(loss.value, audit.losses[loss.value], 0) for loss in Loss if audit.losses[loss.value]]
    most_called = audit.calls.most_common(MOST_DRAWN)
    return template.render(
        audit=audit,
        title=title,
        share=_share,
        losses=losses,
        shares=[(name, n, _share(n, audit.rows)) for name, n, _ in losses],
        tools=[(name, audit.wrong[name], n - audit.wrong[name]) for name, n in most_called],
        changed=[(name, n, f"{audit.wrong[name]:,} ({_share(audit.wrong[name], n)})") for name, n in most_called],
        most=max((n for _, n in most_called), default=1),
        unreadable=[(reason, n, "") for reason, n in audit.unreadable.most_common(MOST_DRAWN)],
    )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "0%"


def _shown(value: Any) -> Any:
    """Return a value as it is written: a text without what would hide or reorder."""
    return printable_lines(value) if type(value) is str else value
