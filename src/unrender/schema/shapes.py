"""Defines shapes, which describe the JSON values that a schema allows. A shape is a frozen JSON Schema in which everything is resolved.

Shapes are independent of notation: `spelling` converts them to JSON, Python, raw text or tags.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from unrender.nodes import Node


@dataclass(frozen=True, slots=True)
class Anything:
    """Any JSON value."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """The shape that no value has."""


@dataclass(frozen=True, slots=True)
class Null:
    """`null`"""


@dataclass(frozen=True, slots=True)
class Boolean:
    """`true` or `false`"""


@dataclass(frozen=True, slots=True)
class Constant:
    """Exactly one value, stored as JSON text."""

    json: str

    @property
    def value(self) -> Any:
        """The value, parsed from its JSON text."""
        return json.loads(self.json)


@dataclass(frozen=True, slots=True, kw_only=True)
class Integer:
    """An integer between inclusive bounds that is a multiple of `multiple`."""

    minimum: int | None = None
    maximum: int | None = None
    multiple: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number between bounds. `places` limits the digits after the decimal point.

    If `parts` is set, the number is a multiple of `1 / parts`: with `parts=4`, it's a multiple of 0.25, and has up to 2 places. If
    `fractional` is True, the number is never an integer and has no bounds.
    """

    minimum: Decimal | None = None
    maximum: Decimal | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    places: int | None = None
    parts: int | None = None
    fractional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A string. Lengths count code points. `pattern` describes the complete decoded string."""

    minimum: int = 0
    maximum: int | None = None
    pattern: Node | None = None
    excluded: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """An array. `prefix` contains one shape per item, and `items` is the shape of all later items. If `contained` is set, `prefix` is empty
    and `maximum` is None.
    """

    prefix: tuple[Shape, ...] = ()
    items: Shape = field(default_factory=Anything)
    minimum: int = 0
    maximum: int | None = None
    contained: Contained | None = None


@dataclass(frozen=True, slots=True)
class Contained:
    """The number of items that must have the shape `wanted`. All other items have the shape `others`. The two shapes share no values."""

    wanted: Shape
    others: Shape
    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class Property:
    """A named property of an object."""

    name: str
    shape: Shape
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Object:
    """An object: `properties` in this order, then any number of `extra` properties.

    `minimum` and `maximum` count only extra properties. Other keys are accepted, but never generated. `others` is the shape of their
    values.
    """

    properties: tuple[Property, ...] = ()
    extra: tuple[tuple[Text, Shape], ...] = ()
    minimum: int = 0
    maximum: int | None = None
    others: Shape = field(default_factory=Nothing)


@dataclass(frozen=True, slots=True)
class Union:
    """One of several shapes."""

    options: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """The shape with this name in `Reading.definitions`. Only recursive shapes are named."""

    name: str


Shape = Anything | Nothing | Null | Boolean | Constant | Integer | Number | Text | Array | Object | Union | Reference


def alternatives(shape: Shape) -> Iterator[Shape]:
    """Yield the options of `shape`, with nested `Union`s flattened."""
    if isinstance(shape, Union):
        for option in shape.options:
            yield from alternatives(option)
    elif not isinstance(shape, Nothing):
        yield shape


def union(options: list[Shape]) -> Shape:
    """Return one shape for a choice of `options`, without duplicates or impossible options."""
    if len(options) == 1 and not isinstance(options[0], Union):
        return options[0]
    # Options stay in the order of the schema, because a grammar tries them in this order.
    unique = list({shape_identity(shape): shape for option in options for shape in alternatives(option)}.values())
    if any(isinstance(shape, Anything) for shape in unique):
        return Anything()
    if not unique:
        return Nothing()
    return unique[0] if len(unique) == 1 else Union(tuple(unique))


def sized(shape: Array, prefix: list[Shape], items: Shape, minimum: int, maximum: int | None) -> Shape:
    """Return the arrays with these items and a bounded length. An impossible item ends the array."""
    # `prefixItems: [{}, false]` allows at most one item, so `items` is never used.
    cut = next((at for at, item in enumerate(prefix) if isinstance(item, Nothing)), None)
    prefix, items = (prefix, items) if cut is None else (prefix[:cut], Nothing())
    if isinstance(items, Nothing):
        maximum = len(prefix) if maximum is None else min(maximum, len(prefix))
    if maximum is not None and minimum > maximum:
        return Nothing()
    return replace(shape, prefix=tuple(prefix[:maximum]), items=items, minimum=minimum, maximum=maximum)


def shape_identity(shape: Shape) -> object:
    """Return a key for comparing shapes. Arrays and objects may share many parts, so they're compared by identity."""
    return id(shape) if isinstance(shape, (Array, Object)) else shape
