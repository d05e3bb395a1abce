"""Reads JSON Schema into shapes of values.

The input is a client's schema of any draft. The schema may be invalid. The output is a `Reading`: frozen shapes (`shapes`), and a list of
the keywords that aren't enforced. Shapes have resolved references, merged branches and inferred types.

Open `reader` first. It visits the subschemas of a schema (`places`), rewrites keywords into simpler ones (`conjuncts`), and reads the
remaining keywords by type (`scalars`, `containers`). The other modules process finished shapes: `admission` validates values, `weights`
limits the cost, `integers` converts numeric ranges to nodes, and `writer` converts shapes to JSON Schema for engines that support it
natively.

Two rules: this package doesn't depend on formats, and a keyword that isn't enforced is reported, never dropped silently. If a schema can't
be expressed exactly, its shape accepts additional values, but never rejects a valid one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from unrender.schema.shapes import Shape
from unrender.schema.weights import Scale, Weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """A keyword that isn't enforced: its path (a JSON pointer) and the reason."""

    path: str
    keyword: str
    reason: str
    tool: str = ""

    def __str__(self) -> str:
        tool = f"tool {self.tool!r}: " if self.tool else ""
        return f"{tool}{self.path}: {self.keyword} is not enforced: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A schema converted to shapes."""

    shape: Shape
    definitions: Mapping[str, Shape]
    unsupported: tuple[Unsupported, ...]

    @cached_property
    def weight(self) -> Weight:
        """The size of the grammar for this schema."""
        return Scale().whole(self.shape, self.definitions)
