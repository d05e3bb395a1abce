"""What analysis comes to: plain frozen data, which can be kept on disk."""

from __future__ import annotations

from dataclasses import dataclass

from unrender.analysis.capabilities import Capabilities
from unrender.format import Format


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Why a part of the format is what it is."""

    part: str
    """The field, e.g. `reasoning.start`."""
    comparison: str
    """The comparison's name in the field, e.g. `R1`; empty where the field has none."""
    finding: str
    """What was compared with what."""
    rendering: str = ""
    """The rendering that shows it, from the answer's start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What was learnt of a template."""

    format: Format
    capabilities: Capabilities
    evidence: tuple[Evidence, ...] = ()
    """Per part of the format: the comparison that found it, and the rendering that shows it."""
    diagnostics: tuple[str, ...] = ()
    """What could not be determined, and why."""
    renderings: int = 0
    """How many probes were rendered."""
    stopped_early: bool = False
    """A limit was met, or analysis itself failed: under less load, or in another release, it may find more."""
