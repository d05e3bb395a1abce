"""Derives a Format from a template by rendering probes and comparing the renderings, and verifies the result.

The result is an `Analysis` with the format, capabilities, evidence for both, and diagnostics. Open `derivation` first: its `analyze` runs
all steps. `ask` renders conversations that contain needles, and `find` derives findings from the renderings. `proof`, which `verify` also
uses, weakens the format until it can parse the template's own answers. `completion` renders answers with the format, and adds parts
that no answer shows, `evidence` collects the comparisons that support the format, and `stored` caches analyses on disk.

Invariants of the analysis:
- Decisions depend only on the positions of needles. No code path depends on a model's name or a marker's spelling.
- Markers contain no needles. The Format doesn't depend on needles, BOS, EOS or the date.
- No template makes the analysis raise. Parts that can't be determined are left out and reported in a diagnostic.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unrender.conversation import Capabilities, ReasoningPlace, shape_context
from unrender.conversation.adapt import shape_messages
from unrender.format import Format

if TYPE_CHECKING:
    from unrender.analysis.derivation import analyze
    from unrender.analysis.stored import cache_folder
    from unrender.format.picture import PicturePiece
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
    """One of the two renderings that an `Evidence` compares."""

    what: str
    """Description of the conversation that was rendered."""
    text: str
    """Rendered text: an answer from its start, or a prompt from the end of the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The evidence for a part of the format: a comparison of two renderings, and its finding."""

    part: str
    """Name of the format's field that the comparison supports, e.g. `reasoning.start`."""
    comparison: str
    """Short name of the comparison, e.g. `R1`, or an empty string."""
    finding: str
    """The question that the comparison answers."""
    left: Shown
    right: Shown
    rule: str = ""
    """Name of the heuristic that chose this finding. Empty if there was only one possible finding."""

    @property
    def split(self) -> Split:
        """Split the two renderings into their common prefix and suffix, and the different middle part of each."""
        from unrender.proof.split import calculate_diff_split  # noqa: PLC0415 -- only who looks at it needs it

        return calculate_diff_split(self.left.text, self.right.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """Findings about a template."""

    format: Format
    capabilities: Capabilities
    evidence: tuple[Evidence, ...] = ()
    """Comparisons that support parts of the format, with both renderings."""
    diagnostics: tuple[str, ...] = ()
    """Parts that could not be determined, with the reasons."""
    given_up: tuple[str, ...] = ()
    """Findings that were dropped because later checks refuted them. Each is also listed in `diagnostics`."""
    renderings: int = 0
    """Number of rendered probes."""
    stopped_early: bool = False
    """True if a limit was exceeded or the analysis failed. A new analysis may then find more, for example on an idle machine or with
    another release.
    """

    def _pictures(self, format: Format | None = None) -> list[tuple[PicturePiece, ...]]:
        """Return sample answers in the format, or in the `format` of a turn, as sequences of parts."""
        from unrender.format.picture import pictures  # noqa: PLC0415 -- imported on use

        with_call = next((found.right.text for found in self.evidence if found.part == "tools.mode"), "")
        return pictures(
            format or self.format, together=self.capabilities.supports_content_with_calls, with_call=with_call
        )


def __getattr__(name: str) -> Any:
    # Import the analysis code only on demand, because processes that load stored analyses don't need it.
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = found
    return found
