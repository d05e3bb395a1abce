"""Computes the size of shapes before they are converted to grammars.

Schemas from clients may be large, deep, and heavily shared. The size of a schema's grammar rules is therefore computed before any rule is
created. Each shape is measured only once, even if it's used several times. `reader.within` loosens the schemas of tools that exceed the
limits.

Rules: no measurement depends on time, so equal requests always result in equal grammars.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from unrender.cache import kept
from unrender.limits import MAX_COMPARED, Limits
from unrender.nodes import Literal, Node, walk
from unrender.nodes.texts import branches
from unrender.schema import shapes
from unrender.schema.integers import numeric
from unrender.schema.shapes import Array, Contained, Integer, Number, Object, Shape, Text, Union

_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"')
_PARTS_PER_BRANCH = 10
"""Estimated number of grammar parts for each position at which a text may differ from an excluded string."""


class Weight(NamedTuple):
    """The size of a shape's grammar: its parts, its characters, and its nesting depth."""

    parts: int = 1
    characters: int = 0
    depth: int = 0

    def above(self, below: Weight) -> Weight:
        """Return the sum of this weight and the weight of a nested shape."""
        return Weight(self.parts + below.parts, self.characters + below.characters, max(self.depth, below.depth + 1))

    def too_much(self, limits: Limits) -> str:
        """Return a description of the first exceeded limit; "" if there is none."""
        bounds = (
            (self.depth, limits.tool_depth, "levels"),
            (self.parts, limits.tool_parts, "parts"),
            (self.characters, limits.tool_characters, "characters"),
        )
        return next((f"it has {found} {name}, more than {most}" for found, most, name in bounds if found > most), "")


@dataclass(slots=True)
class Scale:
    """Measures each shape of one schema once."""

    known: dict[int, Weight] = field(default_factory=dict)
    kept: list[Shape] = field(default_factory=list)
    """Measured shapes, kept alive so that their ids aren't reused."""
    ranges: int = 0
    """Total number of grammar parts of all numeric ranges so far."""

    def weigh(self, shape: Shape) -> Weight:
        """Return the weight of a shape, without the targets of references."""
        # The recursion is bounded, since the reader limits nesting to `MAX_SCHEMA_DEPTH`.
        known = self.known.get(id(shape))
        if known is None:
            known = self.known[id(shape)] = self._weighed(shape)
            self.kept.append(shape)
        return known

    def _weighed(self, shape: Shape) -> Weight:
        if isinstance(shape, Integer | Number):
            return self._range(shape)
        parts, characters, depth = _alone(shape)
        if isinstance(shape, Object | Array | Union):
            deepest = -1
            for below in _below(shape):
                weight = self.weigh(below)
                parts += weight[0]
                characters += weight[1]
                deepest = max(deepest, weight[2])
            depth = max(depth, deepest + (not isinstance(shape, Union)))
        return Weight(parts, characters, depth)

    def _range(self, shape: Integer | Number) -> Weight:
        """Return the weight of a numeric range. For example, the range from 1 to 10**17 has a few hundred parts.

        The weight can only be computed by creating the nodes of the range. After `MAX_COMPARED` parts in total, no more ranges are
        measured.
        """
        # All numbers without bounds share one rule.
        if self.ranges > MAX_COMPARED or shape in _UNBOUNDED:
            return _ONE
        weight = _written_range(shape)
        self.ranges += weight.parts
        return weight

    def whole(self, shape: Shape, definitions: Mapping[str, Shape]) -> Weight:
        """Return the weight of a complete schema. `Reading.weight` caches it."""
        weight = self.weigh(shape)
        for defined in definitions.values():
            below = self.weigh(defined)
            weight = weight.above(below)._replace(depth=max(weight.depth, below.depth))
        return weight


def _below(shape: Shape) -> tuple[Shape, ...]:
    match shape:
        case Object():
            return (*(item.shape for item in shape.properties), *(value for _, value in shape.extra))
        case Array(contained=None):
            return (*shape.prefix, shape.items)
        case Array(contained=Contained() as contained):
            return (shape.items, contained.wanted, contained.others)
        case Union(options):
            return options
    return ()


def _alone(shape: Shape) -> Weight:
    match shape:
        case Object():
            names = sum(len(item.name) for item in shape.properties)
            keys = [_alone(keys) for keys, _ in shape.extra if keys.pattern is not None or keys.excluded]
            return Weight(1 + sum(key.parts for key in keys), names + sum(key.characters for key in keys))
        case shapes.Constant(text):
            return Weight(1, len(text), _nesting(text)) if text[:1] in "[{" else Weight(1, len(text))
        case Text():
            if shape.pattern is not None:
                return _pattern(shape.pattern)
            if not shape.excluded:
                return _ONE
            return Weight(1 + _PARTS_PER_BRANCH * branches(shape.excluded), sum(map(len, shape.excluded)))
    return _ONE


@kept(300)
def _written_range(shape: Integer | Number) -> Weight:
    written = numeric(shape)
    weight = _pattern(written.node)
    for rule in written.rules.values():
        weight = weight.above(_pattern(rule))
    return weight._replace(depth=0)


_ONE = Weight()
_UNBOUNDED = (Integer(), Number())


def _pattern(pattern: Node) -> Weight:
    parts = list(walk(pattern))
    return Weight(len(parts), sum(len(part.text) for part in parts if isinstance(part, Literal)))


def _nesting(text: str) -> int:
    """Return the nesting depth of a JSON text."""
    # Brackets inside strings don't count: `{"a": ["["]}` has depth two.
    depth = most = 0
    for sign in _QUOTED.sub("", text):
        depth += (sign in "[{") - (sign in "]}")
        most = max(most, depth)
    return most
