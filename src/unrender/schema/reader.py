"""Reads JSON Schema into shapes: follows references, merges branches, infers types, and reports losses.

Strategy: a place in the schema is described by *conjuncts*, all the subschemas that hold there. `$ref` and `allOf` add
conjuncts, `anyOf` and `oneOf` split them, and what is left is read keyword by keyword (`keywords`), the tightest of all
conjuncts taken. A set of conjuncts met again while it is being read is a recursion and becomes a `Reference`.

Rules: a keyword that cannot be said is reported, with its path, and the shape is wider there; only an invalid schema
raises. Keywords imply their type (`properties`: an object). Objects that declare properties are closed unless
`additionalProperties` says otherwise: a model that invents arguments is never what the caller wants. Every schema is
read within budgets; a part that is over one may be anything, and is reported.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

from unrender.cache import SHARED, content_key
from unrender.errors import GrammarError
from unrender.freezing import FrozenDict, thawed
from unrender.limits import (
    MAX_ALTERNATIVES,
    MAX_CONJUNCTS,
    MAX_CONJUNCTS_READ,
    MAX_EXCLUSIVE_BRANCHES,
    MAX_SCHEMA_DEPTH,
)
from unrender.messages.wire import JsonSchema
from unrender.schema.admission import admits, as_json, canonical, exclusive
from unrender.schema.conjuncts import ANNOTATIONS, unfolded
from unrender.schema.keywords import leaf, negation, without_scalar
from unrender.schema.kinds import finite_definitions, without_endless
from unrender.schema.places import Context, Place, is_deep, pointer
from unrender.schema.references import References
from unrender.schema.shapes import Anything, Constant, Nothing, Reference, Shape, union
from unrender.schema.weights import Scale, Weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """A keyword that is not enforced: where it is (JSON pointer) and why."""

    path: str
    keyword: str
    reason: str
    tool: str = ""

    def __str__(self) -> str:
        tool = f"tool {self.tool!r}: " if self.tool else ""
        return f"{tool}{self.path}: {self.keyword} is not enforced: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A schema in the form of shapes."""

    shape: Shape
    definitions: Mapping[str, Shape]
    unsupported: tuple[Unsupported, ...]

    @cached_property
    def weight(self) -> Weight:
        """What it takes to be written."""
        return Scale(self).whole()


def read_schema(schema: JsonSchema, *, longest: int | None = None, at: str = "#") -> Reading:
    """Return the shape of the values that obey `schema`, and the keywords that cannot be enforced.

    Lengths of strings and lists beyond `longest` are not counted, and reported. `at` (a JSON pointer after `#`) reads
    only a part of the schema.

    Raises `GrammarError` when a keyword's value is not JSON Schema, e.g. a broken regular expression or a `$ref` that
    leads nowhere; the message names the path. No schema takes longer than the budgets of this module allow.
    """
    schema = thawed(schema) if isinstance(schema, FrozenDict) else schema
    key = content_key(schema)
    found: Reading | None = SHARED.get(("schema", key, longest, at)) if key else None
    if found is None:
        reader = _Reader(References(schema), longest)
        found = _read(reader, at)
        if key:
            _keep(found, (key, longest, at), len(key) * _BYTES + reader.count * _BYTES_PER_STEP)
    return found


def _keep(found: Reading, place: tuple[bytes, int | None, str], weight: int) -> None:
    key, longest, at = place
    SHARED.put(("schema", *place), found, weight)
    if longest is not None and not found.unsupported:  # All lengths are counted already.
        SHARED.put(("schema", key, None, at), found, weight)


_BYTES = 10
"""Bytes that the shapes take for each byte of a schema's names, values and patterns."""
_BYTES_PER_STEP = 400
"""Bytes that a shape takes besides."""


def _read(reader: _Reader, at: str) -> Reading:
    start = reader.references.start()
    shape = reader.shape(((None if at == "#" else reader.references.follow(at, start)) or start,))
    definitions = finite_definitions(reader.definitions)
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
    """Path → the paths of the subschemas that hold only together with it."""
    count: int = 0
    depth: int = 0

    def report(self, path: str, keyword: str, reason: str) -> None:
        found = Unsupported(path=pointer(path), keyword=keyword, reason=reason)
        self.unsupported.setdefault((found.path, keyword), found)

    def child(self, places: tuple[Place, ...]) -> Shape:
        """Return the shape of a value inside another; here a recursion is sound."""
        outside, self.unguarded = self.unguarded, frozenset()
        shape = self.shape(places)
        self.unguarded = outside
        return shape

    def shape(self, places: tuple[Place, ...]) -> Shape:
        """Return the shape of the values that obey all of `places`."""
        places = self.flatten(places)
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
        over = self.over_budget()
        if over and places:
            self.report(key[0], "schema", over)
            return Anything()
        return self.read_once(key, places)

    def over_budget(self) -> str:
        """Return why nothing more is read; empty as long as there is a budget."""
        if self.depth > MAX_SCHEMA_DEPTH:
            return f"it is nested deeper than {MAX_SCHEMA_DEPTH} levels"
        return (
            f"the whole schema unfolds into more than {MAX_CONJUNCTS_READ} parts"
            if self.count >= MAX_CONJUNCTS_READ
            else ""
        )

    def read_once(self, key: _Key, places: tuple[Place, ...]) -> Shape:
        self.count += max(len(places), 1)
        name = self.open[key] = f"recursive-{self.count}"
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

    def flatten(self, places: tuple[Place, ...]) -> tuple[Place, ...]:
        """Return the conjuncts of `places`, references followed, `allOf` taken apart, empty ones dropped."""
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
                self.report(place.path, "schema", f"more than {MAX_CONJUNCTS} subschemas hold for the same value")
                break
            seen.add(place.path)
            added, rest = unfolded(place, self.references, self.report)
            self.adopt(place, added)
            queue.extendleft(reversed(added))
            if rest.mapping.keys() - ANNOTATIONS:
                found.append(rest)
        return tuple(found)

    def adopt(self, parent: Place, children: list[Place]) -> None:
        """Note that `children` hold because `parent` does; what is below `not` evaluates nothing for it."""
        for child in children:
            if not child.path.startswith(f"{parent.path}/not"):
                self.parents.setdefault(child.path, set()).add(parent.path)

    def owns(self, place: Place, other: Place) -> bool:
        """Return whether `other` is `place`, or holds because `place` does."""
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
        places = self.affordable(places)
        for at, place in enumerate(places):
            for keyword in ("anyOf", "oneOf"):
                if keyword in place.mapping:
                    return self.branches(places, at, keyword)
        if any("enum" in place.mapping or "const" in place.mapping for place in places):
            return self.enumerated(places)
        excluded = negation(places, self.report)
        return leaf(places, excluded, Context(self.report, self.child, self.owns, self.longest))

    def affordable(self, places: tuple[Place, ...]) -> tuple[Place, ...]:
        """Return `places` without the branches that would multiply beyond the budget."""
        sizes = {
            (at, keyword): len(place.each(keyword))
            for at, place in enumerate(places)
            for keyword in ("anyOf", "oneOf")
            if keyword in place.mapping
        }
        kept = list(places)
        while len(sizes) > 1 and prod(sizes.values()) > MAX_ALTERNATIVES:
            (at, keyword), _ = sizes.popitem()
            self.report(places[at].path, keyword, f"with others it makes more than {MAX_ALTERNATIVES} combinations")
            kept[at] = kept[at].without(keyword)
        return tuple(kept)

    def branches(self, places: tuple[Place, ...], at: int, keyword: str) -> Shape:
        place = places[at]
        others = (*places[:at], place.without(keyword), *places[at + 1 :])
        listed = place.each(keyword)
        self.adopt(place, listed)
        options = [self.shape((*others, option)) for option in listed]
        if keyword == "anyOf" or exclusive(options, self.definitions):
            return union(options)
        broken = [without_scalar(option) for option in listed]
        if len(broken) > MAX_EXCLUSIVE_BRANCHES or None in broken:
            self.report(place.path, "oneOf", "its branches may overlap; it is read as anyOf")
            return union(options)
        return union([self.alone(others, listed, broken, at) for at in range(len(listed))])

    def alone(self, others: tuple[Place, ...], listed: list[Place], broken: list[Place | None], at: int) -> Shape:
        """Return the shape of the values that obey only one of the branches that are listed."""
        rest = [place for place in (*broken[:at], *broken[at + 1 :]) if place]
        return self.shape((*others, listed[at], *rest))

    def enumerated(self, places: tuple[Place, ...]) -> Shape:
        """Return the values of `enum` and `const` that also obey the other keywords."""
        values = self.listed(places)
        rest = self.shape(tuple(place.without("enum", "const") for place in places))
        if isinstance(rest, Reference) and rest.name not in self.definitions:
            self.report(places[0].path, "$ref", "its values are listed inside of what it refers to")
        if any(map(is_deep, values)):
            self.report(places[0].path, "enum", f"a value is nested deeper than {MAX_SCHEMA_DEPTH} levels")
            return rest
        kept = [Constant(as_json(value)) for value in values if admits(rest, value, self.definitions)]
        return union(list[Shape](kept))

    def listed(self, places: tuple[Place, ...]) -> list[Any]:
        """Return the values that every `enum` and `const` of `places` lists."""
        lists = [place.values(key) for place in places for key in ("enum", "const") if key in place.mapping]
        self.count += sum(map(len, lists)) // _VALUES_PER_STEP
        if len(lists) == 1:
            return lists[0]
        if any(is_deep(value) for values in lists for value in values):
            return [value for values in lists for value in values]
        return self.common(lists)

    def common(self, lists: list[list[Any]]) -> list[Any]:
        found = {canonical(value): value for value in lists[0]}
        for values in lists[1:]:
            also = set(map(canonical, values))
            found = {text: value for text, value in found.items() if text in also}
        return list(found.values())


_VALUES_PER_STEP = 10
"""Listed values that cost as much as reading one conjunct."""
