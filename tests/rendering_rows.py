"""Rows of `tests/corpus/rendering/*.jsonl`: templates and their renderings.

- `expressions`: a source, its variables in `with`, and the resulting `text` or `error` (`exhausted` if a limit was
  reached); `needs`: the lowest limits of characters and items that suffice.
- `facts`: facts read from a source without rendering it.
- `shapes`: a conversation, or the `context` of a rendering, and its form for a template with these capabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from unrender import Limits
from unrender.analysis import Capabilities, ReasoningPlace, shape_context, shape_messages
from unrender.rendering import Rendering, Template

RENDERING = Path(__file__).parent / "corpus" / "rendering"
NOON = datetime(2024, 5, 17, 12, 0, tzinfo=UTC)
LONGEST = 2_000_000


def template_of(source: str, **options: Any) -> Template:
    """Return a template without a tokenizer or analysis."""
    return Template(source, **options)


def rendering_of(row: Mapping[str, Any], **limits: int) -> Rendering:
    """Render the source of a row, within limits."""
    template = Template(
        row["source"],
        clock=lambda: NOON,
        limits=Limits(rendering_seconds=60, **{f"rendering_{name}": most for name, most in limits.items()}),
    )
    return template.render([{"a": "hi"}], **row.get("with", {}))


def rendered(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rendering as a row's fields."""
    found = rendering_of(row)
    if found.error is not None:
        return {"error": found.error} | ({"exhausted": True} if found.exhausted else {})
    needs = {name: _fewest(row, name) for name in ("characters", "items")}
    return {"text": found.text, "needs": {name: count for name, count in needs.items() if count}}


def _fewest(row: Mapping[str, Any], name: str) -> int:
    low, high = 0, LONGEST
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if rendering_of(row, **{name: middle}).exhausted else (low, middle)
    return low


def facts(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts read from a row's source."""
    template = Template(row["source"])
    return {
        "variables": sorted(template.variables),
        "attributes": sorted(template.facts.attribute_names),
        "constants": list(template.facts.string_constants),
        "defaults": dict(template.facts.defaults),
    }


def shaped(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the converted conversation, or the variables, of a row."""
    given = row["capabilities"]
    place = ReasoningPlace(given.get("reasoning_place", "nowhere"))
    capabilities = Capabilities(**{**given, "reasoning_place": place})
    if "context" in row:
        return {"shaped": shape_context(capabilities=capabilities, **row["context"])}
    return {"shaped": shape_messages(row["messages"], capabilities)}
