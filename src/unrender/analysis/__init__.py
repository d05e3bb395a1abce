"""Derives a Format from a template: it renders probes, compares the renderings, and verifies its findings.

In: a `Template`. Out: an `Analysis` with the format, capabilities, evidence for both, and diagnostics.
Open `derivation` first: its `analyze` goes through all steps. `ask` renders conversations with needles in them, `find` makes
findings of the texts, and `proof`, which `verify` uses as well, weakens the format until it reads the template's own answers.
`rebuilding` writes answers again from what was found, `additions` fills in what no answer shows, `evidence` says why, and
`stored` keeps what was learnt on disk.

Invariants:
- A decision rests on where needles are in renderings; no code path knows a model's name or a marker's spelling.
- No needle is left in a marker; the Format does not depend on needles, BOS, EOS or the date.
- No template makes it raise: what it cannot determine it leaves out, and says so.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unrender.conversation.adapt import shape_messages
from unrender.conversation.capabilities import Capabilities, ReasoningPlace, shape_context
from unrender.format import Format

if TYPE_CHECKING:
    from unrender.analysis.derivation import analyze
    from unrender.analysis.stored import cache_folder
    from unrender.proof.split import Split

__all__ = [
    "Analysis",
    "Capabilities",
    "Evidence",
    "ReasoningPlace",
    "analyze",
    "cache_folder",
    "shape_context",
    "shape_messages",
]
_LAZY = {"analyze": "unrender.analysis.derivation", "cache_folder": "unrender.analysis.stored"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One side of a comparison."""

    what: str
    """The rendering, in words."""
    text: str
    """The template's text: of an answer, from its start; of a prompt, from the question's end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The evidence for a part of the format: a comparison of two renderings, and its result."""

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
        """The common prefix of both texts, their different middle parts, and their common suffix."""
        from unrender.proof.split import calculate_diff_split  # noqa: PLC0415 -- only who looks at it needs it

        return calculate_diff_split(self.left.text, self.right.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """Findings about a template."""

    format: Format
    capabilities: Capabilities
    evidence: tuple[Evidence, ...] = ()
    """Per part of the format: the comparison that found it, with both of its renderings."""
    diagnostics: tuple[str, ...] = ()
    """Points that could not be determined, and why."""
    given_up: tuple[str, ...] = ()
    """Findings that do not hold, in words: the format claims less. Each is a diagnostic as well."""
    renderings: int = 0
    """The number of probes that were rendered."""
    stopped_early: bool = False
    """A limit was met, or analysis itself failed: under less load, or in another release, it may find more."""


def __getattr__(name: str) -> Any:
    # What analyses is loaded when it is wanted: a process that finds its analyses on disk never wants it.
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = found
    return found
