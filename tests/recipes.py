"""Rows of `tests/corpus/analysis.jsonl`: templates and the results of their analysis.

A row may name the parts of its template (`composed.parts`: `frame`, `thoughts`, `calls`) and its `oddity`; then it has
only the resulting `format`. Otherwise it has its own template and a reason (`why`), plus the expected `capabilities`,
`diagnostics` and deciding `rules`. The template is written in full (`template`), or only the part between messages of a
fixed form (`answer`, `prompt`). In these parts `c`, `r` and `calls` are content, reasoning and calls; `name(call)` and
`args(call)` write a call's parts. Additions from declared formats are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from composed.composition import Recipe, template
from rendering_rows import template_of
from tables import CORPUS, case_rows

from unrender.analysis import Analysis, analyze, derivation
from unrender.format.data import plain_data

ANALYSIS = CORPUS / "analysis.jsonl"
rows_of = case_rows
UNEXPECTED = derivation.UNEXPECTED
"""Prefix of diagnostics that report a bug in the analysis."""
DERIVED = ("format", "capabilities", "rules", "diagnostics")
"""Fields of a row that are derived from its template."""
_MESSAGES = (
    "{% macro name(call) %}{{ call.function.name }}{% endmacro %}"
    "{% macro args(call) %}{{ call.function.arguments | tojson }}{% endmacro %}"
    "{% for m in messages %}{% set c, r, calls = m.content or '', m.reasoning_content, m.tool_calls or [] %}"
    "{% if m.role == 'assistant' %}ANSWER{% else %}<{{ m.role }}>{{ c }}</u>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}PROMPT{% endif %}"
)


def derived(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of analysing a row's template, as data."""
    analysis = analyze(template_of(_source(row), bos_token="<s>", eos_token="</s>"))
    format = replace(analysis.format, tolerated=(), spellings=(), ignored=(), declared=(), preserved_tokens=())
    data = {"format": {key: value for key, value in format.to_dict().items() if key != "version"}}
    return data if "frame" in row else data | _learnt(analysis)


def _source(row: Mapping[str, Any]) -> str:
    if "frame" in row:
        parts = {key: row.get(key, "") for key in ("frame", "thoughts", "calls", "oddity")}
        return template(Recipe(**parts))
    written: str = row.get("template") or _MESSAGES.replace("ANSWER", row["answer"])
    return written.replace("PROMPT", row.get("prompt", "<bot>"))


def _learnt(analysis: Analysis) -> dict[str, Any]:
    """Return non-default capabilities, rules used in comparisons, and diagnostics without quoted text."""
    return {
        "capabilities": plain_data(analysis.capabilities),
        "rules": {item.comparison: item.rule for item in analysis.evidence if item.rule},
        "diagnostics": [text.partition("'")[0] for text in analysis.diagnostics],
    }
