"""Defines a place in a JSON Schema: its subschema, its path, how its keywords are read, and where its `$ref`s lead.

Several places may hold for one value (`$ref`, `allOf`): of each keyword the tightest of all of them counts.

References are JSON pointers, anchors, and parts that have their own URI. Nothing is fetched. A reference to another document has no target;
a reference to a missing part of the schema is an error. A `$dynamicRef` leads to the outermost resource
on the way to it that has the anchor. The way may change where an anchor leads. Then a part that is reached by another
way is another place, and its path carries a mark.
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


def value_in_words(value: Any) -> str:
    """Return `value` as errors show it, in at most 80 characters.

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
    """Return one step of a JSON pointer."""
    return f"/{str(step).replace('~', '~0').replace('/', '~1')}"


def base_of(base: str, schema: Any) -> str:
    """Return the base URI inside `schema`; `base` is the base URI around it."""
    own = schema.get("$id") if isinstance(schema, (dict, Mapping)) else None
    return joined(base, own).partition("#")[0] if isinstance(own, str) else base


def joined(base: str, reference: str) -> str:
    """Return the URI of `reference`, resolved against `base`."""
    if reference.startswith("#"):
        return base + reference
    try:
        return urljoin(base, reference)
    except ValueError:
        return reference


def entered(scope: tuple[str, ...], base: str) -> tuple[str, ...]:
    """Return the dynamic scope after the resource `base` is entered from `scope`."""
    return scope if base in scope else (*scope, base)


_MARK = "\0"
"""Begins the steps of a path that no JSON pointer has: what this reader put there itself."""
_MARKED = re.compile(r"/\0[^/]*(/[0-9]+)?")


def pointer(path: str) -> str:
    """Return the path of a place as a JSON pointer, without the marks that the reader added."""
    return _MARKED.sub("", path)


_SCHEMAS = (dict, bool, Mapping)
"""Types of a JSON Schema; `dict` first, since it is recognised at once."""


@dataclass(frozen=True, slots=True)
class Place:
    """A subschema, where it is (JSON pointer), and the base URI of its references."""

    schema: JsonSchema
    path: str
    base: str = ""
    scope: tuple[str, ...] = ()
    """The base URIs of the resources that were entered on the way here, outermost first: what `$dynamicRef` asks."""
    mapping: Mapping[str, Any] = field(init=False, repr=False, compare=False)
    """The keywords; a field, since a small schema asks for it three hundred times."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "mapping", {} if isinstance(self.schema, bool) else self.schema)

    @classmethod
    def checked(cls, schema: Any, path: str, base: str = "") -> Place:
        """Return the place, or raise `GrammarError` when `schema` is not a JSON Schema."""
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
        # Most schemas are in one document: the scope is kept only from the first base on.
        if not isinstance(schema, _SCHEMAS):
            raise wrong(path, "a JSON Schema", schema)
        base = base_of(self.base, schema)
        return Place(schema, path, base, entered(self.scope, base) if self.scope or base != self.base else ())

    def each(self, keyword: str) -> list[Place]:
        """Return the subschemas that `keyword` lists."""
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
        # A value as from Python, a date for example, could neither be compared nor written.
        for value in values:
            if not isinstance(value, str):
                _check_json(value, f"{self.path}/{keyword}")
        return list(values)

    def without(self, *keywords: str) -> Place:
        """Return the place without `keywords`. Its path is marked, since it is a different conjunct."""
        if not any(keyword in self.mapping for keyword in keywords):
            return self
        rest = {keyword: value for keyword, value in self.mapping.items() if keyword not in keywords}
        return self.made(keywords[0], rest)

    def made(self, name: str, schema: JsonSchema) -> Place:
        """Return a place with a schema that expresses a keyword of this place in other words."""
        return Place(schema, f"{self.path}/{_MARK}{name.replace('/', '~1')}", self.base, self.scope)

    def marked(self, name: str) -> Place:
        """Return the place under a path of its own: the same part of the schema, but read differently."""
        return self.made(name, self.schema)


Places = tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class KeywordContext:
    """Callbacks for the readers of keywords: `report(path, keyword, reason)`, and a function for a subschema's shape."""

    report: Callable[[str, str, str], None]
    child: Callable[[Places], Shape]
    owns: Callable[[Place, Place], bool]
    """True when the second place holds because the first one does, so that the first one evaluates its properties."""
    longest: int | None
    """Lengths beyond this are not counted; None where the engine counts by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """Types and single values that `not` excludes."""

    types: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    """As canonical JSON text, strings left out."""
    words: frozenset[str] = frozenset()
    """The values that are strings."""


def _check_json(value: Any, path: str) -> None:
    """Raise `GrammarError` unless `value` is JSON data; values that are nested too deeply aren't checked."""
    for item in chain.from_iterable(islice(_levels(value), MAX_SCHEMA_DEPTH + 1)):
        if not _is_json(item):
            raise GrammarError(f"{path}: expected JSON, found {value_in_words(item)}")


def is_deep(value: Any) -> bool:
    """Return whether `value` is nested deeper than `MAX_SCHEMA_DEPTH`."""
    return not isinstance(value, str) and any(islice(_levels(value), MAX_SCHEMA_DEPTH, None))


def _levels(value: Any) -> Iterator[list[Any]]:
    """Yield the values at each depth; without end for a value that holds itself."""
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
"""Python itself refuses to write numbers of a few thousand digits."""


def _parts(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else []


def bounds_of(places: Places, keyword: str, *, whole: bool = False) -> list[tuple[Place, float]]:
    """Return the values of a numeric keyword, with the places that have it."""
    found = [(place, value) for place in places if (value := place.get(keyword)) is not None]
    for place, value in found:
        right = isinstance(value, int | float) and not isinstance(value, bool) and _is_json(value)
        if not right or (whole and value % 1):
            raise wrong(f"{place.path}/{keyword}", "a whole number" if whole else "a number", value)
    return found


def size_of(places: Places, low: str, high: str, context: KeywordContext) -> tuple[int, int | None]:
    """Return the tightest lower and upper bound of a size; a bound too large to count is reported and ignored."""
    if not any(keyword in place.mapping for place in places for keyword in (low, high)):
        return 0, None
    longest = MAX_COUNT if context.longest is None else context.longest
    counted: dict[str, list[int]] = {low: [], high: []}
    for keyword, sizes in counted.items():
        for place, value in bounds_of(places, keyword, whole=True):
            if value <= longest:
                sizes.append(int(value))
            else:
                context.report(place.path, keyword, f"no more than {longest} repetitions are counted")
    return max((0, *counted[low])), min(counted[high], default=None)


_DATA = frozenset(("enum", "const", "default", "examples", "example"))
"""Keywords whose values are not schemas: an `$id` in there is data."""


@dataclass(slots=True)
class References:
    """The parts of one schema by URI, indexed when the first reference is followed."""

    root: JsonSchema
    indexed: bool = False
    resources: dict[str, Place] = field(default_factory=dict)
    anchors: dict[tuple[str, str], Place] = field(default_factory=dict)
    dynamic: dict[str, dict[str, Place]] = field(default_factory=dict)
    """`$dynamicAnchor` → base URI → the part there."""
    scopes: dict[tuple[str, ...], int] = field(default_factory=dict)
    """The dynamic scopes that were met, numbered."""

    def start(self) -> Place:
        """Return the place of the whole schema."""
        base = base_of("", self.root)
        return Place(self.root, "#", base, (base,))

    def follow(self, reference: str, place: Place) -> Place | None:
        """Return the place that `reference`, found in `place`, points to; None when it is in another document.

        Raises `GrammarError` when it points to a part of this schema that does not exist.
        """
        target = self.target(reference, place)
        return target and self.reached(target, place)

    def follow_dynamic(self, reference: str, place: Place) -> Place | None:
        """Return the place that a `$dynamicRef` points to, considering the resources on the way to `place`.

        A reference without a dynamic target is followed as by `follow`.
        """
        self.index()
        # Where the target is a `$dynamicAnchor`, another resource may have put its own in that place.
        target = self.target(reference, place)
        name = target and target.get("$dynamicAnchor")
        if target is None or name != reference.partition("#")[2]:
            return target and self.reached(target, place)
        places = self.dynamic[name]
        # A tree of its own schema, extended by another one: its `$dynamicRef`s then lead to the extended nodes.
        outermost = next((places[base] for base in place.scope if base in places), target)
        return self.reached(outermost, place)

    def reached(self, target: Place, place: Place) -> Place:
        """Return `target` with the dynamic scope of the way to it from `place`."""
        if not self.indexed:
            return replace(target, scope=place.scope)
        scope = self.decisive(entered(place.scope, target.base))
        # Scopes are numbered for the path: scope 0 is that of the start, and needs no mark.
        number = self.scopes.setdefault(scope, len(self.scopes))
        return replace(target.marked(f"scope {number}") if number else target, scope=scope)

    def decisive(self, scope: tuple[str, ...]) -> tuple[str, ...]:
        """Return the resources of `scope` that decide where a dynamic anchor leads."""
        # Of all the ways to a part only those differ that lead to other anchors; else each way would be read anew.
        first = (next((base for base in scope if base in places), "") for places in self.dynamic.values())
        deciding = set(first)
        return tuple(base for base in scope if base in deciding)

    def target(self, reference: str, place: Place) -> Place | None:
        """Return the part of the schema that `reference` names, without regard to the dynamic scope."""
        uri, _, fragment = joined(place.base, reference).partition("#")
        if uri or not fragment.startswith("/"):
            self.index()
        # "#/$defs/a" needs no index, "#a" and "http://h/b" do.
        resource = self.resources.get(uri) if uri else self.start()
        if resource is None:
            return None
        if not fragment or fragment.startswith("/"):
            return _pointed(resource, fragment, reference, place)
        found = self.anchors.get((uri, unquote(fragment)))
        if not found:
            missing = f"{fragment!r:.80} is missing"
            raise GrammarError(f"{place.path}/$ref: {value_in_words(reference)} leads nowhere: {missing}")
        return found

    def index(self) -> None:
        """Find every part with a name of its own. Each part of the schema is visited once."""
        if self.indexed:
            return
        self.indexed = True
        start = self.start()
        self.resources = {"": start, start.base: start}
        seen: set[int] = set()
        todo = [start]
        while todo:
            place = todo.pop()
            # A Python object may be in several places, or in itself.
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
    """Yield the values directly inside `place` that may be schemas, also those in lists."""
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
    """Return the place that a JSON pointer leads to."""
    target: Any = resource.schema
    base, path = resource.base, resource.path
    for step in fragment.split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        # `#/` means the whole to some writers; a key that is empty is taken where there is one.
        if not name and not (isinstance(target, Mapping) and name in target):
            continue
        target = _stepped(target, name)
        if target is _MISSING:
            raise GrammarError(f"{place.path}/$ref: {value_in_words(reference)} leads nowhere: {name!r:.80} is missing")
        # The way may lead into a part with its own `$id`: references inside are resolved against that.
        base, path = base_of(base, target), path + step_text(name)
    return Place.checked(target, path, base)


_MISSING = object()


def _stepped(target: Any, name: str) -> Any:
    if isinstance(target, Mapping):
        return target.get(name, _MISSING)
    if isinstance(target, list | tuple) and name.isascii() and name.isdecimal() and len(name) <= MAX_INTEGER_DIGITS:
        return target[int(name)] if int(name) < len(target) else _MISSING
    return _MISSING


def bundled(schema: JsonSchema, documents: Mapping[str, JsonSchema]) -> JsonSchema:
    """Return `schema` with all `documents` (URI → schema) that it refers to, directly or indirectly, in its `$defs`.

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
    """Yield the URIs of the documents that `schema`, whose base is `base`, refers to."""
    todo = [Place(schema, "#", base_of(base, schema))]
    while todo:
        place = todo.pop()
        for keyword in ("$ref", "$dynamicRef"):
            reference = place.get(keyword)
            if isinstance(reference, str):
                yield joined(place.base, reference).partition("#")[0]
        todo += parts_of(place)


def _named(uri: str, document: Any) -> JsonSchema:
    """Return a document under its URI; one that names itself otherwise is referred to by its own name."""
    if isinstance(document, bool):
        return {"$id": uri, "allOf": [document]}
    if not isinstance(document, Mapping):
        raise GrammarError(f"documents[{uri!r}]: expected a JSON Schema, found {value_in_words(document)}")
    own = document.get("$id")
    if not isinstance(own, str):
        return {"$id": uri, **document}
    return document if joined(uri, own) == uri else {"$id": uri, "allOf": [document]}
