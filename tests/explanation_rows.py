"""Rows of `tests/corpus/explanations.jsonl`: an output, and its explanation (spans, the failure, and hints).

A row has the `template` (from `tests/templates`), other arguments of `explain` in `with`, and the `output`. `spans` are
the role and length of each stretch, as in the rows of answers; empty fields are omitted.
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
"""The result fields of a row."""
PROPERTIES = {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["C", "F"]}}
PARAMETERS = {"type": "object", "properties": PROPERTIES, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}]


@cache
def template_named(name: str) -> ChatTemplate:
    """Return one of the test templates."""
    return ChatTemplate.from_file(TEMPLATES / f"{name}.jinja")


def explanation_of(row: Mapping[str, Any]) -> Explanation:
    """Explain a row's output."""
    return explain(template_named(row["template"]), row["output"], **{"tools": TOOLS} | row.get("with", {}))


def said(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the explanation of a row's output."""
    data = explanation_of(row).to_dict()
    spans = ", ".join(f"{span['role']} {span['end'] - span['start']}" for span in data["spans"])
    return {key: value for key, value in {**data, "spans": spans}.items() if key in SAID and value}
