"""Weighs shapes before they are written.

A schema is a client's: it may be as large, as deep and as much shared as it likes. What its rules would take is worked
out before any of them is written, one step for each shape however often it is used; so nothing is ever begun that is
too much. `reader.within` widens a tool that is too much.

Rules: nothing is measured by the clock, so the same request gives the same grammar everywhere.
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
"""Parts that tell a text from a word at one of its characters: any other one, in all its spellings, and then any text."""


class Weight(NamedTuple):
    """The cost of a shape: its parts and characters when written out, and its depth of nesting."""

    parts: int = 1
    characters: int = 0
    depth: int = 0

    def above(self, below: Weight) -> Weight:
        """Return the sum of this weight and that of a shape inside it."""
        return Weight(self.parts + below.parts, self.characters + below.characters, max(self.depth, below.depth + 1))

    def too_much(self, limits: Limits) -> str:
        """Return a sentence about the first limit for one tool that is exceeded; "" when none is."""
        bounds = (
            (self.depth, limits.tool_depth, "levels"),
            (self.parts, limits.tool_parts, "parts"),
            (self.characters, limits.tool_characters, "characters"),
        )
        return next((f"it has {found} {name}, more than {most}" for found, most, name in bounds if found > most), "")


@dataclass(slots=True)
class Scale:
    """Weighs the shapes of one schema, each once."""

    known: dict[int, Weight] = field(default_factory=dict)
    kept: list[Shape] = field(default_factory=list)
    """The shapes that were weighed: their ids stay theirs."""
    ranges: int = 0
    """The parts of all ranges of numbers that were weighed."""

    def weigh(self, shape: Shape) -> Weight:
        """Return the weight of a shape. Targets of references aren't included."""
        # The reader nests shapes no deeper than `MAX_SCHEMA_DEPTH`, so this is not deep either.
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
        """Return the weight of a range, by what it is written with: `1 to 10**17` is some hundred parts.

        To write it is the only way to know; when that has shown enough to be too much, the others are not written.
        """
        # Numbers without bounds share one rule.
        if self.ranges > MAX_COMPARED or shape in _UNBOUNDED:
            return _ONE
        weight = _written_range(shape)
        self.ranges += weight.parts
        return weight

    def whole(self, shape: Shape, definitions: Mapping[str, Shape]) -> Weight:
        """Return the weight of everything in a schema; `Reading.weight` keeps it."""
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
    """Return how deep the lists and objects of a JSON text are nested."""
    # `{"a": ["["]}` is two deep: a bracket inside quotes is text.
    depth = most = 0
    for sign in _QUOTED.sub("", text):
        depth += (sign in "[{") - (sign in "]}")
        most = max(most, depth)
    return most
