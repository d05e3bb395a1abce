"""Derives a Format from a template: probes, differences, needles.

Invariants:
- A decision rests on where needles are in renderings; no code path knows a model's name or a marker's spelling.
- No needle is left in a marker; the Format does not depend on needles, BOS, EOS or the date.
- No template makes it raise: what it cannot determine it leaves out, and says so.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from unrender.analysis.result import Analysis, Evidence
from unrender.rendering.capabilities import Capabilities, ReasoningPlace
from unrender.rendering.shape import shape_context, shape_messages

if TYPE_CHECKING:
    from unrender.analysis.derivation import analyze

__all__ = ["Analysis", "Capabilities", "Evidence", "ReasoningPlace", "analyze", "shape_context", "shape_messages"]


def __getattr__(name: str) -> Any:
    # What analyses is loaded when it is wanted: a process that finds its analyses on disk never wants it.
    if name != "analyze":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = importlib.import_module("unrender.analysis.derivation").analyze
    globals()[name] = found
    return found
