"""Reads the keywords of objects and arrays into their shapes.

Strategy for objects: each conjunct has a scope, which contains its declared properties and a schema for all others. Each property of an
object must satisfy every scope.

Strategy for arrays: `contains` splits items into matching and other items, so that the matching items can be counted. If the items have few
possible values, the arrays allowed by `uniqueItems` are listed one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from unrender.errors import GrammarError
from unrender.json_values import JsonSchema
from unrender.limits import MAX_BREAKS, MAX_EXCLUDED_WORD, MAX_FEW, MAX_OPTIONS
from unrender.nodes import Choice, Literal, Node, Sequence
from unrender.nodes.patterns import UnsupportedPattern, any_pattern, matches, read_pattern
from unrender.schema import shapes
from unrender.schema.admission import TYPES, admits, admits_text, canonical, kinds_of
from unrender.schema.conjuncts import ABSENT, ITEMS, MEMBERS, excluded_schemas
from unrender.schema.places import Excluded, KeywordContext, Place, Places, size_of, value_in_words, wrong
from unrender.schema.scalars import read_text
from unrender.schema.shapes import Anything, Array, Contained, Nothing, Property, Shape, Text


def read_array(places: Places, _excluded: Excluded, context: KeywordContext) -> Shape:
    """Return the shape of the allowed arrays."""
    lists = [_array_parts(place, context) for place in places]
    lists += [_unevaluated_items(place, places, context) for place in places if "unevaluatedItems" in place.mapping]
    lists += [(place.each(ITEMS), replace(place, schema=True)) for place in places if ITEMS in place.mapping]
    longest = max((len(prefix) for prefix, _ in lists), default=0)
    items = [[first[at] if at < len(first) else rest for first, rest in lists] for at in range(longest)]
    prefix = [context.child(tuple(place for place in found if place.schema is not True)) for found in items]
    rest = tuple(rest for _, rest in lists if rest.schema is not True)
    shape = shapes.sized(Array(), prefix, context.child(rest), *size_of(places, "minItems", "maxItems", context))
    for place in places:
        if "contains" in place.mapping and isinstance(shape, Array):
            shape = _containing(shape, place, rest, context)
    unique = next((place for place in places if place.get("uniqueItems") not in (None, False)), None)
    return _unique(shape, unique, context) if unique and isinstance(shape, Array) else shape


def _containing(shape: Array, place: Place, rest: Places, context: KeywordContext) -> Shape:
    """Return the arrays of `shape` with the number of matching items that `contains` requires."""
    wanted = place.at("contains")
    # If there's no `minContains`, `contains` requires at least one matching item.
    sizes = replace(place, schema={"minContains": 1} | dict(place.mapping))
    low, high = size_of((sizes,), "minContains", "maxContains", context)
    if wanted.schema is True or wanted.schema == {}:
        least = max(shape.minimum, low)
        most = shape.maximum if high is None else high if shape.maximum is None else min(high, shape.maximum)
        return shapes.sized(shape, [*shape.prefix], shape.items, least, most)
    if low == 0 and high is None:
        return shape
    if wanted.schema is False or (high is not None and low > high):
        return Nothing() if low else shape
    # An item matches either the schema of `contains` or its complement, so matching items can be counted.
    broken = excluded_schemas(wanted.schema)
    least = max(shape.minimum, low)
    if broken is None or shape.prefix or shape.contained or shape.maximum is not None or shape.minimum > low:
        reason = "supported only if the schema can be negated, in arrays without a length and prefixItems"
        context.report(place.path, "contains", reason)
        return replace(shape, minimum=least) if shape.maximum is None or least <= shape.maximum else Nothing()
    found = context.child((*rest, wanted))
    others = context.child((*rest, wanted.made("broken", {"anyOf": [*broken, *_of_other_types(wanted, found)]})))
    # No item can match, so the array is impossible if at least one match is required.
    if isinstance(found, Nothing) or high == 0:
        return Nothing() if low else replace(shape, items=others)
    if isinstance(others, Nothing):
        return replace(shape, minimum=low, maximum=high)
    return replace(shape, minimum=low, contained=Contained(found, others, low, high))


def _of_other_types(wanted: Place, shape: Shape) -> list[JsonSchema]:
    """Return a schema for types that the keywords of `wanted` exclude implicitly; empty if it has `type`, `enum` or `const`."""
    kinds = kinds_of(shape, {})
    if kinds == TYPES or {"type", "enum", "const"} & wanted.mapping.keys():
        return []
    return [{"not": {"type": sorted(kinds)}}] if kinds else []


def _unique(shape: Array, place: Place, context: KeywordContext) -> Shape:
    """Return a choice of all arrays of `shape` that have unique items. If there are too many, `shape` itself is returned."""
    if shape.maximum is not None and shape.maximum <= 1:
        return shape
    # For example, two booleans with unique items: `[]`, `[true]`, `[false]`, `[true, false]` and `[false, true]`.
    lists = None if shape.contained else _arranged(shape)
    if lists is not None:
        return shapes.union(list(map(_listed, lists)))
    context.report(place.path, "uniqueItems", "a grammar cannot compare items")
    return shape if shape.contained else _unique_prefix(shape)


def _listed(items: tuple[str, ...]) -> Shape:
    return shapes.Constant(f"[{', '.join(items)}]")


def _unique_prefix(shape: Array) -> Shape:
    """Return the arrays of `shape` whose first items are unique, if these items have few possible values."""
    lists = _arranged(replace(shape, items=Nothing(), minimum=0))
    if not shape.prefix or lists is None:
        return shape
    # `prefixItems` of two booleans: `[true, false, …]` and `[false, true, …]`, each followed by any items.
    length = len(shape.prefix)
    whole = [tuple(map(shapes.Constant, items)) for items in lists if len(items) == length]
    longer = replace(shape, minimum=max(shape.minimum, length))
    short = [_listed(items) for items in lists if shape.minimum <= len(items) < length]
    return shapes.union([*short, *(replace(longer, prefix=prefix) for prefix in whole)])


def _arranged(shape: Array) -> list[tuple[str, ...]] | None:
    """Return all lists with unique items, as JSON; None if there are too many."""
    prefix = [_values(item) for item in shape.prefix]
    items = None if isinstance(shape.items, Nothing) else _values(shape.items)
    if None in prefix or (items is None and not isinstance(shape.items, Nothing)):
        return None
    found: list[tuple[str, ...]] = [()] if shape.minimum == 0 else []
    level: list[tuple[str, ...]] = [()]
    spent = 0
    while level:
        at = len(level[0])
        values = prefix[at] if at < len(prefix) else items
        if at == shape.maximum or not values:
            break
        # Add one item to each list: `[a], [b]` becomes `[a, b], [b, a]`.
        level = [(*before, value) for before in level for value in values if value not in before]
        spent += len(level) * (at + 1)
        # The limit is necessary, since eight values can already be ordered in 40,320 ways.
        if spent > MAX_OPTIONS:
            return None
        found += level if at + 1 >= shape.minimum else []
    return found


def _values(shape: Shape) -> list[str] | None:
    """Return the values of `shape` as JSON, without duplicates; None if there are too many."""
    found: dict[str, str] = {}
    for option in shapes.alternatives(shape):
        match option:
            case shapes.Constant(text):
                found.setdefault(canonical(option.value), text)
            case shapes.Boolean():
                found |= {"true": "true", "false": "false"}
            case shapes.Null():
                found["null"] = "null"
            case shapes.Integer(minimum=int(low), maximum=int(high), multiple=step) if high - low < MAX_FEW:
                found |= {str(number): str(number) for number in range(low, high + 1) if number % step == 0}
            case _:
                return None
        if len(found) > MAX_FEW:
            return None
    return list(found.values())


def _array_parts(place: Place, context: KeywordContext) -> tuple[list[Place], Place]:
    """Return the places of the first items, and the place of all other items. An `items` list is read like `prefixItems`."""
    # Schemas of drafts up to 2019 use `{"items": [a, b], "additionalItems": c}` instead of `prefixItems` and `items`.
    anything = Place(True, place.path)
    first = "prefixItems" if "prefixItems" in place.mapping else "items"
    other = "items" if first == "prefixItems" else "additionalItems"
    if isinstance(place.get(first), list | tuple):
        return place.each(first), place.at(other) if other in place.mapping else anything
    if first == "prefixItems":
        context.report(place.path, "prefixItems", f"expected a list, found {value_in_words(place.get(first))}")
    return [], place.at("items") if "items" in place.mapping else anything


def _unevaluated_items(place: Place, places: Places, context: KeywordContext) -> tuple[list[Place], Place]:
    """Return the first items and the other items that `unevaluatedItems` allows.

    `unevaluatedItems` applies to items that neither `place` nor its subschemas describe.
    """
    anything = Place(True, place.path)
    owned = [other for other in places if context.owns(place, other)]
    ends = any(_ends_evaluation(other, place) for other in owned)
    unknown = any("if" in other.mapping for other in owned)
    if unknown and place.get("unevaluatedItems") is not True:
        context.report(place.path, "unevaluatedItems", "if decides which items are evaluated")
    # `unevaluatedItems` has no effect next to `items`, which already evaluates all items. Next to `prefixItems`, `unevaluatedItems`
    # restricts the remaining items.
    if unknown or ends:
        return [], anything
    prefix = max((len(_array_parts(other, context)[0]) for other in owned), default=0)
    wanted = [other.at("contains") for other in owned if "contains" in other.mapping]
    return [anything] * prefix, _unless_wanted(place, wanted, context)


def _unless_wanted(place: Place, wanted: list[Place], context: KeywordContext) -> Place:
    """Return the place of the unevaluated items. Items that match a `contains` count as evaluated."""
    if not wanted:
        return place.at("unevaluatedItems")
    if any(other.base != place.base for other in wanted):
        context.report(place.path, "unevaluatedItems", "contains of another document decides which items are evaluated")
        return replace(place, schema=True)
    options = [place.get("unevaluatedItems"), *(other.schema for other in wanted)]
    return place.made("unevaluatedItems", {"anyOf": options})


def _ends_evaluation(other: Place, place: Place) -> bool:
    """Return whether `other` describes all items. The `unevaluatedItems` of `place` then has no effect."""
    words = other.mapping
    rest = "additionalItems" if isinstance(words.get("items"), list | tuple) else "items"
    return rest in words or ("unevaluatedItems" in words and other is not place)


@dataclass(frozen=True, slots=True)
class _Scope:
    """The properties of one subschema of an object: the names that it declares, and `rest` for all other names."""

    place: Place
    names: frozenset[str]
    patterns: tuple[str, ...]
    rest: Place | None


def read_object(places: Places, _excluded: Excluded, context: KeywordContext) -> Shape:
    """Return the shape of the allowed objects."""
    scopes = [_scope(place, places, context) for place in places]
    # A required name that isn't declared may have any value. A name that must be absent can't be an extra key either.
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
    # If there is no `additionalProperties`, other keys are accepted with any value, but never generated.
    declares = any(place.get(word) is not None for place in places for word in ("properties", "required"))
    extra: _Extra = ()
    others: Shape = Anything()
    if not declares or any(scope.rest or scope.patterns for scope in scopes):
        extra, others = _extra(places, scopes, frozenset((*names, *absent)), context)
        _report_named_again(places, (*names, *absent), properties, extra, context)
    # `maxProperties` counts all keys, so undeclared keys aren't accepted.
    if any("maxProperties" in place.mapping for place in places):
        others = Nothing()
    shape = shapes.Object(properties=tuple(properties), extra=extra, others=others)
    return _with_size(shape, places, context)


def _report_named_again(
    places: Places, names: Iterable[str], properties: list[Property], extra: _Extra, context: KeywordContext
) -> None:
    """Report each declared name that matches a key pattern, since objects that contain this key twice may be generated."""
    shapes_of = {item.name: shapes.shape_identity(item.shape) for item in properties}
    again = (
        name
        for keys, value in extra
        for name in names
        if keys.pattern and shapes.shape_identity(value) != shapes_of.get(name) and matches(keys.pattern, name)
    )
    name = next(again, None)
    for keyword in ("patternProperties", "propertyNames") if name is not None else ():
        for place in [place for place in places if keyword in place.mapping][:1]:
            reason = f"the patterns also match {name!r:.100}, which may be repeated with another value"
            context.report(place.path, keyword, reason)


def _mapping(place: Place, keyword: str) -> Mapping[Any, Any]:
    value = place.mapping.get(keyword, _NO_NAMES)
    if not isinstance(value, (dict, Mapping)):
        raise wrong(f"{place.path}/{keyword}", "an object", value)
    return value


_NO_NAMES: Mapping[Any, Any] = {}


def _strings(listed: Any) -> list[str]:
    return [name for name in listed or () if isinstance(name, str)]


def _required(place: Place) -> list[str]:
    value = place.mapping.get("required", [])
    if isinstance(value, bool):
        return []
    if not isinstance(value, list | tuple):
        raise wrong(f"{place.path}/required", "a list", value)
    return _strings(value)


def _scope(place: Place, places: Places, context: KeywordContext) -> _Scope:
    names, patterns = _named(place, "properties"), _named(place, "patternProperties")[:MAX_BREAKS]
    if len(_mapping(place, "patternProperties")) > MAX_BREAKS:
        context.report(place.path, "patternProperties", f"more than {MAX_BREAKS} patterns are not read")
    if "additionalProperties" in place.mapping:
        return _Scope(place, frozenset(names), patterns, place.at("additionalProperties"))
    if "unevaluatedProperties" not in place.mapping:
        return _Scope(place, frozenset(names), patterns, None)
    owned = [other for other in places if other is not place and context.owns(place, other)]
    for other in owned:
        names, patterns = (*names, *_named(other, "properties")), (*patterns, *_named(other, "patternProperties"))
    return _Scope(place, frozenset(names), patterns, _unevaluated(place, owned, context))


def _unevaluated(place: Place, owned: list[Place], context: KeywordContext) -> Place | None:
    """Return the place of `unevaluatedProperties`; None if it depends on an `if`."""
    if any("if" in other.mapping for other in (place, *owned)) and place.get("unevaluatedProperties") is not True:
        context.report(place.path, "unevaluatedProperties", "if decides which properties are evaluated")
        return None
    ends = ("additionalProperties", "unevaluatedProperties")
    evaluated = any(word in other.mapping for other in owned for word in ends)
    return Place(True, place.path) if evaluated else place.at("unevaluatedProperties")


def _named(place: Place, keyword: str) -> tuple[str, ...]:
    found = _mapping(place, keyword)
    if odd := [name for name in found if not isinstance(name, str)]:
        raise wrong(f"{place.path}/{keyword}", "names that are strings", odd[0])
    return tuple(found)


def _property_places(scopes: list[_Scope], name: str) -> Iterator[Place]:
    """Yield the conjuncts that apply to one property by its name, by a pattern, or as an additional property."""
    # `{"properties": {"a_b": x}, "patternProperties": {"^a_": y}}`: the value of a_b must match both x and y.
    for scope in scopes:
        if name in _mapping(scope.place, "properties"):
            yield scope.place.at("properties", name)
        if name in _mapping(scope.place, MEMBERS):
            yield scope.place.at(MEMBERS, name)
        found = [pattern for pattern in scope.patterns if _found(pattern, name)]
        for pattern in found:
            if pattern in _mapping(scope.place, "patternProperties"):
                yield scope.place.at("patternProperties", pattern)
        if scope.rest and not found and name not in scope.names:
            yield scope.rest


def _found(pattern: str, name: str) -> bool:
    try:
        return matches(read_pattern(pattern), name)
    except (UnsupportedPattern, GrammarError):
        return False


_Extra = tuple[tuple[Text, Shape], ...]


def _extra(
    places: Places, scopes: list[_Scope], names: frozenset[str], context: KeywordContext
) -> tuple[_Extra, Shape]:
    """Return the undeclared keys that may be generated, each with the shape of its values, and the shape of all other values."""
    value = context.child(tuple(scope.rest for scope in scopes if scope.rest))
    patterned = [scope for scope in scopes if _mapping(scope.place, "patternProperties")]
    if isinstance(_key_shape(places, context), Nothing):
        return (), Nothing()
    if not patterned:
        keys = None if isinstance(value, Nothing) else _keys(places, names, context)
        return () if keys is None else ((keys, value),), Nothing()
    if not isinstance(value, Nothing):
        reason = "keys that match no pattern are not generated"
        context.report(patterned[0].place.path, "additionalProperties", reason)
    for place in places:
        if "propertyNames" in place.mapping:
            context.report(place.path, "propertyNames", "not supported together with patternProperties")
    pairs = [pair for scope in patterned for pair in _by_pattern(scope, scopes, context)]
    return _with_keys_apart(tuple(pairs), patterned[0].place, context), value


def _by_pattern(scope: _Scope, scopes: list[_Scope], context: KeywordContext) -> Iterator[tuple[Text, Shape]]:
    """For each pattern, yield the matching keys and the shape of their values, restricted by the other subschemas."""
    for pattern in _named(scope.place, "patternProperties")[:MAX_BREAKS]:
        keys = read_text((Place({"pattern": pattern}, f"{scope.place.path}/patternProperties"),), Excluded(), context)
        others = [(other, other.rest) for other in scopes if other.rest and pattern not in other.patterns]
        for other, rest in others:
            if other.patterns and rest.schema is not True:
                context.report(
                    other.place.path, "additionalProperties", "patterns of different subschemas are not compared"
                )
        rests = [rest for other, rest in others if not other.patterns]
        value = context.child((scope.place.at("patternProperties", pattern), *rests))
        if not isinstance(value, Nothing):
            yield keys if isinstance(keys, Text) else Text(), value


def _with_keys_apart(pairs: _Extra, place: Place, context: KeywordContext) -> _Extra:
    """Return key patterns that don't overlap, so that each key has one shape. Patterns that may share a key are merged."""
    # No key matches both `^a_` and `^b_`. A key may match both `^a` and `^ab`, or patterns without a literal prefix.
    starts = [_start(keys.pattern) for keys, _ in pairs]
    apart = all(not a.startswith(b) and not b.startswith(a) for at, a in enumerate(starts) for b in starts[:at])
    if apart or len(pairs) < 2:
        return pairs
    values = shapes.union([value for _, value in pairs])
    if values != pairs[0][1]:
        context.report(
            place.path,
            "patternProperties",
            "a key may match several patterns; its value matches only one of their schemas",
        )
    nodes = [keys.pattern for keys, _ in pairs if keys.pattern is not None]
    return ((Text(pattern=any_pattern(nodes)) if len(nodes) == len(pairs) else Text(), values),)


def _start(pattern: Node | None) -> str:
    """Return the common literal prefix of all texts that match a pattern."""
    # `^ab[0-9]` starts with "ab"; `b$` may start with any text, so its prefix is empty.
    text = ""
    for part in pattern.parts if isinstance(pattern, Sequence) else ():
        if not isinstance(part, Literal):
            break
        text += part.text
    return text


def _key_shape(places: Places, context: KeywordContext) -> Shape | None:
    """Return the shape of all keys; None if the schema doesn't restrict them."""
    limits = tuple(place.at("propertyNames") for place in places if "propertyNames" in place.mapping)
    if not limits:
        return None
    return context.child((Place({"type": "string"}, f"{limits[0].path}/type"), *limits))


def _keys(places: Places, names: frozenset[str], context: KeywordContext) -> Text | None:
    """Return the shape of undeclared keys; None if all keys are declared."""
    if any(len(name) > MAX_EXCLUDED_WORD for name in names):
        reason = f"names of more than {MAX_EXCLUDED_WORD} characters may be repeated"
        context.report(places[0].path, "additionalProperties", reason)
    shape = _key_shape(places, context)
    # Remove declared names from the allowed keys: for `propertyNames: {"enum": ["a", "b"]}` with `a` declared, the only extra key is `b`.
    words = [option.value for option in shapes.alternatives(shape or Anything()) if isinstance(option, shapes.Constant)]
    if words and len(words) == len(list(shapes.alternatives(shape or Anything()))):
        left = [Literal(word) for word in words if word not in names]
        return Text(pattern=Choice(tuple(left))) if left else None
    if not isinstance(shape, Text):
        if shape is not None and not isinstance(shape, Anything):
            context.report(
                places[0].path, "propertyNames", "only patterns, lengths and lists of names are supported for keys"
            )
        return Text(excluded=names)
    inside = frozenset(name for name in names if admits_text(shape, name))
    if inside and shape.maximum == 0:
        return None
    return replace(shape, excluded=shape.excluded | inside)


def _with_size(shape: shapes.Object, places: Places, context: KeywordContext) -> Shape:
    """Return `shape` with `minProperties` and `maxProperties` applied, if they only affect extra properties."""
    least, most = size_of(places, "minProperties", "maxProperties", context)
    required = sum(item.required for item in shape.properties)
    # The number of extra keys is known only if no property is optional.
    optional = len(shape.properties) - required
    if least <= required and (most is None or (not shape.extra and most >= required + optional)):
        return shape
    for place in places if least > required + 1 else ():
        if place.get("minProperties") is not None:
            context.report(place.path, "minProperties", "undeclared keys may be repeated")
    if optional == 0 and (shape.extra or least <= required):
        low, rest = max(least - required, 0), None if most is None else most - required
        if rest is not None and rest < low:
            return Nothing()
        return replace(shape, extra=() if rest == 0 else shape.extra, minimum=low, maximum=rest)
    for place, keyword in product(places, ("minProperties", "maxProperties")):
        if place.get(keyword) is not None:
            context.report(place.path, keyword, "optional properties are not counted")
    return shape
