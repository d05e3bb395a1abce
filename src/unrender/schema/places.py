"""Defines `Place`, a subschema with its path, and resolves references.

Several places may apply to the same value (`$ref`, `allOf`). If several of them have the same keyword, the most restrictive value wins.

References are JSON pointers, anchors, or URIs of parts with an `$id`. Nothing is downloaded. A reference to another document isn't
resolved, and a reference to a missing part of the schema is an error. A `$dynamicRef` refers to the anchor in the outermost of the
resources entered so far that contain this anchor. A part of a schema may therefore have several meanings. Each meaning is a separate place
with a marked path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from math import isfinite
from typing import Any
from urllib.parse import unquote, urljoin

from unrender.errors import GrammarError
from unrender.json_values import JsonSchema
from unrender.limits import MAX_COUNT, MAX_INTEGER_DIGITS, MAX_SCHEMA_DEPTH
from unrender.schema.shapes import Shape
from unrender.signatures import checked


def value_in_words(value: Any) -> str:
    """Return `value` as shown in error messages, with at most 80 characters.

    >>> value_in_words("a")
    "'a'"
    """
    try:
        return f"{value!r:.80}"
    except (ValueError, RecursionError):
        return f"a {type(value).__name__} that is too large to be shown"


def wrong(path: str, expected: str, found: Any) -> GrammarError:
    """Return the error for an invalid value of a keyword."""
    return GrammarError(f"{pointer(path)}: expected {expected}, found {value_in_words(found)}")


def step_text(step: object) -> str:
    """Return `step` as one escaped step of a JSON pointer."""
    return f"/{str(step).replace('~', '~0').replace('/', '~1')}"


def base_of(base: str, schema: Any) -> str:
    """Return the base URI inside `schema`; `base` is the base URI around it."""
    own = schema.get("$id") if isinstance(schema, (dict, Mapping)) else None
    return joined(base, own).partition("#")[0] if isinstance(own, str) else base


def joined(base: str, reference: str) -> str:
    """Return `reference` as a URI, resolved against the URI `base`."""
    if reference.startswith("#"):
        return base + reference
    try:
        return urljoin(base, reference)
    except ValueError:
        return reference


def entered(scope: tuple[str, ...], base: str) -> tuple[str, ...]:
    """Return the dynamic scope after entering the resource `base` from `scope`."""
    return scope if base in scope else (*scope, base)


_MARK = "\0"
"""Prefix of path steps that the reader added, which aren't part of the JSON pointer."""
_MARKED = re.compile(r"/\0[^/]*(/[0-9]+)?")


def pointer(path: str) -> str:
    """Return the JSON pointer for the path of a place, without the steps that the reader added."""
    return _MARKED.sub("", path)


_SCHEMAS = (dict, bool, Mapping)
"""Python types of a JSON Schema. `dict` is first, since it's the fastest to check."""


@dataclass(frozen=True, slots=True)
class Place:
    """A subschema, its path (a JSON pointer), and the base URI of its references."""

    schema: JsonSchema
    path: str
    base: str = ""
    scope: tuple[str, ...] = ()
    """Base URIs of the resources entered so far, outermost first. `$dynamicRef` depends on them."""
    mapping: Mapping[str, Any] = field(init=False, repr=False, compare=False)
    """The keywords of the schema. It's a field because a property would be slower, and it's read hundreds of times even for small schemas.

    A keyword with the value null counts as absent, since SDK objects contain all their fields: `{"type": "object", "required": null}`.
    """

    def __post_init__(self) -> None:
        mapping = {} if isinstance(self.schema, bool) else self.schema
        if None in mapping.values():
            mapping = {word: value for word, value in mapping.items() if value is not None or word == "const"}
        object.__setattr__(self, "mapping", mapping)

    @classmethod
    def checked(cls, schema: Any, path: str, base: str = "") -> Place:
        """Return the place, or raise `GrammarError` if `schema` isn't a JSON Schema."""
        if not isinstance(schema, _SCHEMAS):
            raise wrong(path, "a JSON Schema", schema)
        return cls(schema, path, base)

    def get(self, keyword: str) -> Any:
        return self.mapping.get(keyword)

    def at(self, *steps: str | int) -> Place:
        """Return the subschema reached by `steps`."""
        schema: Any = self.schema
        for step in steps:
            schema = schema[step]
        path = self.path + "".join(map(step_text, steps))
        # Most schemas are a single document, so the scope is only recorded after the first change of base URI.
        if not isinstance(schema, _SCHEMAS):
            raise wrong(path, "a JSON Schema", schema)
        base = base_of(self.base, schema)
        return Place(schema, path, base, entered(self.scope, base) if self.scope or base != self.base else ())

    def each(self, keyword: str) -> list[Place]:
        """Return the subschemas in the list `keyword`."""
        listed = self.mapping.get(keyword, [])
        if not isinstance(listed, list | tuple):
            raise wrong(f"{self.path}/{keyword}", "a list", listed)
        return [self.at(keyword, index) for index in range(len(listed))]

    def values(self, keyword: str) -> list[Any]:
        """Return the values that `enum` or `const` allows."""
        found = self.mapping[keyword]
        values = [found] if keyword == "const" else found
        if not isinstance(values, list | tuple):
            raise wrong(f"{self.path}/enum", "a list", found)
        # Other Python values, e.g. dates, can't be compared or written as JSON.
        for value in values:
            if not isinstance(value, str):
                _check_json(value, f"{self.path}/{keyword}")
        return list(values)

    def without(self, *keywords: str) -> Place:
        """Return the place without `keywords`. The path of the result is marked, since the result is a different conjunct."""
        if not any(keyword in self.mapping for keyword in keywords):
            return self
        rest = {keyword: value for keyword, value in self.mapping.items() if keyword not in keywords}
        return self.made(keywords[0], rest)

    def made(self, name: str, schema: JsonSchema) -> Place:
        """Return a place whose schema replaces a keyword of this place."""
        return Place(schema, f"{self.path}/{_MARK}{name.replace('/', '~1')}", self.base, self.scope)

    def marked(self, name: str) -> Place:
        """Return this subschema with a different path, so that it can be interpreted in another way."""
        return self.made(name, self.schema)


Places = tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class KeywordContext:
    """Callbacks for keyword readers: `report(path, keyword, reason)`, and `child`, which returns the shape of nested values."""

    report: Callable[[str, str, str], None]
    child: Callable[[Places], Shape]
    owns: Callable[[Place, Place], bool]
    """Function that returns True if the second place applies because of the first one. The second one's properties then count as evaluated.
    """
    longest: int | None
    """Maximum enforced length of strings and arrays. None if the engine counts lengths itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """Types and single values that `not` excludes."""

    types: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    """Excluded values other than strings, as canonical JSON."""
    words: frozenset[str] = frozenset()
    """Excluded strings."""


def _check_json(value: Any, path: str) -> None:
    """Raise `GrammarError` unless `value` is JSON data. Values nested deeper than the limit aren't checked."""
    for item in chain.from_iterable(islice(_levels(value), MAX_SCHEMA_DEPTH + 1)):
        if not _is_json(item):
            raise GrammarError(f"{path}: expected JSON, found {value_in_words(item)}")


def is_deep(value: Any) -> bool:
    """Return whether `value` is nested deeper than `MAX_SCHEMA_DEPTH`."""
    return not isinstance(value, str) and any(islice(_levels(value), MAX_SCHEMA_DEPTH, None))


def _levels(value: Any) -> Iterator[list[Any]]:
    """Yield the values at each nesting depth. If a value contains itself, the iteration never ends."""
    level = [value]
    while level:
        yield level
        level = [part for item in level for part in _parts(item)]


def _is_json(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) for key in value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return isfinite(value) if isinstance(value, float) else abs(value) < _HUGE
    return value is None or isinstance(value, str | bool | list | tuple)


_HUGE = 10**1000
"""Limit for the absolute value of integers, since Python refuses to print numbers with thousands of digits."""


def _parts(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else []


def bounds_of(places: Places, keyword: str, *, whole: bool = False) -> list[tuple[Place, float]]:
    """Return the values of a numeric keyword, each with its place."""
    found = [(place, value) for place in places if (value := place.get(keyword)) is not None]
    for place, value in found:
        right = isinstance(value, int | float) and not isinstance(value, bool) and _is_json(value)
        if not right or (whole and value % 1):
            raise wrong(f"{place.path}/{keyword}", "a whole number" if whole else "a number", value)
    return found


def size_of(places: Places, low: str, high: str, context: KeywordContext) -> tuple[int, int | None]:
    """Return the most restrictive bounds of a size. Bounds that are too large are reported and ignored."""
    if not any(keyword in place.mapping for place in places for keyword in (low, high)):
        return 0, None
    longest = MAX_COUNT if context.longest is None else context.longest
    counted: dict[str, list[int]] = {low: [], high: []}
    for keyword, sizes in counted.items():
        for place, value in bounds_of(places, keyword, whole=True):
            if value <= longest:
                sizes.append(int(value))
            else:
                context.report(place.path, keyword, f"at most {longest} repetitions can be counted")
    return max((0, *counted[low])), min(counted[high], default=None)


_DATA = frozenset(("enum", "const", "default", "examples", "example"))
"""Keywords whose values aren't schemas. An `$id` inside such a value is just data."""


@dataclass(slots=True)
class References:
    """The parts of a schema by URI, indexed when the first reference is resolved."""

    root: JsonSchema
    indexed: bool = False
    resources: dict[str, Place] = field(default_factory=dict)
    anchors: dict[tuple[str, str], Place] = field(default_factory=dict)
    dynamic: dict[str, dict[str, Place]] = field(default_factory=dict)
    """Maps `$dynamicAnchor` and base URI to a place."""
    scopes: dict[tuple[str, ...], int] = field(default_factory=dict)
    """Maps each dynamic scope seen so far to its number."""

    def start(self) -> Place:
        """Return the root place of the schema."""
        base = base_of("", self.root)
        return Place(self.root, "#", base, (base,))

    def follow(self, reference: str, place: Place) -> Place | None:
        """Return the target of `reference`, which occurs in `place`, or None if the target is in another document.

        Raises `GrammarError` if the target is a missing part of this schema.
        """
        target = self.target(reference, place)
        return target and self.reached(target, place)

    def follow_dynamic(self, reference: str, place: Place) -> Place | None:
        """Return the target of a `$dynamicRef`, which depends on the resources entered before `place`.

        A reference without a dynamic target is resolved like a `$ref`.
        """
        self.index()
        # If the target is a `$dynamicAnchor`, an outer resource may have overridden it.
        target = self.target(reference, place)
        name = target and target.get("$dynamicAnchor")
        if target is None or name != reference.partition("#")[2]:
            return target and self.reached(target, place)
        places = self.dynamic[name]
        # If another schema extends a tree schema, the tree's `$dynamicRef`s lead to the extended nodes.
        outermost = next((places[base] for base in place.scope if base in places), target)
        return self.reached(outermost, place)

    def reached(self, target: Place, place: Place) -> Place:
        """Return `target` with the dynamic scope that results from reaching it from `place`."""
        if not self.indexed:
            return replace(target, scope=place.scope)
        scope = self.decisive(entered(place.scope, target.base))
        # The number of the scope becomes part of the path, except for 0, the initial scope.
        number = self.scopes.setdefault(scope, len(self.scopes))
        return replace(target.marked(f"scope {number}") if number else target, scope=scope)

    def decisive(self, scope: tuple[str, ...]) -> tuple[str, ...]:
        """Return the resources of `scope` that can affect the target of a dynamic anchor."""
        # Scopes with the same dynamic targets are equivalent, so that a part is read only once for all of them.
        first = (next((base for base in scope if base in places), "") for places in self.dynamic.values())
        deciding = set(first)
        return tuple(base for base in scope if base in deciding)

    def target(self, reference: str, place: Place) -> Place | None:
        """Return the static target of `reference`, regardless of the dynamic scope."""
        uri, _, fragment = joined(place.base, reference).partition("#")
        if uri or not fragment.startswith("/"):
            self.index()
        # References such as "#/$defs/a" need no index, but "#a" and "http://h/b" do.
        resource = self.resources.get(uri) if uri else self.start()
        if resource is None:
            return None
        if not fragment or fragment.startswith("/"):
            return _pointed(resource, fragment, reference, place)
        found = self.anchors.get((uri, unquote(fragment)))
        if not found:
            missing = f"{fragment!r:.80} is missing"
            raise GrammarError(f"{place.path}/$ref: {value_in_words(reference)} has no target: {missing}")
        return found

    def index(self) -> None:
        """Index all parts with an `$id` or anchor. Each part of the schema is visited once."""
        if self.indexed:
            return
        self.indexed = True
        start = self.start()
        self.resources = {"": start, start.base: start}
        seen: set[int] = set()
        todo = [start]
        while todo:
            place = todo.pop()
            # A Python object may occur several times in a schema, or contain itself.
            if id(place.schema) not in seen:
                seen.add(id(place.schema))
                self.note(place)
                todo += parts_of(place)
        self.scopes = {self.decisive(start.scope): 0}

    def note(self, place: Place) -> None:
        if isinstance(place.get("$id"), str):
            self.resources.setdefault(place.base, place)
        for keyword in ("$anchor", "$dynamicAnchor"):
            name = place.get(keyword)
            if isinstance(name, str):
                self.anchors.setdefault((place.base, name), place)
                if keyword == "$dynamicAnchor":
                    self.dynamic.setdefault(name, {}).setdefault(place.base, place)


def parts_of(place: Place) -> Iterator[Place]:
    """Yield the values directly inside `place` that may be schemas, including those in lists."""
    for keyword, value in place.mapping.items():
        if keyword in _DATA:
            continue
        inside: list[tuple[tuple[object, ...], Any]] = [((keyword,), value)]
        if isinstance(value, list | tuple):
            inside = [((keyword, at), item) for at, item in enumerate(value)]
        for steps, schema in inside:
            if isinstance(schema, Mapping):
                path = place.path + "".join(map(step_text, steps))
                yield Place(schema, path, base_of(place.base, schema))


def _pointed(resource: Place, fragment: str, reference: str, place: Place) -> Place:
    """Return the target of a JSON pointer."""
    target: Any = resource.schema
    base, path = resource.base, resource.path
    for step in fragment.split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        # Some authors use `#/` for the root. An empty key takes precedence if it exists.
        if not name and not (isinstance(target, Mapping) and name in target):
            continue
        target = _stepped(target, name)
        if target is _MISSING:
            raise GrammarError(f"{place.path}/$ref: {value_in_words(reference)} has no target: {name!r:.80} is missing")
        # A part with its own `$id` changes the base URI of the references inside it.
        base, path = base_of(base, target), path + step_text(name)
    return Place.checked(target, path, base)


_MISSING = object()


def _stepped(target: Any, name: str) -> Any:
    if isinstance(target, Mapping):
        return target.get(name, _MISSING)
    if isinstance(target, list | tuple) and name.isascii() and name.isdecimal() and len(name) <= MAX_INTEGER_DIGITS:
        return target[int(name)] if int(name) < len(target) else _MISSING
    return _MISSING


@checked
def bundled(schema: JsonSchema, documents: Mapping[str, JsonSchema]) -> JsonSchema:
    """Return `schema` with the `documents` (URI → schema) that it refers to in its `$defs`, including indirect references.

    The result can be used as a tool's parameters or a response schema, without network access. `schema` and `documents` aren't modified.
    Raises `GrammarError` if a required document isn't a JSON Schema.

    >>> bundled({"items": {"$ref": "id.json"}}, {"id.json": {"type": "integer"}, "other.json": {}})
    {'items': {'$ref': 'id.json'}, '$defs': {'id.json': {'$id': 'id.json', 'type': 'integer'}}}
    """
    if isinstance(schema, bool):
        return schema
    found: dict[str, JsonSchema] = {}
    todo: list[tuple[JsonSchema, str]] = [(schema, base_of("", schema))]
    while todo:
        for uri in _referred(*todo.pop()):
            if uri in documents and uri not in found:
                found[uri] = _named(uri, documents[uri])
                todo.append((found[uri], uri))
    held = schema.get("$defs", {})
    taken = {uri: document for uri, document in found.items() if uri not in held}
    return {**schema, "$defs": {**held, **taken}} if taken else schema


def _referred(schema: Any, base: str) -> Iterator[str]:
    """Yield the URIs of the documents that `schema` refers to. `base` is the base URI of `schema`."""
    todo = [Place(schema, "#", base_of(base, schema))]
    while todo:
        place = todo.pop()
        for keyword in ("$ref", "$dynamicRef"):
            reference = place.get(keyword)
            if isinstance(reference, str):
                yield joined(place.base, reference).partition("#")[0]
        todo += parts_of(place)


def _named(uri: str, document: Any) -> JsonSchema:
    """Return a document with `uri` as its `$id`. A document with a different `$id` is wrapped in an `allOf`."""
    if isinstance(document, bool):
        return {"$id": uri, "allOf": [document]}
    if not isinstance(document, Mapping):
        raise GrammarError(f"documents[{uri!r}]: expected a JSON Schema, found {value_in_words(document)}")
    own = document.get("$id")
    if not isinstance(own, str):
        return {"$id": uri, **document}
    return document if joined(uri, own) == uri else {"$id": uri, "allOf": [document]}
