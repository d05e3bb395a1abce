"""Validates values against shapes, and determines whether two shapes can share a value.

Rules: validation never raises, and its time is bounded. A value that is nested too deeply, or takes too many steps to validate, is
accepted.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from itertools import chain, repeat
from math import isfinite
from typing import Any

from unrender.cache import kept
from unrender.json_values import json_type
from unrender.limits import MAX_GRAMMAR_DEPTH, MAX_JUDGED, MAX_STATES
from unrender.nodes import smallest
from unrender.nodes.patterns import matches
from unrender.schema import shapes
from unrender.schema.shapes import Array, Nothing, Object, Property, Reference, Shape, Text, alternatives, sized, union

Definitions = Mapping[str, Shape]
_MAX_EXACT = 2**63


def canonical(value: Any) -> str:
    """Return `value` as JSON text. Values that are equal in JSON Schema result in the same text.

    >>> canonical({"b": 1.0, "a": None})
    '{"a": null, "b": 1}'
    """
    return _written_in_order(_normal(value))


def as_json(value: Any) -> str:
    """Return `value` as JSON text. Integers are written without a fraction, and the order of keys is kept."""
    return _written(_normal(value))


# Use one encoder, because `json.dumps` would create a new one for each value of an enum.
_written = json.JSONEncoder(ensure_ascii=False).encode
_written_in_order = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode


def _normal(value: Any) -> Any:
    # In JSON Schema, 1.0 equals 1. Very large floats aren't exact, so they aren't written as integers.
    if isinstance(value, float) and value.is_integer() and abs(value) < _MAX_EXACT:
        return int(value)
    if isinstance(value, list | tuple):
        return [_normal(item) for item in value]
    return {key: _normal(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def admits(shape: Shape, value: Any, definitions: Definitions) -> bool:
    """Return whether `value`, which is JSON data, has this shape."""
    return _Judge(definitions).admits(shape, value, 0)


@dataclass(slots=True)
class _Judge:
    """Validates one value. Each object or list is checked once per shape."""

    definitions: Definitions
    steps: int = 0
    known: dict[tuple[int, int], bool] = field(default_factory=dict)

    def admits(self, shape: Shape, value: Any, depth: int) -> bool:
        self.steps += 1
        if depth > MAX_GRAMMAR_DEPTH or self.steps > MAX_JUDGED:
            return True
        match shape:
            case shapes.Anything():
                return True
            case shapes.Union(options):
                return any(self.admits(option, value, depth) for option in options)
            case Reference(name):
                return self.admits(self.definitions.get(name, shapes.Anything()), value, depth)
            case shapes.Object() | shapes.Array():
                # Nested `anyOf`s repeat the same checks, so results are cached. Ids can be used as keys, because they stay unique while the
                # value exists.
                key = id(shape), id(value)
                if key in self.known:
                    return self.known[key]
                if isinstance(shape, Object):
                    found = isinstance(value, Mapping) and self.object(shape, value, depth + 1)
                else:
                    found = isinstance(value, list) and self.array(shape, value, depth + 1)
                self.known[key] = found
                return found
        return _admits_scalar(shape, value)

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
        # The limits of an object apply only to extra keys, since the reader has subtracted the declared ones.
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


def _counts(low: int | None, high: int | None, count: float) -> bool:
    return (low is None or low <= count) and (high is None or count <= high)


def _admits_number(shape: shapes.Integer | shapes.Number, value: float) -> bool:
    if isinstance(shape, shapes.Integer):
        return value % 1 == 0 and value % shape.multiple == 0 and _counts(shape.minimum, shape.maximum, value)
    # Compare decimal numbers, since floats are inexact: the float 0.1 is slightly more than 0.1.
    exact = value if isinstance(value, int) else Decimal(repr(value))
    if not within_bounds(shape, exact) or (shape.fractional and value % 1 == 0):
        return False
    if shape.parts is not None:
        return (Fraction(exact) * shape.parts).denominator == 1
    return shape.places is None or _places(exact) <= shape.places


def within_bounds(shape: shapes.Number, value: int | Decimal) -> bool:
    """Return whether a number is within the bounds of `shape`."""
    low, high = shape.minimum, shape.maximum
    above = low is None or (value > low if shape.exclusive_minimum else value >= low)
    return above and (high is None or (value < high if shape.exclusive_maximum else value <= high))


def _places(number: int | Decimal) -> int:
    """Return the number of digits after the decimal point: 2 for 0.25, 0 for 100 and 1E+30."""
    exponent = number.normalize().as_tuple().exponent if isinstance(number, Decimal) else 0
    return max(-exponent, 0) if isinstance(exponent, int) else 0


def exclusive(options: list[Shape], definitions: Definitions) -> bool:
    """Return True if no value has more than one of these shapes.

    False may also mean that the comparison would be too expensive.
    """
    constants = [option.json for option in options if isinstance(option, shapes.Constant)]
    others = [option for option in options if not isinstance(option, shapes.Constant)]
    if len(others) * len(options) > MAX_STATES or len(set(map(_canonical_text, constants))) < len(constants):
        return False
    pairs = [(a, b) for at, a in enumerate(others) for b in (*others[:at], *map(shapes.Constant, constants))]
    return all(disjoint(a, b, definitions) for a, b in pairs)


def disjoint(left: Shape, right: Shape, definitions: Definitions) -> bool:
    """Return True if no value has both shapes.

    False may also mean that the comparison would be too expensive.
    """
    lefts, rights = (
        list(alternatives(definitions.get(shape.name, shapes.Anything()) if isinstance(shape, Reference) else shape))
        for shape in (left, right)
    )
    if len(lefts) * len(rights) > MAX_STATES:
        return False
    return all(_disjoint(a, b, definitions) for a in lefts for b in rights)


def _disjoint(left: Shape, right: Shape, definitions: Definitions) -> bool:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, shapes.Constant):
            return not admits(other, one.value, definitions)
    # Values of different types are never equal. `Integer` and `Number` may share a value, 2 for example, so both count as numbers.
    kinds = {_KINDS.get(type(shape), "").replace("integer", "number") for shape in (left, right)}
    if "" in kinds:
        return False
    if len(kinds) == 2:
        return True
    return isinstance(left, Object) and isinstance(right, Object) and _told_apart(left, right, definitions)


def _told_apart(left: Object, right: Object, definitions: Definitions) -> bool:
    """Return True if both objects require the same property, but with different constants."""
    # For example, `{"kind": "cat", ...}` and `{"kind": "dog", ...}` require different constants for `kind`.
    theirs = {item.name: item.shape for item in right.properties if item.required}
    for own, other in [(item.shape, theirs.get(item.name)) for item in left.properties if item.required]:
        constants = (
            isinstance(shape, shapes.Constant) for side in (own, other) if side for shape in alternatives(side)
        )
        if other and all(constants) and disjoint(own, other, definitions):
            return True
    return False


TYPES = frozenset(("object", "array", "string", "number", "integer", "boolean", "null"))

_KINDS: Mapping[type[Shape], str] = {
    shapes.Null: "null",
    shapes.Boolean: "boolean",
    shapes.Integer: "integer",
    shapes.Number: "number",
    shapes.Text: "string",
    shapes.Array: "array",
    shapes.Object: "object",
}


def options_of(shape: Shape, definitions: Definitions) -> Iterator[Shape]:
    """Yield the options of `shape`, with its `Union`s and `Reference`s resolved."""
    seen: set[str] = set()
    todo = [shape]
    while todo:
        match todo.pop(0):
            case shapes.Union(options):
                todo[:0] = options
            case shapes.Reference(name) if name not in seen:
                seen.add(name)
                todo.insert(0, definitions.get(name, shapes.Anything()))
            case shapes.Reference() | shapes.Nothing():
                pass
            case found:
                yield found


def kinds_of(shape: Shape, definitions: Definitions) -> frozenset[str]:
    """Return the JSON Schema types of the values of `shape`. An integer in an `enum` counts as `integer`.

    >>> sorted(kinds_of(shapes.Union((shapes.Null(), shapes.Constant("7"))), {}))
    ['integer', 'null']
    """
    found: set[str] = set()
    for option in options_of(shape, definitions):
        match option:
            case shapes.Anything():
                return TYPES
            case shapes.Constant():
                found.add(kind_of(option.value))
            case _:
                found.add(_KINDS[type(option)])
    return frozenset(found)


def kind_of(value: object) -> str:
    """Return the narrowest JSON Schema type of a value."""
    kind = json_type(value)
    whole = kind == "number" and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
    return "integer" if whole else kind


def shapes_inside(shape: Shape, key: str | None, definitions: Definitions) -> Shape:
    """Return the shape of a nested value: of the property `key`, or of the items if `key` is None.

    Returns `Nothing` if no value of `shape` has such a property or items.
    """
    return union([part for option in options_of(shape, definitions) for part in _parts(option, key)])


def _parts(shape: Shape, key: str | None) -> Iterable[Shape]:
    match shape:
        case shapes.Anything():
            return [shape]
        case shapes.Array() if key is None:
            return (*shape.prefix, shape.items)
        case shapes.Object() if key is not None:
            declared = [item.shape for item in shape.properties if item.name == key]
            return declared or [value for keys, value in shape.extra if admits_text(keys, key)] or [shape.others]
    return []


def finite_definitions(definitions: Definitions) -> dict[str, Shape]:
    """Return the definitions that at least one finite value matches."""
    # A list that must contain a list like itself has no finite values, and neither has a list that must contain such a list.
    ending = smallest(definitions, _ends)
    if len(ending) == len(definitions):
        return dict(definitions)
    return {name: without_endless(definitions[name], ending) for name in definitions if name in ending}


def without_endless(shape: Shape, ending: Collection[str]) -> Shape:
    """Return a copy of `shape` in which references to definitions outside `ending` are replaced by `Nothing`."""
    match shape:
        case Reference(name) if name not in ending:
            return Nothing()
        case shapes.Union(options):
            return union([without_endless(option, ending) for option in options])
        case Array():
            prefix = [without_endless(item, ending) for item in shape.prefix]
            return sized(shape, prefix, without_endless(shape.items, ending), shape.minimum, shape.maximum)
        case Object():
            return _object(shape, ending)
    return shape


def _ends(shape: Shape, ending: frozenset[str]) -> bool:
    """Return whether a finite value has this shape. `ending` contains the definitions for which a finite value is known to exist."""
    match shape:
        case Nothing():
            return False
        case Reference(name):
            return name in ending
        case shapes.Union(options):
            return any(_ends(option, ending) for option in options)
        case Array(prefix=prefix, items=items, minimum=least):
            items = shape.contained.wanted if shape.contained else items
            needed = (*prefix[:least], *([items] if least > len(prefix) else []))
            return all(_ends(item, ending) for item in needed)
        case Object(properties=properties, extra=extra, minimum=least):
            required = all(_ends(item.shape, ending) for item in properties if item.required)
            return required and (least == 0 or any(_ends(value, ending) for _, value in extra))
    return True


def _object(shape: Object, ending: Collection[str]) -> Shape:
    properties = [Property(item.name, without_endless(item.shape, ending), item.required) for item in shape.properties]
    if any(item.required and isinstance(item.shape, Nothing) for item in properties):
        return Nothing()
    kept = tuple(item for item in properties if not isinstance(item.shape, Nothing))
    extra = tuple((keys, without_endless(value, ending)) for keys, value in shape.extra)
    extra = tuple((keys, value) for keys, value in extra if not isinstance(value, Nothing))
    return Nothing() if shape.minimum and not extra else replace(shape, properties=kept, extra=extra)
