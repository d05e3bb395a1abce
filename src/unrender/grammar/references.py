"""A schema → where its `$ref`s lead: JSON pointers, anchors, and parts that have a URI of their own.

Rules: nothing is fetched. What leads out of the schema has no target; what leads to a missing part of it is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urldefrag

from unrender.errors import GrammarError
from unrender.grammar.places import Place, base_of, joined, shown, step_text
from unrender.messages import JsonSchema

_DATA = frozenset(("enum", "const", "default", "examples", "example"))
"""Keywords whose values are no schemas: an `$id` in there is data."""


@dataclass(slots=True)
class References:
    """The parts of one schema by URI, indexed when the first reference is followed."""

    root: JsonSchema
    indexed: bool = False
    resources: dict[str, Place] = field(default_factory=dict)
    anchors: dict[tuple[str, str], list[Place]] = field(default_factory=dict)
    dynamic: dict[str, int] = field(default_factory=dict)
    """How many parts have this `$dynamicAnchor`."""

    def start(self) -> Place:
        """Return the place of the whole schema."""
        return Place(self.root, "#", base_of("", self.root))

    def follow(self, reference: str, place: Place) -> Place | None:
        """Return the place that `reference`, found in `place`, points to; None when that is another document.

        Raises `GrammarError` when it points to a part of this schema that is not there.
        """
        uri, fragment = urldefrag(joined(place.base, reference))
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
        return found[0]

    def is_ambiguous(self, reference: str) -> bool:
        """Return whether a `$dynamicRef` may lead to several parts, depending on how it is reached."""
        self.index()
        return self.dynamic.get(urldefrag(reference).fragment, 0) > 1

    def index(self) -> None:
        """Note every part with a name of its own; each part of the schema is looked at once."""
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
                todo += _parts(place)

    def note(self, place: Place) -> None:
        if isinstance(place.get("$id"), str):
            self.resources.setdefault(place.base, place)
        for keyword in ("$anchor", "$dynamicAnchor"):
            name = place.get(keyword)
            if isinstance(name, str):
                self.anchors.setdefault((place.base, name), []).append(place)
                self.dynamic[name] = self.dynamic.get(name, 0) + (keyword == "$dynamicAnchor")


def _parts(place: Place) -> Iterator[Place]:
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
_MAX_INDEX = 9
"""Digits of an index."""


def _stepped(target: Any, name: str) -> Any:
    if isinstance(target, Mapping):
        return target.get(name, _MISSING)
    if isinstance(target, list | tuple) and name.isascii() and name.isdecimal() and len(name) <= _MAX_INDEX:
        return target[int(name)] if int(name) < len(target) else _MISSING
    return _MISSING
