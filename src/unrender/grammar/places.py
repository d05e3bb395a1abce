"""A place in a JSON Schema: the subschema that holds there, where it stands, and how its keywords are read.

Several places may hold for one value (`$ref`, `allOf`): of each keyword the tightest of all of them counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from unrender.errors import GrammarError
from unrender.grammar.shapes import Shape
from unrender.messages import JsonSchema


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
    """Lengths beyond this are not counted; None where the engine counts by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """What `not` forbids: whole types, and single values."""

    types: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    """As canonical JSON text, strings left out."""
    words: frozenset[str] = frozenset()
    """The values that are strings."""
    everything: bool = False


def bounds_of(places: Places, keyword: str, kind: type[int | float]) -> list[tuple[Place, Any]]:
    """Return the values of a numeric keyword, with their places."""
    found = [(place, place.get(keyword)) for place in places if place.get(keyword) is not None]
    for place, value in found:
        numeric = isinstance(value, int | float) and not (isinstance(value, bool) and kind is int)
        if not numeric or (kind is int and int(value) != value):
            raise GrammarError(f"{place.path}/{keyword}: expected a number, found {value!r:.80}")
    return found


def size_of(places: Places, low: str, high: str, context: Context) -> tuple[int, int | None]:
    """Return the tightest pair of a size's bounds, as far as they are counted."""
    least = max(
        (_counted_to(place, low, value, context) or 0 for place, value in bounds_of(places, low, int)), default=0
    )
    mosts = [_counted_to(place, high, value, context) for place, value in bounds_of(places, high, int)]
    return max(least, 0), min((most for most in mosts if most is not None), default=None)


def _counted_to(place: Place, keyword: str, value: float, context: Context) -> int | None:
    """Return a size, or None when it is too large to be counted."""
    if context.longest is None or value <= context.longest:
        return int(value)
    context.report(place.path, keyword, f"no more than {context.longest} repetitions are counted")
    return None
