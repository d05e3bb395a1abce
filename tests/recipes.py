"""Rows of `tests/corpus/analysis.jsonl` ↔ templates that are made of parts, and the format that is derived from each.

A row names its parts (`composed.parts`: `frame`, `thoughts`, `calls`) and its `oddity`, and has the `format` that comes out, without
what declared formats add. Each part is in at least one row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from composed.composition import Recipe, template

from unrender.analysis import analyze
from unrender.rendering.template import Template

ANALYSIS = Path(__file__).parent / "corpus" / "analysis.jsonl"


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def derived(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the format of the template that a row stands for, as data."""
    recipe = Recipe(frame=row["frame"], thoughts=row["thoughts"], calls=row["calls"], oddity=row.get("oddity", ""))
    format = analyze(Template(template(recipe), bos_token="<s>", eos_token="</s>")).format
    data = replace(format, tolerated=(), spellings=(), ignored=(), declared=(), preserved_tokens=()).to_dict()
    return {key: value for key, value in data.items() if key != "version"}
