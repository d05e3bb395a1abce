"""A shape and a JSON value → whether the shape admits the value, and whether two shapes can share one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

from unrender.grammar import shapes
from unrender.grammar.nodes import Node
from unrender.grammar.regex import write_pattern
from unrender.grammar.shapes import Object, Reference, Shape, Text, alternatives

Definitions = Mapping[str, Shape]


def canonical(value: Any) -> str:
    """Return `value` as JSON text; equal values give equal text."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False)


def admits(shape: Shape, value: Any, definitions: Definitions) -> bool:
    """Return whether `value`, plain JSON data, has this shape."""
    match shape:
        case shapes.Anything():
            return True
        case shapes.Nothing():
            return False
        case shapes.Constant(text):
            return canonical(value) == text
        case shapes.Union(options):
            return any(admits(option, value, definitions) for option in options)
        case shapes.Reference(name):
            return admits(definitions.get(name, shapes.Anything()), value, definitions)
        case shapes.Object() if isinstance(value, Mapping):
            return _admits_object(shape, value, definitions)
        case shapes.Array() if isinstance(value, list):
            return _admits_array(shape, value, definitions)
    return _admits_scalar(shape, value)


def _admits_scalar(shape: Shape, value: Any) -> bool:
    match shape:
        case shapes.Null():
            return value is None
        case shapes.Boolean():
            return isinstance(value, bool)
        case shapes.Text() if isinstance(value, str):
            return admits_text(shape, value)
        case shapes.Integer() if isinstance(value, int | float) and not isinstance(value, bool):
            return value == int(value) and value % shape.multiple == 0 and _within(shape.minimum, shape.maximum, value)
        case shapes.Number() if isinstance(value, int | float) and not isinstance(value, bool):
            return _admits_number(shape, value)
    return False


def admits_text(shape: Text, value: str) -> bool:
    """Return whether a string has this shape."""
    if not shape.minimum <= len(value) <= (len(value) if shape.maximum is None else shape.maximum):
        return False
    return value not in shape.excluded and (shape.pattern is None or matches(shape.pattern, value))


def matches(pattern: Node, text: str) -> bool:
    """Return whether `pattern` generates `text`."""
    return _compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: Node) -> re.Pattern[str]:
    return re.compile(write_pattern(pattern))


def _within(low: int | None, high: int | None, value: float) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def _admits_number(shape: shapes.Number, value: float) -> bool:
    exact = Decimal(str(value))
    low, high = shape.minimum, shape.maximum
    above = low is None or (exact > low if shape.exclusive_minimum else exact >= low)
    below = high is None or (exact < high if shape.exclusive_maximum else exact <= high)
    return above and below and (shape.places is None or exact == round(exact, shape.places))


def _admits_array(shape: shapes.Array, value: list[Any], definitions: Definitions) -> bool:
    if not shape.minimum <= len(value) <= (len(value) if shape.maximum is None else shape.maximum):
        return False
    expected = [*shape.prefix, *[shape.items] * (len(value) - len(shape.prefix))]
    return all(admits(item, part, definitions) for item, part in zip(expected, value, strict=False))


def _admits_object(shape: Object, value: Mapping[str, Any], definitions: Definitions) -> bool:
    named = {item.name: item for item in shape.properties}
    if any(item.required and item.name not in value for item in shape.properties):
        return False
    extra = [key for key in value if key not in named]
    if not shape.minimum <= len(extra) <= (len(extra) if shape.maximum is None else shape.maximum):
        return False
    known = all(admits(named[key].shape, value[key], definitions) for key in value if key in named)
    return known and all(
        any(admits_text(keys, key) and admits(item, value[key], definitions) for keys, item in shape.extra)
        for key in extra
    )


_KINDS = {
    shapes.Null: "null",
    shapes.Boolean: "boolean",
    shapes.Integer: "number",
    shapes.Number: "number",
    shapes.Text: "string",
    shapes.Array: "array",
    shapes.Object: "object",
}


def disjoint(left: Shape, right: Shape, definitions: Definitions) -> bool:
    """Return True when it is certain that no value has both shapes."""
    return all(
        _disjoint(a, b, definitions)
        for a in alternatives(_resolved(left, definitions))
        for b in alternatives(_resolved(right, definitions))
    )


def _resolved(shape: Shape, definitions: Definitions) -> Shape:
    return definitions.get(shape.name, shapes.Anything()) if isinstance(shape, Reference) else shape


def _disjoint(left: Shape, right: Shape, definitions: Definitions) -> bool:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, shapes.Constant):
            # Objects are read as closed, so that one which is not admitted may still obey the schema.
            closed = one.json.startswith("{") and isinstance(other, Object)
            return not closed and not admits(other, json.loads(one.json), definitions)
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
