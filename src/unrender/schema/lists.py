"""Reads the keywords of lists into their shapes.

Strategy: `contains` splits what an item may be into what is wanted and what is not, so that the wanted ones can be
counted. Lists without doubles are listed one by one where the items have few values.
"""

from __future__ import annotations

from dataclasses import replace

from unrender.limits import MAX_ARRANGED, MAX_RANGE
from unrender.messages.wire import JsonSchema
from unrender.schema import shapes
from unrender.schema.admission import canonical
from unrender.schema.conjuncts import ITEMS, complement
from unrender.schema.kinds import TYPES, kinds_of
from unrender.schema.places import Context, Excluded, Place, Places, shown, size_of
from unrender.schema.shapes import Array, Contained, Nothing, Shape, alternatives, union


def read_array(places: Places, _excluded: Excluded, context: Context) -> Shape:
    """Return the shape of the lists that are allowed."""
    lists = [_array_parts(place, context) for place in places]
    lists += [_unevaluated_items(place, places, context) for place in places if "unevaluatedItems" in place.mapping]
    lists += [(place.each(ITEMS), replace(place, schema=True)) for place in places if ITEMS in place.mapping]
    longest = max((len(prefix) for prefix, _ in lists), default=0)
    prefix = [
        context.child(tuple(_item(parts, at) for parts in lists if _item(parts, at).schema is not True))
        for at in range(longest)
    ]
    rest = tuple(rest for _, rest in lists if rest.schema is not True)
    shape = _sized(prefix, context.child(rest), size_of(places, "minItems", "maxItems", context))
    for place in places:
        if "contains" in place.mapping and isinstance(shape, Array):
            shape = _containing(shape, place, rest, context)
    unique = next((place for place in places if place.get("uniqueItems") not in (None, False)), None)
    return _unique(shape, unique, context) if unique and isinstance(shape, Array) else shape


def _sized(prefix: list[Shape], items: Shape, size: tuple[int, int | None]) -> Shape:
    """Return the lists of a size; an item that is impossible ends them."""
    least, most = size
    for at, shape in enumerate(prefix):
        if isinstance(shape, Nothing):
            prefix, items = prefix[:at], Nothing()
            break
    if isinstance(items, Nothing):
        most = len(prefix) if most is None else min(most, len(prefix))
    if most is not None and least > most:
        return Nothing()
    return Array(prefix=tuple(prefix[:most]), items=items, minimum=least, maximum=most)


def _containing(shape: Array, place: Place, rest: Places, context: Context) -> Shape:
    """Return the lists of `shape` that hold as many wanted items as the `contains` of `place` says."""
    wanted = place.at("contains")
    sizes = replace(place, schema={"minContains": 1} | dict(place.mapping))
    low, high = size_of((sizes,), "minContains", "maxContains", context)
    if wanted.schema is True or wanted.schema == {}:
        least = max(shape.minimum, low)
        most = shape.maximum if high is None else high if shape.maximum is None else min(high, shape.maximum)
        return _sized(list(shape.prefix), shape.items, (least, most))
    if low == 0 and high is None:
        return shape
    if wanted.schema is False or (high is not None and low > high):
        return Nothing() if low else shape
    broken = complement(wanted.schema)
    least = max(shape.minimum, low)
    if broken is None or shape.prefix or shape.contained or shape.maximum is not None or shape.minimum > low:
        reason = "only a schema that can be negated is counted, in lists without a length and first items"
        context.report(place.path, "contains", reason)
        return replace(shape, minimum=least) if shape.maximum is None or least <= shape.maximum else Nothing()
    found = context.child((*rest, wanted))
    others = context.child((*rest, wanted.made("broken", {"anyOf": [*broken, *_of_other_types(wanted, found)]})))
    return _counted(shape, Contained(found, others, low, high))


def _of_other_types(wanted: Place, shape: Shape) -> list[JsonSchema]:
    """Return a schema of the types that `wanted` implies not to be wanted; none where it names its types or values."""
    kinds = kinds_of(shape, {})
    if kinds == TYPES or {"type", "enum", "const"} & wanted.mapping.keys():
        return []
    return [{"not": {"type": sorted(kinds)}}] if kinds else []


def _counted(shape: Array, contained: Contained) -> Shape:
    """Return the lists of `shape` with wanted items and others; simpler where there is only one of both."""
    low, high = contained.minimum, contained.maximum
    if isinstance(contained.wanted, Nothing) or high == 0:
        return Nothing() if low else replace(shape, items=contained.others)
    if isinstance(contained.others, Nothing):
        return replace(shape, minimum=low, maximum=high)
    return replace(shape, minimum=low, contained=contained)


def _unique(shape: Array, place: Place, context: Context) -> Shape:
    """Return the lists of `shape` without doubles, one by one; `shape` itself where they are too many."""
    if shape.maximum is not None and shape.maximum <= 1:
        return shape
    lists = None if shape.contained else _arranged(shape)
    if lists is not None:
        return union([_listed(items) for items in lists])
    context.report(place.path, "uniqueItems", "earlier items are not remembered")
    return shape if shape.contained else _unique_prefix(shape)


def _listed(items: tuple[str, ...]) -> Shape:
    return shapes.Constant(f"[{', '.join(items)}]")


def _unique_prefix(shape: Array) -> Shape:
    """Return the lists of `shape` whose first items are not doubles, as far as these have few values."""
    lists = _arranged(replace(shape, items=Nothing(), minimum=0))
    if not shape.prefix or lists is None:
        return shape
    length = len(shape.prefix)
    whole = [tuple(map(shapes.Constant, items)) for items in lists if len(items) == length]
    longer = replace(shape, minimum=max(shape.minimum, length))
    short = [_listed(items) for items in lists if shape.minimum <= len(items) < length]
    return union([*short, *(replace(longer, prefix=prefix) for prefix in whole)])


def _arranged(shape: Array) -> list[tuple[str, ...]] | None:
    """Return all lists without doubles, their items as JSON; None where they are too many."""
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
        level = [(*before, value) for before in level for value in values if value not in before]
        spent += len(level) * (at + 1)
        if spent > MAX_ARRANGED:
            return None
        found += level if at + 1 >= shape.minimum else []
    return found


def _values(shape: Shape) -> list[str] | None:
    """Return the values of `shape` as JSON, one text for equal ones; None where they are not few."""
    found: dict[str, str] = {}
    for option in alternatives(shape):
        match option:
            case shapes.Constant(text):
                found.setdefault(canonical(option.value), text)
            case shapes.Boolean():
                found |= {"true": "true", "false": "false"}
            case shapes.Null():
                found["null"] = "null"
            case shapes.Integer(minimum=int(low), maximum=int(high), multiple=step) if high - low < MAX_RANGE:
                found |= {str(number): str(number) for number in range(low, high + 1) if number % step == 0}
            case _:
                return None
        if len(found) > MAX_RANGE:
            return None
    return list(found.values())


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
        context.report(place.path, "prefixItems", f"a list is expected, found {shown(place.get(first))}")
    return [], place.at("items") if "items" in place.mapping else anything


def _unevaluated_items(place: Place, places: Places, context: Context) -> tuple[list[Place], Place]:
    """Return `unevaluatedItems` like other items: it holds after what `place` and all that it asks for describe."""
    anything = Place(True, place.path)
    owned = [other for other in places if context.owns(place, other)]
    ends = any(_ends_evaluation(other, place) for other in owned)
    unknown = any("if" in other.mapping for other in owned)
    if unknown and place.get("unevaluatedItems") is not True:
        context.report(place.path, "unevaluatedItems", "if decides which items are evaluated")
    if unknown or ends:
        return [], anything
    prefix = max((len(_array_parts(other, context)[0]) for other in owned), default=0)
    wanted = [other.at("contains") for other in owned if "contains" in other.mapping]
    return [anything] * prefix, _unless_wanted(place, wanted, context)


def _unless_wanted(place: Place, wanted: list[Place], context: Context) -> Place:
    """Return the place of the unevaluated items: what some `contains` wants is evaluated."""
    if not wanted:
        return place.at("unevaluatedItems")
    if any(other.base != place.base for other in wanted):
        context.report(place.path, "unevaluatedItems", "contains of another document decides which items are evaluated")
        return replace(place, schema=True)
    options = [place.get("unevaluatedItems"), *(other.schema for other in wanted)]
    return place.made("unevaluatedItems", {"anyOf": options})


def _ends_evaluation(other: Place, place: Place) -> bool:
    """Return whether `other` describes all items, so that none is left to the `unevaluatedItems` of `place`."""
    words = other.mapping
    rest = "additionalItems" if isinstance(words.get("items"), list | tuple) else "items"
    return rest in words or ("unevaluatedItems" in words and other is not place)
