"""Holds the results of an analysis: plain frozen data, which can be kept on disk."""

from __future__ import annotations

import logging
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from unrender.format import Format
from unrender.rendering.capabilities import Capabilities

if TYPE_CHECKING:
    from unrender.analysis.find.split import Split


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One side of a comparison."""

    what: str
    """What was rendered, in words."""
    text: str
    """What the template wrote: of an answer, from its start; of a prompt, from the question's end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Why a part of the format is what it is: a comparison of two renderings, and what it showed."""

    part: str
    """The field, e.g. `reasoning.start`."""
    comparison: str
    """The comparison's name in the field, e.g. `R1`; empty where the field has none."""
    finding: str
    """The question that the comparison answers."""
    left: Shown
    right: Shown
    rule: str = ""
    """The name of the heuristic that decided; empty where nothing had to be decided."""

    @property
    def split(self) -> Split:
        """The common start of both texts, what is only in each, and their common end."""
        from unrender.analysis.find.split import calculate_diff_split  # noqa: PLC0415 -- only who looks at it needs it

        return calculate_diff_split(self.left.text, self.right.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What was learnt about a template."""

    format: Format
    capabilities: Capabilities
    evidence: tuple[Evidence, ...] = ()
    """Per part of the format: the comparison that found it, with both of its renderings."""
    diagnostics: tuple[str, ...] = ()
    """What could not be determined, and why."""
    given_up: tuple[str, ...] = ()
    """What was found and does not hold, in words: the format claims less. Each is a diagnostic as well."""
    renderings: int = 0
    """How many probes were rendered."""
    stopped_early: bool = False
    """A limit was met, or analysis itself failed: under less load, or in another release, it may find more."""


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
