"""Derives a Format from a template: it renders probes, compares what is written, and proves what it concludes.

In comes a `Template`, out goes an `Analysis`: format, capabilities, evidence for both, and what could not be determined.
Open `derivation` first: its `analyze` goes through all steps. `ask` renders conversations with needles in them, `find` makes
findings of the texts, and `prove` weakens the format until it reads the template's own answers. `additions` fills in what no
answer shows, `result` holds what is learnt, and `stored` keeps it on disk.

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
