"""Reads JSON Schema into shapes: resolves references, merges branches, infers types, and reports losses.

Strategy: a value is described by *conjuncts*, all the subschemas that apply to it. `$ref` and `allOf` add conjuncts, and `anyOf` and
`oneOf` create alternatives. The remaining keywords are read one by one. The most restrictive conjunct wins, and each type has its own
reader (`scalars`, `containers`). If conjuncts occur again while they are being read, the schema is recursive, and the result is a
`Reference`.

Rules: an unsupported keyword is reported with its path, and isn't enforced. Only an invalid schema raises. Keywords imply their type, e.g.
`properties` implies an object. Objects that declare properties are closed unless `additionalProperties` allows others, because callers
don't want arguments that the model invented. Schemas are read within limits. A part of a schema that exceeds a limit is reported and
accepts any value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from unrender.cache import SHARED, bytes_of
from unrender.errors import GrammarError
from unrender.json_values import JsonSchema, content_key, json_type, thawed
from unrender.limits import MAX_CONJUNCTS, MAX_FEW, MAX_OPTIONS, MAX_SCHEMA_DEPTH, MAX_SCHEMA_PARTS, Limits
from unrender.schema import Reading, Unsupported, shapes
from unrender.schema.admission import TYPES, admits, as_json, canonical, exclusive, finite_definitions, without_endless
from unrender.schema.conjuncts import ABSENT, ANNOTATIONS, ITEMS, MEMBERS, excluded_schemas, is_flat, unfolded
from unrender.schema.containers import read_array, read_object
from unrender.schema.places import Excluded, KeywordContext, Place, Places, References, is_deep, pointer, wrong
from unrender.schema.scalars import read_boolean, read_integer, read_null, read_number, read_text
from unrender.schema.shapes import Anything, Constant, Nothing, Object, Property, Reference, Shape, Text, union
from unrender.schema.weights import Scale, Weight


def read_schema(schema: JsonSchema, *, longest: int | None = None, at: str = "#") -> Reading:
    """Return the shape of the values that match `schema`, and the keywords that can't be enforced.

    Length limits up to `longest` are enforced; higher limits are reported. `at` (a JSON pointer after `#`) selects a part of the schema.

    Raises `GrammarError` for an invalid keyword, e.g. a broken regular expression or a `$ref` without a target. The error message contains
    the path. Reading time is bounded for any schema.
    """
    key = content_key(schema)
    found: Reading | None = SHARED.get(("schema", key, longest, at)) if key else None
    if found is None:
        # Clients send the same schemas with every request, so results are cached.
        reader = _Reader(References(schema), longest)
        found = _read(reader, at)
        # If nothing was reported, no length limit exceeds `longest`, so the result is also valid without `longest`.
        limits_known = (longest,) if longest is None or found.unsupported else (longest, None)
        weight = bytes_of(found) // len(limits_known) + len(key) + _KEY_BYTES
        for limit in limits_known:
            if key:
                SHARED.put(("schema", key, limit, at), found, weight)
    return found


_KEY_BYTES = 300
"""Estimated size of a cache key, in bytes."""


def _read(reader: _Reader, at: str) -> Reading:
    start = reader.references.start()
    shape = reader.shape(((None if at == "#" else reader.references.follow(at, start)) or start,))
    definitions = finite_definitions(reader.definitions)
    # An object that requires an object like itself is infinite, so no value has this shape.
    if len(definitions) < len(reader.definitions):
        shape = without_endless(shape, definitions)
    if isinstance(shape, Nothing):
        raise GrammarError("schema: no value can satisfy it")
    return Reading(shape=shape, definitions=definitions, unsupported=tuple(reader.unsupported.values()))


_Key = tuple[str, ...]


@dataclass(slots=True)
class _Reader:
    references: References
    longest: int | None
    definitions: dict[str, Shape] = field(default_factory=dict)
    unsupported: dict[tuple[str, str], Unsupported] = field(default_factory=dict)
    known: dict[_Key, Shape] = field(default_factory=dict)
    open: dict[_Key, str] = field(default_factory=dict)
    recursive: set[str] = field(default_factory=set)
    unguarded: frozenset[_Key] = frozenset()
    parents: dict[str, set[str]] = field(default_factory=dict)
    """Maps the path of a subschema to the paths of its parents: the subschemas because of which it applies."""
    count: int = 0
    depth: int = 0

    def report(self, path: str, keyword: str, reason: str) -> None:
        found = Unsupported(path=pointer(path), keyword=keyword, reason=reason)
        # A place may be read several times, combined with different places, but each keyword is reported only once.
        self.unsupported.setdefault((found.path, keyword), found)

    def child(self, places: tuple[Place, ...]) -> Shape:
        """Return the shape of a nested value, which may refer to the schemas around it."""
        # In `{"items": {"$ref": "#"}}` the recursion ends, since any `]` can close the outer array.
        outside, self.unguarded = self.unguarded, frozenset()
        shape = self.shape(places)
        self.unguarded = outside
        return shape

    def shape(self, places: tuple[Place, ...]) -> Shape:
        """Return the shape of the values that match all of `places`."""
        if len(places) != 1 or not is_flat(places[0]):
            places = self.flatten(places)
            if any(place.schema is False for place in places):
                return Nothing()
        # The order of subschemas doesn't matter: `{"allOf": [a, b]}` is equivalent to `{"allOf": [b, a]}`.
        key = (places[0].path,) if len(places) == 1 else tuple(sorted({place.path for place in places}))
        # A schema such as `{"$ref": "#"}` refers to itself without nesting. The recursion never ends, so no value matches.
        if key in self.unguarded:
            self.report(key[0], "$ref", "it refers to itself and nothing else")
            return Nothing()
        if key in self.known:
            return self.known[key]
        # A tree such as `{"properties": {"child": {"$ref": "#"}}}` refers to itself from a nested value, so a `Reference` is returned.
        if key in self.open:
            self.recursive.add(self.open[key])
            return Reference(self.open[key])
        if places and (self.depth > MAX_SCHEMA_DEPTH or self.count >= MAX_SCHEMA_PARTS):
            deep = f"it is nested deeper than {MAX_SCHEMA_DEPTH} levels"
            large = f"the schema expands into more than {MAX_SCHEMA_PARTS} parts"
            self.report(key[0], "schema", deep if self.depth > MAX_SCHEMA_DEPTH else large)
            return Anything()
        return self.read_once(key, places)

    def read_once(self, key: _Key, places: tuple[Place, ...]) -> Shape:
        self.count += max(len(places), 1)
        if len(places) == 1 and (plain := _plain(places[0].mapping)):
            self.known[key] = plain
            return plain
        name = self.open[key] = f"recursive-{self.count}"
        # If these conjuncts recur before the next nested value, the recursion never ends.
        outside, self.unguarded = self.unguarded, self.unguarded | {key}
        self.depth += 1
        shape = self.read(places)
        self.depth -= 1
        self.unguarded = outside
        del self.open[key]
        if name in self.recursive:
            self.definitions[name] = shape
            shape = Reference(name)
        self.known[key] = shape
        return shape

    def plain_container(self, place: Place) -> Shape | None:
        """Return the shape of an array or object schema with only the most common keywords, or None for other schemas."""
        schema = place.mapping
        declared, required = schema.get("properties"), schema.get("required", ())
        if schema.get("type") == "array" and schema.keys() <= _PLAIN_ARRAY and isinstance(schema.get("items"), dict):
            items = self.part(place, "items")
            return None if isinstance(items, Nothing) else shapes.Array(items=items)
        plain = schema.get("type") == "object" and schema.keys() <= _PLAIN_OBJECT
        closed = schema.get("additionalProperties") is False
        if not plain or (not closed and "additionalProperties" in schema):
            return None
        if not isinstance(declared, dict) or not isinstance(required, list | tuple):
            return None
        needed = frozenset(filter(_is_text, required))
        # Required names that aren't declared need the full reader.
        if not needed <= declared.keys() or not all(map(_is_text, declared)):
            return None
        properties: list[Property] = []
        for name in declared:
            shape = self.part(place, "properties", name)
            if isinstance(shape, Nothing):
                return None
            properties.append(Property(name, shape, name in needed))
        return shapes.Object(properties=tuple(properties), others=Nothing() if closed else Anything())

    def part(self, place: Place, *steps: str) -> Shape:
        schema: Any = place.schema
        for step in steps:
            schema = schema[step]
        found = self.common(schema)
        self.count += found is not None
        return found or self.child((place.at(*steps),))

    def common(self, schema: Any) -> Shape | None:
        """Return the shape of a small, cacheable schema without references, or None for any other schema."""
        if not isinstance(schema, dict) or self.depth > _SHALLOW or self.count >= MAX_SCHEMA_PARTS:
            return None
        if plain := _plain(schema):
            return plain
        words = {word: value for word, value in schema.items() if word not in ANNOTATIONS}
        values = words.get("enum")
        listed = words.keys() <= _LISTED and words.get("type", "string") == "string"
        if listed and isinstance(values, list) and values and all(map(_is_text, values)):
            return union([Constant(as_json(value)) for value in values])
        # `{"type": "integer", "minimum": 1}` occurs in many tools, so it's cached. Schemas with `properties` rarely repeat.
        key = b"" if "properties" in words else content_key(words := thawed(words))
        if not 0 < len(key) <= _SHORT or any(word in key for word in _REFERRING):
            return None
        with suppress(GrammarError):
            found = read_schema(words, longest=self.longest)
            return None if found.unsupported else found.shape
        return None

    def flatten(self, places: tuple[Place, ...]) -> tuple[Place, ...]:
        """Return the conjuncts of `places`. References are resolved, `allOf` is expanded, and empty conjuncts are dropped."""
        found: list[Place] = []
        seen: set[str] = set()
        queue = deque(places)
        while queue:
            place = queue.popleft()
            if isinstance(place.schema, bool):
                found += [] if place.schema else [place]
                continue
            if place.path in seen:
                continue
            if len(seen) >= MAX_CONJUNCTS:
                self.report(place.path, "schema", f"more than {MAX_CONJUNCTS} subschemas apply to the same value")
                break
            seen.add(place.path)
            # `{"$ref": "#/$defs/a", "minLength": 1}` becomes two conjuncts: the target of the reference, and the length.
            added, rest = unfolded(place, self.references, self.report)
            self.adopt(place, added)
            queue.extendleft(reversed(added))
            if rest.mapping.keys() - ANNOTATIONS:
                found.append(rest)
        return tuple(found)

    def adopt(self, parent: Place, children: list[Place]) -> None:
        """Record that `children` apply because `parent` does. Subschemas of `not` are left out, since they evaluate nothing."""
        for child in children:
            if not child.path.startswith(f"{parent.path}/not"):
                self.parents.setdefault(child.path, set()).add(parent.path)

    def owns(self, place: Place, other: Place) -> bool:
        """Return whether `other` is `place`, or applies because `place` does."""
        # A parent may be several steps away: `{"allOf": [{"$ref": "#/$defs/a"}], "unevaluatedProperties": false}` owns the properties of
        # `a`.
        wanted = pointer(place.path)
        todo, seen = [other.path], set[str]()
        while todo:
            path = todo.pop()
            if pointer(path) == wanted:
                return True
            if path not in seen:
                seen.add(path)
                todo += self.parents.get(path, ())
        return False

    def read(self, places: tuple[Place, ...]) -> Shape:
        if len(places) == 1 and (container := self.plain_container(places[0])):
            return container
        places = self.affordable(places)
        for at, place in enumerate(places):
            for keyword in ("anyOf", "oneOf"):
                if keyword in place.mapping:
                    return self.branches(places, at, keyword)
        if any("enum" in place.mapping or "const" in place.mapping for place in places):
            return self.enumerated(places)
        excluded = negation(places, self.report)
        return leaf(places, excluded, KeywordContext(self.report, self.child, self.owns, self.longest))

    def affordable(self, places: tuple[Place, ...]) -> tuple[Place, ...]:
        """Return `places` without the `anyOf`s and `oneOf`s whose combinations would exceed the limit."""
        sizes = {
            (at, keyword): len(place.each(keyword))
            for at, place in enumerate(places)
            for keyword in ("anyOf", "oneOf")
            if keyword in place.mapping
        }
        kept = list(places)
        # Twenty `anyOf`s with two branches each would result in a million shapes. The last `anyOf`s are dropped first.
        while len(sizes) > 1 and prod(sizes.values()) > MAX_OPTIONS:
            (at, keyword), _ = sizes.popitem()
            self.report(
                places[at].path, keyword, f"together with other branches, it has more than {MAX_OPTIONS} combinations"
            )
            kept[at] = kept[at].without(keyword)
        return tuple(kept)

    def branches(self, places: tuple[Place, ...], at: int, keyword: str) -> Shape:
        place = places[at]
        others = (*places[:at], place.without(keyword), *places[at + 1 :])
        listed = place.each(keyword)
        self.adopt(place, listed)
        options = [self.shape((*others, option)) for option in listed]
        # A `oneOf` whose branches exclude each other, such as a string and a number, is equivalent to an `anyOf`.
        if keyword == "anyOf" or exclusive(options, self.definitions):
            return union(options)
        broken = [without_scalar(option) for option in listed]
        if len(broken) > MAX_FEW or None in broken:
            self.report(place.path, "oneOf", "its branches may overlap; it is read as anyOf")
            return union(options)
        # Each branch is combined with the complements of all others. If one branch always matches, all other branches become impossible.
        alone = [[place for place in (*broken[:at], *broken[at + 1 :]) if place] for at in range(len(listed))]
        return union([self.shape((*others, option, *rest)) for option, rest in zip(listed, alone, strict=True)])

    def enumerated(self, places: tuple[Place, ...]) -> Shape:
        """Return the values of `enum` and `const` that also match the other keywords."""
        # `{"enum": [1, "a", 7], "minimum": 5}` allows 7 and "a", since a minimum doesn't apply to strings.
        values = self.listed(places)
        rest = self.shape(tuple(place.without("enum", "const") for place in places))
        if isinstance(rest, Reference) and rest.name not in self.definitions:
            self.report(places[0].path, "$ref", "an enum is combined with a recursive reference")
        if any(map(is_deep, values)):
            self.report(places[0].path, "enum", f"a value is nested deeper than {MAX_SCHEMA_DEPTH} levels")
            return rest
        kept = [Constant(as_json(value)) for value in values if admits(rest, value, self.definitions)]
        return union(list[Shape](kept))

    def listed(self, places: tuple[Place, ...]) -> list[Any]:
        """Return the values that are listed by every `enum` and `const` of `places`."""
        lists = [place.values(key) for place in places for key in ("enum", "const") if key in place.mapping]
        self.count += sum(map(len, lists)) // _VALUES_PER_STEP
        if len(lists) == 1:
            return lists[0]
        everything = [value for values in lists for value in values]
        if any(map(is_deep, everything)):
            return everything  # Values that are nested too deeply can't be compared; `enumerated` reports them.
        # `{"enum": [1, 2]}` with `{"const": 1.0}` allows only 1, in the notation of the first list.
        found = {canonical(value): value for value in lists[0]}
        for values in lists[1:]:
            also = set(map(canonical, values))
            found = {text: value for text, value in found.items() if text in also}
        return list(found.values())


_VALUES_PER_STEP = 10
"""Number of `enum` and `const` values that count as much as one conjunct towards the limits."""


_PLAIN: Mapping[str, Shape] = {
    "string": shapes.Text(),
    "number": shapes.Number(),
    "integer": shapes.Integer(),
    "boolean": shapes.Boolean(),
    "null": shapes.Null(),
}


def _plain(schema: Mapping[str, Any]) -> Shape | None:
    """Return the shape of a schema with only a type, such as `{"type": "string"}`; None for any other schema."""
    kind = schema.get("type")
    return _PLAIN.get(kind) if isinstance(kind, str) and schema.keys() <= _TYPED else None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_TYPED = ANNOTATIONS | {"type"}
_LISTED = frozenset(("type", "enum"))
_PLAIN_ARRAY = _TYPED | {"items"}
_PLAIN_OBJECT = _TYPED | {"properties", "required", "additionalProperties"}
_SHORT = 200
"""Maximum size of a cached schema, in bytes. A schema of this size has at most thirty levels, since each level takes at least six bytes."""
_SHALLOW = MAX_SCHEMA_DEPTH - _SHORT // 6
_REFERRING = (b"$ref", b"Ref")
_IMPLIED = {
    "object": "properties required additionalProperties patternProperties propertyNames minProperties maxProperties"
    f" unevaluatedProperties {ABSENT} {MEMBERS}",
    "array": f"items prefixItems minItems maxItems uniqueItems contains additionalItems unevaluatedItems {ITEMS}",
    "string": "minLength maxLength pattern format",
    "number": "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf",
}
TYPE_OF = {keyword: kind for kind, words in _IMPLIED.items() for keyword in words.split(" ")}

_SCALAR = frozenset(
    ("type", "enum", "const", *(word for word, kind in TYPE_OF.items() if kind in ("string", "number")))
)


_NOTHING_EXCLUDED = Excluded()


def negation(places: Places, report: Callable[[str, str, str], None]) -> Excluded:
    """Return the values that are excluded by `not` in any of `places`. Each `not` that can't be expressed is reported."""
    if not any("not" in place.mapping for place in places):
        return _NOTHING_EXCLUDED
    types: set[str] = set()
    values: list[Any] = []
    for place in places:
        if "not" not in place.mapping:
            continue
        forbidden = place.at("not")
        words = forbidden.mapping.keys() - ANNOTATIONS
        # `not {"type": "null"}` excludes a type, and `not {"enum": ["a"]}` excludes a value.
        if words == {"type"}:
            types |= _named_types(forbidden)
        elif words & {"enum", "const"} and words <= {"enum", "const", "type"}:
            values += _forbidden_values(forbidden)
        else:
            report(place.path, "not", "only types and single values can be excluded")
    texts = frozenset(value for value in values if isinstance(value, str))
    others = frozenset(canonical(value) for value in values if not isinstance(value, str) and not is_deep(value))
    return Excluded(types=frozenset(types), values=others, words=texts)


def _forbidden_values(place: Place) -> list[Any]:
    """Return the values listed in a `not`, except those that don't match its `type`."""
    values, *others = [place.values(keyword) for keyword in ("enum", "const") if keyword in place.mapping]
    for also in others:
        values = [value for value in values if canonical(value) == canonical(also[0])]
    types = _named_types(place) if place.get("type") is not None else TYPES
    return [
        value for value in values if json_type(value) in types or (json_type(value) == "number" and "integer" in types)
    ]


def without_scalar(place: Place) -> Place | None:
    """Return the complement of `place`, or None if `place` restricts more than scalar values and types."""
    scalar = all(keyword in _SCALAR or keyword in ANNOTATIONS for keyword in place.mapping)
    broken = excluded_schemas(place.schema) if scalar else None
    if broken is None:
        return None
    implied = sorted({TYPE_OF[keyword] for keyword in place.mapping.keys() & TYPE_OF.keys()})
    # `{"minimum": 3}` doesn't restrict strings. If it's the only keyword, it implies a number, so strings violate it.
    others = [{"not": {"type": implied}}] if implied and "type" not in place.mapping else []
    return place.made("broken", {"anyOf": [*broken, *others]})


def _named_types(place: Place) -> set[str]:
    """Return the types that `type` and `nullable` allow. `number` includes `integer`."""
    value = place.get("type")
    listed = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(kind, str) and kind in TYPES for kind in listed):
        raise wrong(f"{place.path}/type", f"one of {list(_READERS)}", value)
    return {*listed, *(["null"] if place.get("nullable") is True else []), *(["integer"] if "number" in listed else [])}


def leaf(places: Places, excluded: Excluded, context: KeywordContext) -> Shape:
    """Return the shape of the values that match `places`, which have no references or branches."""
    for place in places:
        # `if` without `then` and `else` has no effect.
        if place.get("if") not in (None, False) and {"then", "else"} & place.mapping.keys():
            context.report(place.path, "if", "a grammar cannot evaluate this condition")
    types = _types(places) - excluded.types
    if not types:
        return Nothing()
    if (
        types == TYPES
        and excluded == _NOTHING_EXCLUDED
        and all(TYPE_OF.keys().isdisjoint(place.mapping) for place in places)
    ):
        return Anything()
    containers = (("[", "array"), ("{", "object"))
    if excluded.values and any(
        text[0] == sign for text in excluded.values for sign, kind in containers if kind in types
    ):
        context.report(places[0].path, "not", "single lists and objects cannot be excluded")
    if "number" in types:
        types -= {"integer"}  # `read_number` includes integers.
    return union([reader(places, excluded, context) for kind, reader in _READERS.items() if kind in types])


def _types(places: Places) -> set[str]:
    """Return the types that all places allow. Without `type`, keywords imply the type."""
    # `{"minimum": 1}` is read as a number, which is what its author means, although JSON Schema accepts any string here, too.
    named = [_named_types(place) for place in places if place.get("type") is not None]
    if named:
        return set.intersection(*named)
    implied = {TYPE_OF[keyword] for place in places for keyword in place.mapping if keyword in TYPE_OF}
    return implied | ({"integer"} if "number" in implied else set()) or set(TYPES)


_READERS: Mapping[str, Callable[[Places, Excluded, KeywordContext], Shape]] = {
    "object": read_object,
    "array": read_array,
    "string": read_text,
    "number": read_number,
    "integer": read_integer,
    "boolean": read_boolean,
    "null": read_null,
}


# Limits.


_ANY_OBJECT = Object(extra=((Text(), Anything()),))


def within(reading: Reading, limits: Limits, report: Callable[[str, str], None]) -> tuple[Reading, Weight]:
    """Return a tool's parameters, widened if they exceed the limits, and the weight of the result.

    `report` is called with the path of each widened part and the reason.
    """
    # First, widen only arguments that exceed a limit on their own, which may be enough.
    weight = reading.weight
    if not weight.too_much(limits):
        return reading, weight
    if isinstance(reading.shape, Object):
        properties = tuple(_narrowed(reading.shape, Scale(), limits, report))
        reading = replace(reading, shape=replace(reading.shape, properties=properties))
        weight = reading.weight
    if reason := weight.too_much(limits):
        report("#", f"{reason}; any arguments may be given")
        reading = replace(reading, shape=_ANY_OBJECT, definitions={})
        weight = reading.weight
    return reading, weight


def _narrowed(shape: Object, scale: Scale, limits: Limits, report: Callable[[str, str], None]) -> Iterator[Property]:
    """Yield the properties. A property that exceeds a limit on its own is widened to any value."""
    for item in shape.properties:
        reason = scale.weigh(item.shape).above(Weight()).too_much(replace(limits, tool_depth=limits.tool_depth - 1))
        if reason:
            report(f"#/properties/{item.name}", f"{reason}; any value may be given")
        yield replace(item, shape=Anything()) if reason else item
