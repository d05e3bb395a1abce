"""Finds the JSON types that the values of a shape may have, and the shapes of their parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from unrender.grammar import shapes
from unrender.grammar.admission import admits_text
from unrender.grammar.encode import json_type
from unrender.grammar.shapes import Shape, union

Definitions = Mapping[str, Shape]
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
    """Return the JSON Schema types of the values of `shape`. A whole number that is listed counts as an integer.

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


def inside(shape: Shape, key: str | None, definitions: Definitions) -> Shape:
    """Return the shape of one part in the values of `shape`: an object's property `key`, or, for None, a list's items.

    `Nothing` when no value of `shape` has such a part.
    """
    return union([part for option in options_of(shape, definitions) for part in _parts(option, key)])


def _parts(shape: Shape, key: str | None) -> Iterator[Shape]:
    match shape:
        case shapes.Anything():
            yield shape
        case shapes.Array() if key is None:
            yield from (*shape.prefix, shape.items)
        case shapes.Object() if key is not None:
            yield from _property(shape, key)


def _property(shape: shapes.Object, key: str) -> Iterator[Shape]:
    declared = next((item.shape for item in shape.properties if item.name == key), None)
    if declared is not None:
        yield declared
        return
    extra = [value for keys, value in shape.extra if admits_text(keys, key)]
    yield from extra or [shape.others]
