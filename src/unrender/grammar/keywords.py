"""The keywords that hold at one place of a schema → the shape of the values there.

`Place`s are conjuncts: of each keyword the tightest of all places counts. What cannot be said is reported to the
`Context`, and left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from math import lcm
from typing import Any

from unrender.errors import GrammarError
from unrender.grammar import shapes
from unrender.grammar.admission import canonical, matches
from unrender.grammar.nodes import Chars, Node, Repeat, Sequence
from unrender.grammar.regex import UnsupportedPattern, read_pattern
from unrender.grammar.shapes import Anything, Nothing, Property, Shape, Text, union
from unrender.grammar.strings import ANNOTATING_FORMATS, format_node
from unrender.messages import JsonSchema

TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")

_IMPLIED = {
    "object": "properties required additionalProperties patternProperties propertyNames minProperties maxProperties",
    "array": "items prefixItems minItems maxItems uniqueItems contains additionalItems",
    "string": "minLength maxLength pattern format",
    "number": "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf",
}
_TYPE_OF = {keyword: kind for kind, words in _IMPLIED.items() for keyword in words.split()}

UNSAID: Mapping[str, str] = {
    "if": "conditions cannot be decided while the value is written",
    "dependentRequired": "properties are chosen one after another",
    "dependentSchemas": "properties are chosen one after another",
    "dependencies": "properties are chosen one after another",
    "uniqueItems": "earlier items are not remembered",
    "contains": "items are written one after another",
    "unevaluatedProperties": "only additionalProperties closes an object",
    "unevaluatedItems": "only items closes a list",
}
"""Keywords that no grammar says → why."""


@dataclass(frozen=True, slots=True)
class Place:
    """A subschema, and where it stands (JSON pointer)."""

    schema: JsonSchema
    path: str

    @classmethod
    def checked(cls, schema: Any, path: str) -> Place:
        """Return the place, or raise `GrammarError` when `schema` is no JSON Schema."""
        if not isinstance(schema, Mapping | bool):
            raise GrammarError(f"{path}: expected a JSON Schema, found {schema!r:.80}")
        return cls(schema, path)

    @property
    def mapping(self) -> Mapping[str, Any]:
        return {} if isinstance(self.schema, bool) else self.schema

    def get(self, keyword: str) -> Any:
        return self.mapping.get(keyword)

    def at(self, *steps: str | int) -> Place:
        """Return the subschema reached by `steps`."""
        schema: Any = self.schema
        for step in steps:
            schema = schema[step]
        tail = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)
        return Place.checked(schema, self.path + tail)

    def each(self, keyword: str) -> list[Place]:
        """Return the subschemas that `keyword` lists."""
        listed = self.mapping.get(keyword, [])
        if not isinstance(listed, list | tuple):
            raise GrammarError(f"{self.path}/{keyword}: expected a list, found {listed!r:.80}")
        return [self.at(keyword, index) for index in range(len(listed))]

    def values(self, keyword: str) -> list[Any]:
        """Return the values that `enum` or `const` allows."""
        found = self.mapping[keyword]
        if keyword == "const":
            return [found]
        if not isinstance(found, list | tuple):
            raise GrammarError(f"{self.path}/enum: expected a list, found {found!r:.80}")
        return list(found)

    def without(self, *keywords: str) -> Place:
        """Return the place without `keywords`; its path is marked, as it is another conjunct now."""
        if not any(keyword in self.mapping for keyword in keywords):
            return self
        rest = {keyword: value for keyword, value in self.mapping.items() if keyword not in keywords}
        return Place(rest, f"{self.path}/-{keywords[0]}")


Places = tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Context:
    """What a keyword needs of its reader: `report(path, keyword, reason)`, and the shape of a subschema."""

    report: Callable[[str, str, str], None]
    child: Callable[[Places], Shape]
    longest: int | None
    """Lengths beyond this are not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """What `not` forbids: whole types, and single values (canonical JSON text)."""

    types: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    """The values that are strings."""
    everything: bool = False


def negation(places: Places, report: Callable[[str, str, str], None]) -> tuple[Places, Excluded]:
    """Take `not` out of `places`; report those that cannot be decided."""
    types: set[str] = set()
    values: list[Any] = []
    everything = False
    for place in places:
        forbidden = place.get("not")
        if forbidden is None:
            continue
        keywords = {} if isinstance(forbidden, bool) else {k: v for k, v in forbidden.items() if k != "description"}
        if forbidden is True or forbidden == {}:
            everything = True
        elif set(keywords) == {"type"}:
            types |= set(_listed(keywords["type"]))
        elif set(keywords) & {"enum", "const"} and set(keywords) <= {"enum", "const", "type"}:
            values += keywords.get("enum", [keywords.get("const")])
        elif forbidden is not False:
            report(place.path, "not", "only types and single values can be excluded")
    words = frozenset(value for value in values if isinstance(value, str))
    excluded = Excluded(
        types=frozenset(types), values=frozenset(map(canonical, values)), words=words, everything=everything
    )
    return tuple(place.without("not") for place in places), excluded


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def leaf(places: Places, excluded: Excluded, context: Context) -> Shape:
    """Return the shape of the values that obey `places`, which hold no references or branches."""
    for place in places:
        for keyword in UNSAID.keys() & place.mapping.keys():
            if place.mapping[keyword] not in (False, None):
                context.report(place.path, keyword, UNSAID[keyword])
    types = _types(places) - excluded.types
    if excluded.everything or not types:
        return Nothing()
    if types == set(TYPES) and not excluded.types and not excluded.values:
        return Anything()
    readers = _READERS if not types >= {"number", "integer"} else {k: v for k, v in _READERS.items() if k != "integer"}
    found = [reader(places, excluded, context) for kind, reader in readers.items() if kind in types]
    return union(found)


def _types(places: Places) -> set[str]:
    """Return the types that all places allow; where none is given, the ones that their keywords imply."""
    types = set(TYPES)
    for place in places:
        given = place.get("type")
        if given is None:
            continue
        named = set(_listed(given)) | ({"null"} if place.get("nullable") is True else set())
        if not named <= set(TYPES):
            raise GrammarError(f"{place.path}/type: expected one of {list(TYPES)}, found {given!r:.80}")
        types &= named | ({"integer"} if "number" in named else set())
    if all(place.get("type") is None for place in places):
        implied = {_TYPE_OF[keyword] for place in places for keyword in place.mapping if keyword in _TYPE_OF}
        types = implied or types
    return types


def _null(places: Places, excluded: Excluded, context: Context) -> Shape:
    return Nothing() if "null" in excluded.values else shapes.Null()


def _boolean(places: Places, excluded: Excluded, context: Context) -> Shape:
    kept = [shapes.Constant(word) for word in ("true", "false") if word not in excluded.values]
    return shapes.Boolean() if len(kept) == 2 else union(list[Shape](kept))


def _bound(places: Places, keyword: str, kind: type[int | float]) -> list[tuple[Place, Any]]:
    """Return the values of a numeric keyword, with their places."""
    found = [(place, place.get(keyword)) for place in places if place.get(keyword) is not None]
    for place, value in found:
        numeric = isinstance(value, int | float) and not (isinstance(value, bool) and kind is int)
        if not numeric or (kind is int and int(value) != value):
            raise GrammarError(f"{place.path}/{keyword}: expected a number, found {value!r:.80}")
    return found


def _size(places: Places, low: str, high: str, context: Context) -> tuple[int, int | None]:
    """Return the tightest pair of a size's bounds, as far as they are counted."""
    least = max((_counted_to(place, low, value, context) or 0 for place, value in _bound(places, low, int)), default=0)
    mosts = [_counted_to(place, high, value, context) for place, value in _bound(places, high, int)]
    return max(least, 0), min((most for most in mosts if most is not None), default=None)


def _counted_to(place: Place, keyword: str, value: float, context: Context) -> int | None:
    """Return a size, or None when it is too large to be counted."""
    if context.longest is None or value <= context.longest:
        return int(value)
    context.report(place.path, keyword, f"no more than {context.longest} repetitions are counted")
    return None


@dataclass(frozen=True, slots=True)
class _Bounds:
    low: Decimal | None
    high: Decimal | None
    open_low: bool
    open_high: bool


def _bounds(places: Places) -> _Bounds:
    """Return the tightest numeric bounds; the old boolean `exclusiveMinimum` is understood."""
    lows: list[tuple[Decimal, bool]] = []
    highs: list[tuple[Decimal, bool]] = []
    for sign, edges, inclusive, exclusive in (
        (1, lows, "minimum", "exclusiveMinimum"),
        (-1, highs, "maximum", "exclusiveMaximum"),
    ):
        for place, value in _bound(places, inclusive, float):
            edges.append((sign * _decimal(place, value), place.get(exclusive) is True))
        for place, value in _bound(places, exclusive, float):
            if not isinstance(value, bool):
                edges.append((sign * _decimal(place, value), True))
    low, open_low = max(lows, default=(None, False))
    high, open_high = max(highs, default=(None, False))
    return _Bounds(low, None if high is None else -high, open_low, open_high)


def _decimal(place: Place, value: float) -> Decimal:
    try:
        return Decimal(str(value))
    except InvalidOperation:
        raise GrammarError(f"{place.path}: expected a number, found {value!r}") from None


def _integer(places: Places, excluded: Excluded, context: Context) -> Shape:
    bounds = _bounds(places)
    low = None if bounds.low is None else int(-((-bounds.low) // 1)) + (bounds.open_low and bounds.low % 1 == 0)
    high = None if bounds.high is None else int(bounds.high // 1) - (bounds.open_high and bounds.high % 1 == 0)
    step = 1
    for place, value in _bound(places, "multipleOf", float):
        if value == int(value) and value > 0:
            step = lcm(step, int(value))
        elif (Decimal(1) / _decimal(place, value)) % 1 != 0:
            context.report(place.path, "multipleOf", "only whole steps can be counted")
    if low is not None and high is not None and -(-low // step) * step > high:
        return Nothing()
    _report_values(places, excluded, context, "number")
    return shapes.Integer(minimum=low, maximum=high, multiple=step)


def _number(places: Places, excluded: Excluded, context: Context) -> Shape:
    bounds = _bounds(places)
    limits: list[int] = []
    for place, value in _bound(places, "multipleOf", float):
        if value == 1:
            return _integer(tuple(p.without("type") for p in places), excluded, context)
        step = _decimal(place, value).normalize()
        exponent = step.as_tuple().exponent
        if step.as_tuple().digits == (1,) and isinstance(exponent, int) and exponent < 0:
            limits.append(-exponent)
        else:
            context.report(place.path, "multipleOf", "only steps of 1, 0.1, 0.01 … can be counted")
    low, high = bounds.low, bounds.high
    if low is not None and high is not None and (low > high or (low == high and (bounds.open_low or bounds.open_high))):
        return Nothing()
    _report_values(places, excluded, context, "number")
    return shapes.Number(
        minimum=low,
        maximum=high,
        exclusive_minimum=bounds.open_low,
        exclusive_maximum=bounds.open_high,
        places=min(limits, default=None),
    )


def _report_values(places: Places, excluded: Excluded, context: Context, kind: str) -> None:
    if places and excluded.values - excluded.words - {"null", "true", "false"}:
        context.report(places[0].path, "not", f"single values cannot be excluded from a {kind}")


def _text(places: Places, excluded: Excluded, context: Context) -> Shape:
    least, most = _size(places, "minLength", "maxLength", context)
    if most is not None and least > most:
        return Nothing()
    sources = [(place, keyword, node) for place in places for keyword, node in _text_nodes(place, context)]
    for place, keyword, _ in sources[1:]:
        context.report(place.path, keyword, "another pattern or format holds for the same string")
    shape = Text(minimum=least, maximum=most, excluded=frozenset(excluded.words))
    return _with_pattern(shape, sources[0][2], places, context) if sources else shape


def _text_nodes(place: Place, context: Context) -> Iterable[tuple[str, Node]]:
    pattern, name = place.get("pattern"), place.get("format")
    if pattern is not None:
        try:
            yield "pattern", read_pattern(str(pattern))
        except UnsupportedPattern as reason:
            context.report(place.path, "pattern", f"{reason} cannot be written in a grammar")
        except GrammarError as error:
            raise GrammarError(f"{place.path}/pattern: {error}") from None
    if name is not None and name not in ANNOTATING_FORMATS:
        node = format_node(str(name))
        if node is None:
            context.report(place.path, "format", f"{name!r} is not a known format")
        else:
            yield "format", node


def _with_pattern(shape: Text, pattern: Node, places: Places, context: Context) -> Text:
    """Return the shape with a pattern; lengths are merged into it where it is one repeated class."""
    excluded = shape.excluded
    if excluded:
        context.report(places[0].path, "not", "single values cannot be excluded from a pattern")
    if shape.minimum == 0 and shape.maximum is None:
        return Text(pattern=pattern)
    merged = _bounded(pattern, shape.minimum, shape.maximum)
    if merged is not None:
        return Text(pattern=merged)
    for place in places:
        for keyword in ("minLength", "maxLength"):
            if (place.get(keyword) is not None and not (keyword == "minLength" and not matches(pattern, ""))) or (
                place.get(keyword) is not None and place.get(keyword) > 1
            ):
                context.report(place.path, keyword, "a pattern or format holds for the same string")
    return Text(pattern=pattern)


def _bounded(pattern: Node, minimum: int, maximum: int | None) -> Node | None:
    node = pattern.parts[0] if isinstance(pattern, Sequence) and len(pattern.parts) == 1 else pattern
    if not isinstance(node, Repeat) or not isinstance(node.node, Chars):
        return None
    least = max(node.minimum, minimum)
    ends = [end for end in (node.maximum, maximum) if end is not None]
    most = min(ends, default=None)
    return replace(node, minimum=least, maximum=most) if most is None or least <= most else None


def _array(places: Places, excluded: Excluded, context: Context) -> Shape:
    least, most = _size(places, "minItems", "maxItems", context)
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


def _object(places: Places, excluded: Excluded, context: Context) -> Shape:
    names = dict.fromkeys(name for place in places for name in _mapping(place, "properties"))
    required = dict.fromkeys(name for place in places for name in _required(place))
    closed = bool(names or required) and not any("additionalProperties" in place.mapping for place in places)
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
    shape = _text((Place({"pattern": pattern}, f"{place.path}/patternProperties"),), Excluded(), context)
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
    least, most = _size(places, "minProperties", "maxProperties", context)
    required = sum(item.required for item in shape.properties)
    optional = len(shape.properties) - required
    fits = (most is None or (not shape.extra and most >= required + optional)) and least <= required
    if fits:
        return shape
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


_READERS: Mapping[str, Callable[[Places, Excluded, Context], Shape]] = {
    "object": _object,
    "array": _array,
    "string": _text,
    "number": _number,
    "integer": _integer,
    "boolean": _boolean,
    "null": _null,
}
