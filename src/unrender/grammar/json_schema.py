"""JSON Schema → shapes: references followed, branches merged, missing types inferred, and a report of what is lost.

Strategy: a place in the schema is described by *conjuncts*, all the subschemas that hold there. `$ref` and `allOf` add
conjuncts, `anyOf` and `oneOf` split them, and what is left is read keyword by keyword (`keywords`), the tightest of all
conjuncts taken. A set of conjuncts met again while it is being read is a recursion and becomes a `Reference`.

Rules: a keyword that cannot be said is reported, with its path, and the shape is wider there; nothing but a schema that
is no schema raises. Keywords imply their type (`properties`: an object). Objects that declare properties are closed
unless `additionalProperties` says otherwise: a model that invents arguments is never what the caller wants.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from unrender.errors import GrammarError
from unrender.grammar.admission import admits, canonical, disjoint
from unrender.grammar.finite import finite_definitions, without_endless
from unrender.grammar.keywords import leaf, negation
from unrender.grammar.places import Context, Place
from unrender.grammar.shapes import Anything, Constant, Nothing, Reference, Shape, union
from unrender.messages import JsonSchema

MAX_SHAPES = 20_000
"""A schema that unfolds into more shapes than this is cut off: the rest may be anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """A keyword that is not enforced: where it stands (JSON pointer) and why."""

    path: str
    keyword: str
    reason: str
    tool: str = ""

    def __str__(self) -> str:
        tool = f"tool {self.tool!r}: " if self.tool else ""
        return f"{tool}{self.path}: {self.keyword} is not enforced: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A schema, understood."""

    shape: Shape
    definitions: Mapping[str, Shape]
    unsupported: tuple[Unsupported, ...]


def read_schema(schema: JsonSchema, *, longest: int | None = None) -> Reading:
    """Return the shape of the values that obey `schema`, and what of it cannot be enforced.

    Lengths of strings and lists beyond `longest` are not counted, and reported.

    Raises `GrammarError` when a keyword's value is no JSON Schema at all, e.g. a broken regular expression or a `$ref`
    that leads nowhere; the message names the path.
    """
    reader = _Reader(schema, longest)
    shape = reader.shape((Place(schema, "#"),))
    definitions = finite_definitions(reader.definitions)
    if len(definitions) < len(reader.definitions):
        shape = without_endless(shape, definitions)
    if isinstance(shape, Nothing):
        raise GrammarError("schema: no value can satisfy it")
    return Reading(shape=shape, definitions=definitions, unsupported=tuple(reader.unsupported.values()))


_ANNOTATIONS = frozenset(
    [
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "$schema",
        "$id",
        "$comment",
        "$anchor",
        "$defs",
        "definitions",
    ]
)


@dataclass(slots=True)
class _Reader:
    root: JsonSchema
    longest: int | None
    definitions: dict[str, Shape] = field(default_factory=dict)
    unsupported: dict[tuple[str, str], Unsupported] = field(default_factory=dict)
    known: dict[tuple[str, ...], Shape] = field(default_factory=dict)
    open: dict[tuple[str, ...], str] = field(default_factory=dict)
    recursive: set[str] = field(default_factory=set)
    unguarded: frozenset[tuple[str, ...]] = frozenset()
    count: int = 0

    def report(self, path: str, keyword: str, reason: str) -> None:
        path = re.sub(r"/-\w+", "", path)
        found = Unsupported(path=path, keyword=keyword, reason=reason)
        self.unsupported.setdefault((path, keyword), found)

    def child(self, places: tuple[Place, ...]) -> Shape:
        """Return the shape of a value inside another; here a recursion is sound."""
        outside, self.unguarded = self.unguarded, frozenset()
        shape = self.shape(places)
        self.unguarded = outside
        return shape

    def shape(self, places: tuple[Place, ...]) -> Shape:
        """Return the shape of the values that obey all of `places`."""
        places = tuple(self.flatten(places))
        if any(place.schema is False for place in places):
            return Nothing()
        key = tuple(sorted({place.path for place in places}))
        if key in self.unguarded:
            self.report(key[0], "$ref", "it refers to itself and nothing else")
            return Nothing()
        if key in self.known:
            return self.known[key]
        if key in self.open:
            self.recursive.add(self.open[key])
            return Reference(self.open[key])
        if self.count >= MAX_SHAPES:
            self.report("#", "$ref", f"the schema unfolds into more than {MAX_SHAPES} parts")
            return Anything()
        return self.fresh(key, places)

    def fresh(self, key: tuple[str, ...], places: tuple[Place, ...]) -> Shape:
        self.count += 1
        name = self.open[key] = f"recursive-{self.count}"
        outside, self.unguarded = self.unguarded, self.unguarded | {key}
        shape = self.read(places)
        self.unguarded = outside
        del self.open[key]
        if name in self.recursive:
            self.definitions[name] = shape
            shape = Reference(name)
        self.known[key] = shape
        return shape

    def flatten(self, places: tuple[Place, ...]) -> Iterator[Place]:
        """Yield the conjuncts of `places`, references followed, `allOf` taken apart, empty ones dropped."""
        seen: set[str] = set()
        queue = list(places)
        while queue:
            place = queue.pop(0)
            if isinstance(place.schema, bool):
                if not place.schema:
                    yield place
                continue
            if place.path in seen:
                continue
            seen.add(place.path)
            added, rest = self.unfold(place)
            queue[:0] = added
            if any(keyword not in _ANNOTATIONS for keyword in rest):
                yield Place(rest, place.path)

    def unfold(self, place: Place) -> tuple[list[Place], Mapping[str, Any]]:
        schema = place.mapping
        if "$ref" not in schema and "allOf" not in schema:
            return [], schema
        added = [self.follow(schema["$ref"], place.path)] if "$ref" in schema else []
        added += place.each("allOf")
        return added, {keyword: value for keyword, value in schema.items() if keyword not in ("$ref", "allOf")}

    def follow(self, reference: Any, path: str) -> Place:
        """Return the place that `reference` points to."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            self.report(path, "$ref", f"only references within the schema are followed, found {reference!r:.80}")
            return Place(True, path)
        target: Any = self.root
        for step in filter(None, reference[1:].split("/")):
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(target, list) and name.isdecimal() and int(name) < len(target):
                target = target[int(name)]
            elif isinstance(target, Mapping) and name in target:
                target = target[name]
            else:
                raise GrammarError(f"{path}/$ref: {reference!r} leads nowhere: {name!r} is missing")
        return Place.checked(target, reference.rstrip("/"))

    def read(self, places: tuple[Place, ...]) -> Shape:
        for at, place in enumerate(places):
            for keyword in ("anyOf", "oneOf"):
                if keyword in place.mapping:
                    return self.branches(places, at, keyword)
        if any("enum" in place.mapping or "const" in place.mapping for place in places):
            return self.enumerated(places)
        reduced, excluded = negation(places, self.report)
        return leaf(reduced, excluded, Context(self.report, self.child, self.longest))

    def branches(self, places: tuple[Place, ...], at: int, keyword: str) -> Shape:
        place = places[at]
        others = (*places[:at], place.without(keyword), *places[at + 1 :])
        options = [self.shape((*others, option)) for option in place.each(keyword)]
        if keyword == "oneOf" and not self.exclusive(options):
            self.report(place.path, "oneOf", "its branches may overlap; it is read as anyOf")
        return union(options)

    def exclusive(self, options: list[Shape]) -> bool:
        pairs = ((a, b) for at, a in enumerate(options) for b in options[:at])
        return all(disjoint(a, b, self.definitions) for a, b in pairs)

    def enumerated(self, places: tuple[Place, ...]) -> Shape:
        """Return the values of `enum` and `const` that obey the other keywords, too."""
        values: dict[str, Any] | None = None
        for place in places:
            for keyword in ("enum", "const"):
                if keyword in place.mapping:
                    listed = {canonical(value): value for value in place.values(keyword)}
                    values = listed if values is None else {k: v for k, v in values.items() if k in listed}
        stripped = tuple(place.without("enum", "const") for place in places)
        rest = self.shape(stripped)
        if isinstance(rest, Reference) and rest.name not in self.definitions:
            self.report(places[0].path, "$ref", "its values are listed inside of what it refers to")
        kept = [Constant(text) for text, value in (values or {}).items() if admits(rest, value, self.definitions)]
        return union(list[Shape](kept))
