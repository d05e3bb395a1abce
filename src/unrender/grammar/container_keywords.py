"""The keywords of lists and objects → their shapes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from unrender.errors import GrammarError
from unrender.grammar import shapes
from unrender.grammar.places import Context, Excluded, Place, Places, size_of
from unrender.grammar.scalar_keywords import read_text
from unrender.grammar.shapes import Anything, Nothing, Property, Shape, Text


def read_array(places: Places, _excluded: Excluded, context: Context) -> Shape:
    """Return the shape of the lists that are allowed."""
    least, most = size_of(places, "minItems", "maxItems", context)
    lists = [_array_parts(place, context) for place in places]
    longest = max((len(prefix) for prefix, _ in lists), default=0)
    prefix = [
        context.child(tuple(_item(parts, at) for parts in lists if _item(parts, at).schema is not True))
        for at in range(longest)
    ]
    items = context.child(tuple(rest for _, rest in lists if rest.schema is not True))
    for at, shape in enumerate(prefix):
        if isinstance(shape, Nothing):
            prefix, items = prefix[:at], Nothing()
            break
    if isinstance(items, Nothing):
        most = len(prefix) if most is None else min(most, len(prefix))
    if most is not None and least > most:
        return Nothing()
    return shapes.Array(prefix=tuple(prefix[:most]), items=items, minimum=least, maximum=most)


def _item(parts: tuple[list[Place], Place], at: int) -> Place:
    prefix, rest = parts
    return prefix[at] if at < len(prefix) else rest


def _array_parts(place: Place, context: Context) -> tuple[list[Place], Place]:
    """Return the places of the first items and of all others; `items` as a list is the old `prefixItems`."""
    anything = Place(True, place.path)
    first = "prefixItems" if "prefixItems" in place.mapping else "items"
    other = "items" if first == "prefixItems" else "additionalItems"
    if isinstance(place.get(first), list | tuple):
        return place.each(first), place.at(other) if other in place.mapping else anything
    if first == "prefixItems":
        context.report(place.path, "prefixItems", f"a list is expected, found {place.get(first)!r:.40}")
    return [], place.at("items") if "items" in place.mapping else anything


def read_object(places: Places, _excluded: Excluded, context: Context) -> Shape:
    """Return the shape of the objects that are allowed."""
    names = dict.fromkeys(name for place in places for name in _mapping(place, "properties"))
    required = dict.fromkeys(name for place in places for name in _required(place))
    words = ("properties", "unevaluatedProperties")
    declares = bool(required) or any(word in place.mapping for place in places for word in words)
    closed = declares and not any("additionalProperties" in place.mapping for place in places)
    properties: list[Property] = []
    for name in (*names, *(name for name in required if name not in names)):
        shape = context.child(tuple(_property_places(places, name)))
        if isinstance(shape, Nothing) and name in required:
            return Nothing()
        if not isinstance(shape, Nothing):
            properties.append(Property(name, shape, name in required))
    extra = () if closed and not _patterns(places) else _extra(places, frozenset((*names, *required)), context)
    return _counted(shapes.Object(properties=tuple(properties), extra=extra), places, context)


def _mapping(place: Place, keyword: str) -> Mapping[str, Any]:
    value = place.mapping.get(keyword, {})
    if not isinstance(value, Mapping):
        raise GrammarError(f"{place.path}/{keyword}: expected an object, found {value!r:.80}")
    return value


def _required(place: Place) -> list[str]:
    value = place.mapping.get("required", [])
    if isinstance(value, bool):
        return []
    if not isinstance(value, list | tuple):
        raise GrammarError(f"{place.path}/required: expected a list, found {value!r:.80}")
    return [str(name) for name in value]


def _property_places(places: Places, name: str) -> Iterable[Place]:
    """Yield the conjuncts of one property: declared, by pattern, or else as an additional one."""
    for place in places:
        declared = name in _mapping(place, "properties")
        by_pattern = [pattern for pattern in _mapping(place, "patternProperties") if _found(pattern, name)]
        if declared:
            yield place.at("properties", name)
        for pattern in by_pattern:
            yield place.at("patternProperties", pattern)
        if not declared and not by_pattern and "additionalProperties" in place.mapping:
            yield place.at("additionalProperties")


def _found(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return False


def _patterns(places: Places) -> list[tuple[Place, str]]:
    return [(place, pattern) for place in places for pattern in _mapping(place, "patternProperties")]


def _extra(places: Places, names: frozenset[str], context: Context) -> tuple[tuple[Text, Shape], ...]:
    """Return the shapes of the keys and values that are not declared."""
    patterns = _patterns(places)
    additional = tuple(place.at("additionalProperties") for place in places if "additionalProperties" in place.mapping)
    if not patterns:
        value = context.child(additional)
        return () if isinstance(value, Nothing) else ((_keys(places, names, context), value),)
    if not any(place.schema is False for place in additional):
        context.report(patterns[0][0].path, "additionalProperties", "keys that match no pattern are not generated")
    pairs = (
        (_pattern_keys(place, pattern, context), context.child((place.at("patternProperties", pattern),)))
        for place, pattern in patterns
    )
    return tuple((keys, value) for keys, value in pairs if not isinstance(value, Nothing))


def _pattern_keys(place: Place, pattern: str, context: Context) -> Text:
    shape = read_text((Place({"pattern": pattern}, f"{place.path}/patternProperties"),), Excluded(), context)
    return shape if isinstance(shape, Text) else Text()


def _keys(places: Places, names: frozenset[str], context: Context) -> Text:
    limits = tuple(place.at("propertyNames") for place in places if "propertyNames" in place.mapping)
    shape = context.child(limits)
    if not limits or isinstance(shape, Anything):
        return Text(excluded=names)
    if isinstance(shape, Text):
        return replace(shape, excluded=shape.excluded if shape.pattern is not None else shape.excluded | names)
    context.report(limits[0].path, "propertyNames", "only a pattern or a length holds for keys")
    return Text(excluded=names)


def _counted(shape: shapes.Object, places: Places, context: Context) -> Shape:
    """Return `shape` with `minProperties` and `maxProperties`, as far as only extra properties are counted."""
    least, most = size_of(places, "minProperties", "maxProperties", context)
    required = sum(item.required for item in shape.properties)
    optional = len(shape.properties) - required
    fits = (most is None or (not shape.extra and most >= required + optional)) and least <= required
    if fits:
        return shape
    for place in places if least > required + 1 else ():
        if place.get("minProperties") is not None:
            context.report(place.path, "minProperties", "keys that are not declared may repeat")
    if optional == 0 and (shape.extra or least <= required):
        rest = None if most is None else most - required
        return (
            Nothing()
            if rest is not None and rest < 0
            else replace(shape, minimum=max(least - required, 0), maximum=rest)
        )
    for place in places:
        for keyword in ("minProperties", "maxProperties"):
            if place.get(keyword) is not None:
                context.report(place.path, keyword, "optional properties are not counted")
    return shape
