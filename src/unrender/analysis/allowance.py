"""Adds up what the analysis of one template has cost, and says whether it may go on.

Rules: the sum is bounded, not only each rendering; what is over it is left undetermined and said in a diagnostic. Ordinary
templates need 50 renderings and a fifth of a second.
"""

from __future__ import annotations

from dataclasses import dataclass

from unrender.limits import (
    ANALYSIS_CHARACTERS,
    ANALYSIS_EXHAUSTED,
    ANALYSIS_RENDERINGS,
    ANALYSIS_SECONDS,
    PROBE_CHARACTERS,
    PROBE_ITEMS,
    PROBE_SECONDS,
    PROBE_STEPS,
)
from unrender.rendering.cost import Limits, now
from unrender.rendering.template import Rendering


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What the analysis of one template may cost altogether."""

    renderings: int = ANALYSIS_RENDERINGS
    """Probes that are rendered."""
    characters: int = ANALYSIS_CHARACTERS
    """Characters of all renderings together, which are kept in memory."""
    seconds: float = ANALYSIS_SECONDS
    """Processor time of the thread, from the first probe on."""
    exhausted: int = ANALYSIS_EXHAUSTED
    """Renderings that may run into their own limits; all others would as well."""
    each: Limits = Limits(  # noqa: RUF009 -- frozen
        steps=PROBE_STEPS, characters=PROBE_CHARACTERS, items=PROBE_ITEMS, seconds=PROBE_SECONDS
    )
    """What one rendering may cost."""


class Spent:
    """What was spent of an `Allowance`."""

    __slots__ = ("_allowed", "_characters", "_exhausted", "_renderings", "_until", "reason")

    def __init__(self, allowed: Allowance) -> None:
        self._allowed = allowed
        self._until = now() + allowed.seconds
        self._renderings = self._characters = self._exhausted = 0
        self.reason: str = ""
        """Why the template is asked no more; empty as long as it is."""

    def add(self, rendering: Rendering) -> None:
        """Count a rendering."""
        self._renderings += 1
        self._characters += len(rendering.text)
        self._exhausted += rendering.exhausted

    @property
    def is_over(self) -> bool:
        """Return whether the allowance is used up; once it is, it stays so."""
        self.reason = self.reason or self._why_over()
        return bool(self.reason)

    def _why_over(self) -> str:
        allowed = self._allowed
        if self._exhausted > allowed.exhausted:
            return "the template reaches the limits of rendering"
        if self._renderings >= allowed.renderings:
            return f"the template has more variants than {allowed.renderings} renderings show"
        if self._characters > allowed.characters:
            return f"the template writes more than {allowed.characters} characters for the probes"
        if now() > self._until:
            return f"the template takes more than {allowed.seconds} seconds to analyse"
        return ""
