"""Finds where a schema's `$ref`s lead: JSON pointers, anchors, and parts that have their own URI.

Rules: nothing is fetched. What leads out of the schema has no target; what leads to a missing part of it is an error.
A `$dynamicRef` leads to the outermost resource on the way to it that has the anchor. A part that is reached through
other resources is another place, if that changes where an anchor leads: its path carries a mark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

from unrender.errors import GrammarError
from unrender.limits import MAX_INDEX_DIGITS
from unrender.messages.wire import JsonSchema
from unrender.schema.places import Place, base_of, entered, joined, shown, step_text

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
        target = self.target(reference, place)
        name = target and target.get("$dynamicAnchor")
        if target is None or name != reference.partition("#")[2]:
            return target and self.reached(target, place)
        places = self.dynamic[name]
        outermost = next((places[base] for base in place.scope if base in places), target)
        return self.reached(outermost, place)

    def reached(self, target: Place, place: Place) -> Place:
        """Return `target` with the dynamic scope of the way to it from `place`."""
        if not self.indexed:
            return replace(target, scope=place.scope)
        scope = self.decisive(entered(place.scope, target.base))
        number = self.scopes.setdefault(scope, len(self.scopes))
        return replace(target.marked(f"scope {number}") if number else target, scope=scope)

    def decisive(self, scope: tuple[str, ...]) -> tuple[str, ...]:
        """Return the resources of `scope` that decide where a dynamic anchor leads."""
        first = (next((base for base in scope if base in places), "") for places in self.dynamic.values())
        deciding = set(first)
        return tuple(base for base in scope if base in deciding)

    def target(self, reference: str, place: Place) -> Place | None:
        """Return the part of the schema that `reference` names, without regard to the dynamic scope."""
        uri, _, fragment = joined(place.base, reference).partition("#")
        if uri or not fragment.startswith("/"):
            self.index()
        resource = self.resources.get(uri) if uri else self.start()
        if resource is None:
            return None
        if not fragment or fragment.startswith("/"):
            return _pointed(resource, fragment, reference, place)
        found = self.anchors.get((uri, unquote(fragment)))
        if not found:
            missing = f"{fragment!r:.80} is missing"
            raise GrammarError(f"{place.path}/$ref: {shown(reference)} leads nowhere: {missing}")
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
        if not name and not (isinstance(target, Mapping) and name in target):
            continue
        target = _stepped(target, name)
        if target is _MISSING:
            raise GrammarError(f"{place.path}/$ref: {shown(reference)} leads nowhere: {name!r:.80} is missing")
        base, path = base_of(base, target), path + step_text(name)
    return Place.checked(target, path, base)


_MISSING = object()


def _stepped(target: Any, name: str) -> Any:
    if isinstance(target, Mapping):
        return target.get(name, _MISSING)
    if isinstance(target, list | tuple) and name.isascii() and name.isdecimal() and len(name) <= MAX_INDEX_DIGITS:
        return target[int(name)] if int(name) < len(target) else _MISSING
    return _MISSING


def bundled(schema: JsonSchema, documents: Mapping[str, JsonSchema]) -> JsonSchema:
    """Return `schema` with all `documents` (URI → schema) that it refers to, directly or not, in its `$defs`.

    A tool's parameters or a response's schema can then be read without the network. `schema` and `documents` are not
    changed. Raises `GrammarError` when a document that is needed is not a JSON Schema.

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
        raise GrammarError(f"documents[{uri!r}]: expected a JSON Schema, found {shown(document)}")
    own = document.get("$id")
    if not isinstance(own, str):
        return {"$id": uri, **document}
    return document if joined(uri, own) == uri else {"$id": uri, "allOf": [document]}
