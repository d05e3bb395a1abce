"""Rows of `tests/corpus/explanations.jsonl` ↔ what is said of an output: how it was read, where that stopped, and hints.

A row has the `template` (of `tests/templates`), `with` what else `explain` is told, and the `output`. `spans` are the role of each
stretch and its length, as in the rows of answers; what says nothing is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from unrender import ChatTemplate
from unrender.explain import Explanation, explain

TEMPLATES = Path(__file__).parent / "templates"
EXPLANATIONS = Path(__file__).parent / "corpus" / "explanations.jsonl"
SAID = ("message", "spans", "stops", "tolerances", "nearest", "hints")
"""The fields that say what came of it."""
PROPERTIES = {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["C", "F"]}}
PARAMETERS = {"type": "object", "properties": PROPERTIES, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}]


@cache
def template_named(name: str) -> ChatTemplate:
    """Return one of the tests' templates."""
    return ChatTemplate.from_file(TEMPLATES / f"{name}.jinja")


def explanation_of(row: Mapping[str, Any]) -> Explanation:
    """Explain the output of a row."""
    return explain(template_named(row["template"]), row["output"], **{"tools": TOOLS} | row.get("with", {}))


def said(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said of a row's output."""
    data = explanation_of(row).to_dict()
    spans = ", ".join(f"{span['role']} {span['end'] - span['start']}" for span in data["spans"])
    return {key: value for key, value in {**data, "spans": spans}.items() if key in SAID and value}
