"""Defines a place in a JSON Schema: its subschema, its path, and how its keywords are read.

Several places may hold for one value (`$ref`, `allOf`): of each keyword the tightest of all of them counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any
from urllib.parse import urljoin

from unrender.errors import GrammarError
from unrender.limits import MAX_COUNT, MAX_SCHEMA_DEPTH
from unrender.messages.wire import JsonSchema
from unrender.schema.shapes import Shape


def shown(value: Any) -> str:
    """Return `value` as errors show it, in at most 80 characters.

    >>> shown("a")
    "'a'"
    """
    try:
        return f"{value!r:.80}"
    except (ValueError, RecursionError):
        return f"a {type(value).__name__} that is too large to be shown"


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
"""What a JSON Schema may be; `dict` first, since it is recognised at once."""


@dataclass(frozen=True, slots=True)
class Place:
    """A subschema, where it is (JSON pointer), and the base URI of its references."""

    schema: JsonSchema
    path: str
    base: str = ""
    scope: tuple[str, ...] = ()
    """The base URIs of the resources that were entered on the way here, outermost first: what `$dynamicRef` asks."""

    @classmethod
    def checked(cls, schema: Any, path: str, base: str = "") -> Place:
        """Return the place, or raise `GrammarError` when `schema` is not a JSON Schema."""
        if not isinstance(schema, _SCHEMAS):
            raise GrammarError(f"{pointer(path)}: expected a JSON Schema, found {shown(schema)}")
        return cls(schema, path, base)

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
        path = self.path + "".join(map(step_text, steps))
        if not isinstance(schema, _SCHEMAS):
            raise GrammarError(f"{pointer(path)}: expected a JSON Schema, found {shown(schema)}")
        base = base_of(self.base, schema)
        return Place(schema, path, base, entered(self.scope, base) if self.scope or base != self.base else ())

    def each(self, keyword: str) -> list[Place]:
        """Return the subschemas that `keyword` lists."""
        listed = self.mapping.get(keyword, [])
        if not isinstance(listed, list | tuple):
            raise GrammarError(f"{pointer(self.path)}/{keyword}: expected a list, found {shown(listed)}")
        return [self.at(keyword, index) for index in range(len(listed))]

    def values(self, keyword: str) -> list[Any]:
        """Return the values that `enum` or `const` allows."""
        found = self.mapping[keyword]
        values = [found] if keyword == "const" else found
        if not isinstance(values, list | tuple):
            raise GrammarError(f"{pointer(self.path)}/enum: expected a list, found {shown(found)}")
        for value in values:
            _check_json(value, f"{self.path}/{keyword}")
        return list(values)

    def without(self, *keywords: str) -> Place:
        """Return the place without `keywords`. Its path is marked, since it is a different conjunct."""
        if not any(keyword in self.mapping for keyword in keywords):
            return self
        rest = {keyword: value for keyword, value in self.mapping.items() if keyword not in keywords}
        return replace(self.marked(keywords[0]), schema=rest)

    def made(self, name: str, schema: Mapping[str, Any]) -> Place:
        """Return a place with a schema that expresses a keyword of this place in other words."""
        return replace(self.marked(name), schema=schema)

    def marked(self, name: str) -> Place:
        """Return the place under a path of its own: the same part of the schema, but read differently."""
        return replace(self, path=f"{self.path}/{_MARK}{name.replace('/', '~1')}")


Places = tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Context:
    """What a keyword needs of its reader: `report(path, keyword, reason)`, and a function for a subschema's shape."""

    report: Callable[[str, str, str], None]
    child: Callable[[Places], Shape]
    owns: Callable[[Place, Place], bool]
    """Whether the second place holds because the first one does: what it declares is evaluated by the first one."""
    longest: int | None
    """Lengths beyond this are not counted; None where the engine counts by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """What `not` excludes: whole types, and single values."""

    types: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    """As canonical JSON text, strings left out."""
    words: frozenset[str] = frozenset()
    """The values that are strings."""


def _check_json(value: Any, path: str) -> None:
    """Raise `GrammarError` unless `value` is JSON data; what is nested too deep is not looked at."""
    level = [value]
    for _ in range(MAX_SCHEMA_DEPTH + 1):
        for item in level:
            if not _is_json(item):
                raise GrammarError(f"{path}: expected JSON, found {shown(item)}")
        level = [part for item in level for part in _parts(item)]
        if not level:
            return


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


def is_deep(value: Any) -> bool:
    """Return whether `value` is nested deeper than `MAX_SCHEMA_DEPTH`."""
    level = [value]
    for _ in range(MAX_SCHEMA_DEPTH):
        level = [part for item in level for part in _parts(item)]
        if not level:
            return False
    return True


def bounds_of(places: Places, keyword: str) -> list[tuple[Place, float]]:
    """Return the values of a numeric keyword, with the places that have it."""
    found = [(place, place.get(keyword)) for place in places if place.get(keyword) is not None]
    for place, value in found:
        if not isinstance(value, int | float) or isinstance(value, bool) or not _is_json(value):
            raise GrammarError(f"{pointer(place.path)}/{keyword}: expected a number, found {shown(value)}")
    return found


def size_of(places: Places, low: str, high: str, context: Context) -> tuple[int, int | None]:
    """Return the tightest lower and upper bound of a size; a bound too large to count is reported and ignored."""
    leasts = [_counted_to(place, low, value, context) or 0 for place, value in _sizes(places, low)]
    mosts = [_counted_to(place, high, value, context) for place, value in _sizes(places, high)]
    return max((0, *leasts)), min((most for most in mosts if most is not None), default=None)


def _sizes(places: Places, keyword: str) -> list[tuple[Place, int]]:
    found = [(place, place.get(keyword)) for place in places if place.get(keyword) is not None]
    for place, value in found:
        if not _is_json(value) or isinstance(value, bool) or not isinstance(value, int | float) or value % 1:
            raise GrammarError(f"{pointer(place.path)}/{keyword}: expected a whole number, found {shown(value)}")
    return [(place, int(value)) for place, value in found]


def _counted_to(place: Place, keyword: str, value: int, context: Context) -> int | None:
    """Return a size, or None when it is too large to be counted."""
    longest = MAX_COUNT if context.longest is None else context.longest
    if value <= longest:
        return value
    context.report(place.path, keyword, f"no more than {longest} repetitions are counted")
    return None
