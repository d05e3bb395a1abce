"""Loads markers of reasoning that models use under templates that never mention them (`markers/reasoning.json`)."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources

from unrender.format import Reasoning, ReasoningMode


@cache
def known_reasoning() -> tuple[Reasoning, ...]:
    """Return the markers, each pair as a `Reasoning` of its own. The file says why each pair is there."""
    data = json.loads((resources.files("unrender.formats") / "markers" / "reasoning.json").read_text("utf-8"))
    pairs = [(pair["start"], pair["end"]) for pair in data["markers"]]
    return tuple(Reasoning(mode=ReasoningMode.TAG_BASED, start=start, end=end) for start, end in pairs)
