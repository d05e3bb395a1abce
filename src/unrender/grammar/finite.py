"""Removes from shapes what no finite value has: a recursion that never ends, and all that needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from unrender.grammar import shapes
from unrender.grammar.shapes import Array, Nothing, Object, Property, Reference, Shape, union

Definitions = Mapping[str, Shape]


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
