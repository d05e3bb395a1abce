"""Finds the JSON types that the values of a shape may have, and the shapes of their parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from unrender.messages.json_values import json_type
from unrender.schema import shapes
from unrender.schema.admission import admits_text
from unrender.schema.shapes import Array, Nothing, Object, Property, Reference, Shape, union

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


def finite_definitions(definitions: Definitions) -> dict[str, Shape]:
    """Return only the definitions that a finite value can have."""
    ending: set[str] = set()
    grown = True
    while grown:
        found = {name for name, shape in definitions.items() if _ends(shape, ending)}
        grown = found != ending
        ending = found
    if len(ending) == len(definitions):
        return dict(definitions)
    return {name: without_endless(definitions[name], ending) for name in definitions if name in ending}


def without_endless(shape: Shape, ending: Mapping[str, Shape] | set[str]) -> Shape:
    """Return `shape` where every reference to a definition outside `ending` is impossible."""
    match shape:
        case Reference(name) if name not in ending:
            return Nothing()
        case shapes.Union(options):
            return union([without_endless(option, ending) for option in options])
        case Array():
            return _array(shape, ending)
        case Object():
            return _object(shape, ending)
    return shape


def _ends(shape: Shape, ending: set[str]) -> bool:
    """Return whether a finite value has this shape, given the definitions of which that is known."""
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


def _array(shape: Array, ending: Mapping[str, Shape] | set[str]) -> Shape:
    prefix = [without_endless(item, ending) for item in shape.prefix]
    items = without_endless(shape.items, ending)
    cut = next((at for at, item in enumerate(prefix) if isinstance(item, Nothing)), None)
    if cut is not None:
        prefix, items = prefix[:cut], Nothing()
    if isinstance(items, Nothing):
        most = len(prefix) if shape.maximum is None else min(shape.maximum, len(prefix))
        if shape.minimum > most:
            return Nothing()
        return replace(shape, prefix=tuple(prefix), items=items, maximum=most)
    return replace(shape, prefix=tuple(prefix), items=items)


def _object(shape: Object, ending: Mapping[str, Shape] | set[str]) -> Shape:
    properties = [Property(item.name, without_endless(item.shape, ending), item.required) for item in shape.properties]
    if any(item.required and isinstance(item.shape, Nothing) for item in properties):
        return Nothing()
    kept = tuple(item for item in properties if not isinstance(item.shape, Nothing))
    extra = tuple((keys, without_endless(value, ending)) for keys, value in shape.extra)
    extra = tuple((keys, value) for keys, value in extra if not isinstance(value, Nothing))
    return Nothing() if shape.minimum and not extra else replace(shape, properties=kept, extra=extra)
