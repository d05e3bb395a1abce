"""Logs a finished `Analysis` to `unrender.analysis`: what was decided, and what each decision rests on.

Rules: records are of level DEBUG, and cost nothing where nobody listens; text of the template is quoted, so that a record
stays a line.
"""

from __future__ import annotations

import logging
from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unrender.analysis.result import Analysis

_log = logging.getLogger("unrender.analysis")


def tell(analysis: Analysis, *, part_opener: str) -> None:
    """Log the decisions of an analysis.

    `part_opener` is the marker because of which the template was analysed a second time; empty when there was none.
    """
    if not _log.isEnabledFor(logging.DEBUG):
        return
    for item in fields(analysis.capabilities):
        value = getattr(analysis.capabilities, item.name)
        if value != item.default:
            _log.debug("capability %s: %r", item.name, value)
    if part_opener:
        _log.debug("every part of an answer begins with %r: asked again with that in mind", part_opener)
    for found in analysis.evidence:
        value = _shown(attrgetter(found.part)(analysis.format))
        _log.debug(
            "%s%s: %s; asked: %s%s",
            f"{found.comparison} " * bool(found.comparison),
            found.part,
            value,
            found.finding,
            f" decided by: {found.rule}" * bool(found.rule),
        )
    for name in analysis.format.declared:
        _log.debug("declared format %s: its evidence is there, and it adds something", name)
    for diagnostic in analysis.diagnostics:
        _log.debug("not determined: %s", diagnostic)
    _log.debug("derived from %d renderings", analysis.renderings)


def _shown(value: Any) -> str:
    """Return a part of a format in a line: its mode where it has one, and the fields that are not the default."""
    try:
        items = fields(value)
    except TypeError:
        return repr(value)
    pairs = [(item.name, getattr(value, item.name), item.default) for item in items]
    return ", ".join(f"{name}={part!r}" for name, part, default in pairs if part != default) or "the default"
