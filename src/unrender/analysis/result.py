"""Holds the results of an analysis: plain frozen data, which can be kept on disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unrender.analysis.capabilities import Capabilities
from unrender.format import Format

if TYPE_CHECKING:
    from unrender.analysis.split import Split


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
        from unrender.analysis.split import calculate_diff_split  # noqa: PLC0415 -- only who looks at it needs it

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
