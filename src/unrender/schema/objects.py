"""Reads the keywords of objects into their shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from unrender.errors import GrammarError
from unrender.limits import MAX_EXCLUDED_WORD, MAX_KEY_PATTERNS
from unrender.nodes import Choice, Literal, Node, Sequence
from unrender.nodes.patterns import UnsupportedPattern, choice, matches, read_pattern
from unrender.schema import shapes
from unrender.schema.admission import admits
from unrender.schema.conjuncts import ABSENT, MEMBERS
from unrender.schema.places import Context, Excluded, Place, Places, pointer, shown, size_of
from unrender.schema.scalars import read_text
from unrender.schema.shapes import Anything, Nothing, Property, Shape, Text, alternatives, union


@dataclass(frozen=True, slots=True)
class _Scope:
    """What one subschema says of an object's properties, and which of them `rest` leaves alone."""

    place: Place
    names: frozenset[str]
    patterns: tuple[str, ...]
    rest: Place | None


def read_object(places: Places, _excluded: Excluded, context: Context) -> Shape:
    """Return the shape of the objects that are allowed."""
    scopes = [_scope(place, places, context) for place in places]
    members = [name for place in places for name in _mapping(place, MEMBERS)]
    required = dict.fromkeys([*(name for place in places for name in _required(place)), *members])
    absent = {name for place in places for name in _strings(place.get(ABSENT))}
    names = dict.fromkeys([*(name for place in places for name in _mapping(place, "properties")), *required])
    keys = _key_shape(places, context)
    properties: list[Property] = []
    for name in names:
        impossible = name in absent or not (keys is None or admits(keys, name, {}))
        shape = Nothing() if impossible else context.child(tuple(_property_places(scopes, name)))
        if isinstance(shape, Nothing) and name in required:
            return Nothing()
        if not isinstance(shape, Nothing):
            properties.append(Property(name, shape, name in required))
    extra, others = _extra(places, scopes, frozenset((*names, *absent)), context)
    if _is_closed(places, scopes):
        extra, others = (), Anything()
    if any("maxProperties" in place.mapping for place in places):
        others = Nothing()
    shape = shapes.Object(properties=tuple(properties), extra=extra, others=others)
    return _counted(shape, places, context)


def _is_closed(places: Places, scopes: list[_Scope]) -> bool:
    """Return whether an object declares its properties and does not say that there may be others."""
    words = ("properties", "required")
    declares = any(place.mapping.get(word) is not None for place in places for word in words)
    return declares and not any(scope.rest or scope.patterns for scope in scopes)


def _mapping(place: Place, keyword: str) -> Mapping[str, Any]:
    value = place.mapping.get(keyword, {})
    if not isinstance(value, Mapping):
        raise GrammarError(f"{pointer(place.path)}/{keyword}: expected an object, found {shown(value)}")
    return value


def _strings(listed: Any) -> list[str]:
    return [name for name in listed or () if isinstance(name, str)]


def _required(place: Place) -> list[str]:
    value = place.mapping.get("required", [])
    if isinstance(value, bool):
        return []
    if not isinstance(value, list | tuple):
        raise GrammarError(f"{pointer(place.path)}/required: expected a list, found {shown(value)}")
    return _strings(value)


def _scope(place: Place, places: Places, context: Context) -> _Scope:
    names, patterns = _named(place, "properties"), _named(place, "patternProperties")[:MAX_KEY_PATTERNS]
    if len(_mapping(place, "patternProperties")) > MAX_KEY_PATTERNS:
        context.report(place.path, "patternProperties", f"more than {MAX_KEY_PATTERNS} patterns are not read")
    if "additionalProperties" in place.mapping:
        return _Scope(place, frozenset(names), patterns, place.at("additionalProperties"))
    if "unevaluatedProperties" not in place.mapping:
        return _Scope(place, frozenset(names), patterns, None)
    owned = [other for other in places if other is not place and context.owns(place, other)]
    rest = _unevaluated(place, owned, context)
    also = [(_named(other, "properties"), _named(other, "patternProperties")) for other in owned]
    return _Scope(
        place,
        frozenset(names).union(*(found for found, _ in also)),
        (*patterns, *(pattern for _, found in also for pattern in found)),
        rest,
    )


def _unevaluated(place: Place, owned: list[Place], context: Context) -> Place | None:
    """Return the place of `unevaluatedProperties`; None when it has nothing left to say, or that cannot be known."""
    if any("if" in other.mapping for other in (place, *owned)) and place.get("unevaluatedProperties") is not True:
        context.report(place.path, "unevaluatedProperties", "if decides which properties are evaluated")
        return None
    ends = ("additionalProperties", "unevaluatedProperties")
    evaluated = any(word in other.mapping for other in owned for word in ends)
    return Place(True, place.path) if evaluated else place.at("unevaluatedProperties")


def _named(place: Place, keyword: str) -> tuple[str, ...]:
    found = _mapping(place, keyword)
    for name in found:
        if not isinstance(name, str):
            raise GrammarError(f"{pointer(place.path)}/{keyword}: expected names that are strings, found {shown(name)}")
    return tuple(found)


def _property_places(scopes: list[_Scope], name: str) -> Iterator[Place]:
    """Yield the conjuncts of one property: declared, by pattern, or else as an additional one."""
    for scope in scopes:
        if name in _mapping(scope.place, "properties"):
            yield scope.place.at("properties", name)
        if name in _mapping(scope.place, MEMBERS):
            yield scope.place.at(MEMBERS, name)
        own = _mapping(scope.place, "patternProperties")
        found = [pattern for pattern in scope.patterns if _found(pattern, name)]
        for pattern in found:
            if pattern in own:
                yield scope.place.at("patternProperties", pattern)
        if scope.rest and not found and name not in scope.names:
            yield scope.rest


def _found(pattern: str, name: str) -> bool:
    try:
        return matches(read_pattern(pattern), name)
    except (UnsupportedPattern, GrammarError):
        return False


_Extra = tuple[tuple[Text, Shape], ...]


def _extra(places: Places, scopes: list[_Scope], names: frozenset[str], context: Context) -> tuple[_Extra, Shape]:
    """Return the keys and values that are generated besides the declared ones, and the shape of all others."""
    value = context.child(tuple(scope.rest for scope in scopes if scope.rest))
    patterned = [scope for scope in scopes if _mapping(scope.place, "patternProperties")]
    if isinstance(_key_shape(places, context), Nothing):
        return (), Nothing()
    if not patterned:
        return (() if isinstance(value, Nothing) else ((_keys(places, names, context), value),)), Nothing()
    if not isinstance(value, Nothing):
        reason = "keys that match no pattern are not generated"
        context.report(patterned[0].place.path, "additionalProperties", reason)
    for place in places:
        if "propertyNames" in place.mapping:
            context.report(place.path, "propertyNames", "a pattern holds for the same keys")
    pairs = [pair for scope in patterned for pair in _by_pattern(scope, scopes, context)]
    return _told_apart(tuple(pairs), patterned[0].place, context), value


def _by_pattern(scope: _Scope, scopes: list[_Scope], context: Context) -> Iterator[tuple[Text, Shape]]:
    """Yield the keys of each pattern, and their values, which obey what other subschemas say of unknown keys."""
    for pattern in _named(scope.place, "patternProperties")[:MAX_KEY_PATTERNS]:
        keys = read_text((Place({"pattern": pattern}, f"{scope.place.path}/patternProperties"),), Excluded(), context)
        others = [(other, other.rest) for other in scopes if other.rest and pattern not in other.patterns]
        for other, rest in others:
            if other.patterns and rest.schema is not True:
                context.report(other.place.path, "additionalProperties", "its patterns are not compared with others'")
        rests = [rest for other, rest in others if not other.patterns]
        value = context.child((scope.place.at("patternProperties", pattern), *rests))
        if not isinstance(value, Nothing):
            yield keys if isinstance(keys, Text) else Text(), value


def _told_apart(pairs: _Extra, place: Place, context: Context) -> _Extra:
    """Return keys by pattern such that each key has one shape: patterns that may share a key become one."""
    starts = [_start(keys.pattern) for keys, _ in pairs]
    apart = all(not a.startswith(b) and not b.startswith(a) for at, a in enumerate(starts) for b in starts[:at])
    if apart or len(pairs) < 2:
        return pairs
    values = union([value for _, value in pairs])
    if values != pairs[0][1]:
        context.report(place.path, "patternProperties", "a key may match several patterns; its value obeys one of them")
    nodes = [keys.pattern for keys, _ in pairs if keys.pattern is not None]
    return ((Text(pattern=choice(nodes)) if len(nodes) == len(pairs) else Text(), values),)


def _start(pattern: Node | None) -> str:
    """Return what every text of a pattern begins with, as far as it is written out."""
    text = ""
    for part in pattern.parts if isinstance(pattern, Sequence) else ():
        if not isinstance(part, Literal):
            break
        text += part.text
    return text


def _key_shape(places: Places, context: Context) -> Shape | None:
    """Return the shape of all keys; None when the schema does not restrict them."""
    limits = tuple(place.at("propertyNames") for place in places if "propertyNames" in place.mapping)
    if not limits:
        return None
    return context.child((Place({"type": "string"}, f"{limits[0].path}/type"), *limits))


def _keys(places: Places, names: frozenset[str], context: Context) -> Text:
    """Return the shape of the keys that are not declared."""
    if any(len(name) > MAX_EXCLUDED_WORD for name in names):
        reason = f"names of more than {MAX_EXCLUDED_WORD} characters may be repeated"
        context.report(places[0].path, "additionalProperties", reason)
    shape = _key_shape(places, context)
    if shape is None or isinstance(shape, Anything):
        return Text(excluded=names)
    if isinstance(shape, Text):
        if shape.pattern is not None:
            return shape
        return replace(shape, excluded=shape.excluded | names)
    words = [option.value for option in alternatives(shape) if isinstance(option, shapes.Constant)]
    if words and len(words) == len(list(alternatives(shape))):
        return Text(pattern=Choice(tuple(Literal(word) for word in words if word not in names)))
    context.report(places[0].path, "propertyNames", "only a pattern, a length or a list of names holds for keys")
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
        low, rest = max(least - required, 0), None if most is None else most - required
        if rest is not None and rest < low:
            return Nothing()
        return replace(shape, extra=() if rest == 0 else shape.extra, minimum=low, maximum=rest)
    for place in places:
        for keyword in ("minProperties", "maxProperties"):
            if place.get(keyword) is not None:
                context.report(place.path, keyword, "optional properties are not counted")
    return shape
