"""Decides whether a shape admits a JSON value, and whether two shapes can share one.

Rules: any value is judged without an exception, in bounded time: what is too deep, or takes too many steps, is admitted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain, repeat
from math import isfinite
from typing import Any

from unrender.cache import kept
from unrender.limits import MAX_COMPARISONS, MAX_JUDGED, MAX_VALUE_DEPTH
from unrender.nodes.patterns import matches
from unrender.schema import shapes
from unrender.schema.shapes import Object, Reference, Shape, Text, alternatives

Definitions = Mapping[str, Shape]
_MAX_EXACT = 2**63


def canonical(value: Any) -> str:
    """Return `value` as JSON text; values that JSON Schema calls equal give equal text.

    >>> canonical({"b": 1.0, "a": None})
    '{"a": null, "b": 1}'
    """
    return json.dumps(_normal(value), ensure_ascii=False, sort_keys=True)


def as_json(value: Any) -> str:
    """Return `value` as JSON text. Whole numbers have no fraction, and keys keep their order."""
    return json.dumps(_normal(value), ensure_ascii=False)


def _normal(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < _MAX_EXACT:
        return int(value)
    if isinstance(value, list | tuple):
        return [_normal(item) for item in value]
    return {key: _normal(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def admits(shape: Shape, value: Any, definitions: Definitions) -> bool:
    """Return whether `value`, plain JSON data, has this shape."""
    return _Judge(definitions).admits(shape, value, 0)


@dataclass(slots=True)
class _Judge:
    """Judges one value; a container is judged once by each shape."""

    definitions: Definitions
    steps: int = 0
    known: dict[tuple[int, int], bool] = field(default_factory=dict)

    def admits(self, shape: Shape, value: Any, depth: int) -> bool:
        self.steps += 1
        if depth > MAX_VALUE_DEPTH or self.steps > MAX_JUDGED:
            return True
        match shape:
            case shapes.Anything():
                return True
            case shapes.Union(options):
                return any(self.admits(option, value, depth) for option in options)
            case Reference(name):
                return self.admits(self.definitions.get(name, shapes.Anything()), value, depth)
            case shapes.Object() | shapes.Array():
                key = id(shape), id(value)
                if key not in self.known:
                    self.known[key] = self.container(shape, value, depth + 1)
                return self.known[key]
        return _admits_scalar(shape, value)

    def container(self, shape: Object | shapes.Array, value: Any, depth: int) -> bool:
        if isinstance(shape, Object):
            return isinstance(value, Mapping) and self.object(shape, value, depth)
        return isinstance(value, list) and self.array(shape, value, depth)

    def array(self, shape: shapes.Array, value: list[Any], depth: int) -> bool:
        if not _counts(shape.minimum, shape.maximum, len(value)):
            return False
        if shape.contained:
            wanted = sum(self.admits(shape.contained.wanted, item, depth) for item in value)
            if not _counts(shape.contained.minimum, shape.contained.maximum, wanted):
                return False
        expected = chain(shape.prefix, repeat(shape.items))
        return all(self.admits(item, part, depth) for item, part in zip(expected, value, strict=False))

    def object(self, shape: Object, value: Mapping[str, Any], depth: int) -> bool:
        named = {item.name: item for item in shape.properties}
        if any(item.required and item.name not in value for item in shape.properties):
            return False
        extra = [key for key in value if key not in named]
        if not _counts(shape.minimum, shape.maximum, len(extra)):
            return False
        known = all(self.admits(named[key].shape, value[key], depth) for key in value if key in named)
        return known and all(self.extra(shape, key, value[key], depth) for key in extra)

    def extra(self, shape: Object, key: str, value: Any, depth: int) -> bool:
        found = [item for keys, item in shape.extra if admits_text(keys, key)] or [shape.others]
        return any(self.admits(item, value, depth) for item in found)


def _admits_scalar(shape: Shape, value: Any) -> bool:
    match shape:
        case shapes.Constant(text):
            return canonical(value) == _canonical_text(text)
        case shapes.Null():
            return value is None
        case shapes.Boolean():
            return isinstance(value, bool)
        case shapes.Text() if isinstance(value, str):
            return admits_text(shape, value)
        case shapes.Integer() | shapes.Number() if isinstance(value, int | float) and not isinstance(value, bool):
            return isfinite(value) and _admits_number(shape, value)
    return False


@kept(lambda text: 200 + 2 * len(text))
def _canonical_text(text: str) -> str:
    return canonical(json.loads(text))


def admits_text(shape: Text, value: str) -> bool:
    """Return whether a string has this shape."""
    if value in shape.excluded or not _counts(shape.minimum, shape.maximum, len(value)):
        return False
    return shape.pattern is None or matches(shape.pattern, value)


def _counts(low: int, high: int | None, count: int) -> bool:
    return low <= count and (high is None or count <= high)


def _admits_number(shape: shapes.Integer | shapes.Number, value: float) -> bool:
    if isinstance(shape, shapes.Integer):
        return value % 1 == 0 and value % shape.multiple == 0 and _within(shape.minimum, shape.maximum, value)
    low, high = shape.minimum, shape.maximum
    exact = value if isinstance(value, int) else Decimal(repr(value))
    above = low is None or (exact > low if shape.exclusive_minimum else exact >= low)
    below = high is None or (exact < high if shape.exclusive_maximum else exact <= high)
    whole = shape.fractional and value % 1 == 0
    return above and below and not whole and (shape.places is None or _places(exact) <= shape.places)


def _within(low: int | None, high: int | None, value: float) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def _places(number: int | Decimal) -> int:
    """Return how many digits are after the point."""
    exponent = number.normalize().as_tuple().exponent if isinstance(number, Decimal) else 0
    return max(-exponent, 0) if isinstance(exponent, int) else 0


_OWN = (shapes.Null, shapes.Boolean, shapes.Number, shapes.Text, shapes.Array, shapes.Object)
_KINDS: Mapping[type[Shape], type[Shape]] = {shapes.Integer: shapes.Number, **{kind: kind for kind in _OWN}}
"""Shapes whose values have one type, and which shapes have the same."""


def exclusive(options: list[Shape], definitions: Definitions) -> bool:
    """Return whether it is certain that no value has two of these shapes.

    False may also mean that finding out would cost too much.
    """
    constants = [option.json for option in options if isinstance(option, shapes.Constant)]
    others = [option for option in options if not isinstance(option, shapes.Constant)]
    if len(others) * len(options) > MAX_COMPARISONS or len(set(map(_canonical_text, constants))) < len(constants):
        return False
    pairs = [(a, b) for at, a in enumerate(others) for b in (*others[:at], *map(shapes.Constant, constants))]
    return all(disjoint(a, b, definitions) for a, b in pairs)


def disjoint(left: Shape, right: Shape, definitions: Definitions) -> bool:
    """Return whether it is certain that no value has both shapes.

    False may also mean that finding out would cost too much.
    """
    lefts, rights = (list(alternatives(_resolved(shape, definitions))) for shape in (left, right))
    if len(lefts) * len(rights) > MAX_COMPARISONS:
        return False
    return all(_disjoint(a, b, definitions) for a in lefts for b in rights)


def _resolved(shape: Shape, definitions: Definitions) -> Shape:
    return definitions.get(shape.name, shapes.Anything()) if isinstance(shape, Reference) else shape


def _disjoint(left: Shape, right: Shape, definitions: Definitions) -> bool:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, shapes.Constant):
            return not admits(other, one.value, definitions)
    kinds = _KINDS.get(type(left)), _KINDS.get(type(right))
    if None in kinds:
        return False
    if kinds[0] != kinds[1]:
        return True
    return isinstance(left, Object) and isinstance(right, Object) and _told_apart(left, right, definitions)


def _told_apart(left: Object, right: Object, definitions: Definitions) -> bool:
    """Return True when a property that both require has different values."""
    theirs = {item.name: item.shape for item in right.properties if item.required}
    pairs = ((item.shape, theirs[item.name]) for item in left.properties if item.required and item.name in theirs)
    return any(_constants_differ(one, other, definitions) for one, other in pairs)


def _constants_differ(left: Shape, right: Shape, definitions: Definitions) -> bool:
    constants = (isinstance(shape, shapes.Constant) for side in (left, right) for shape in alternatives(side))
    return all(constants) and disjoint(left, right, definitions)
