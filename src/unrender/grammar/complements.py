"""Expresses what `not` forbids as a list of schemas of which one must hold; None where that fails.

Rules: a schema is broken by breaking one of its keywords, so each keyword has its own complement. A keyword holds for
values of other types, so what breaks it says its type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

ABSENT = "\0absent"
"""Our own keyword: the names of properties that an object must not have."""
MEMBERS = "\0members"
"""Our own keyword: properties that an object must have; it declares none, so the object stays open."""
MAX_DEPTH = 16
"""How deep a schema is broken."""

ITEMS = "\0items"
"""Our own keyword: the first items of a list, like `prefixItems`; it evaluates none."""
ANNOTATIONS = frozenset(
    (
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
        *("$schema", "$id", "$comment", "$anchor", "$dynamicAnchor", "$vocabulary", "$defs", "definitions"),
    )
)
"""Keywords that forbid nothing."""


def complement(schema: Any, depth: int = 0) -> list[Any] | None:
    """Return schemas such that a value obeys one of them exactly when it does not obey `schema`.

    None when that cannot be expressed. An empty list means that every value obeys `schema`.

    >>> complement({"minimum": 3})
    [{'type': 'number', 'exclusiveMaximum': 3}]
    """
    if isinstance(schema, bool):
        return [] if schema else [True]
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return None
    if is_listing(schema):
        return [{"not": schema}]
    words = {word: value for word, value in schema.items() if word not in ANNOTATIONS}
    broken: list[Any] = []
    for word, value in words.items():
        found = _BREAKERS[word](value, depth) if word in _BREAKERS else None
        if found is None:
            return None
        broken += found
    return broken


def is_listing(schema: Mapping[str, Any]) -> bool:
    """Return whether `schema` only lists types and single values, which can be excluded one by one."""
    words = schema.keys() - ANNOTATIONS
    return bool(words) and words <= {"type", "enum", "const"}


def _moved(kind: str, word: str, by: int) -> Callable[[Any, int], list[Any] | None]:
    """Return how a size is broken: one more, or one less."""

    def breaker(value: Any, _depth: int) -> list[Any] | None:
        if not isinstance(value, int) or isinstance(value, bool):
            return None
        return [{"type": kind, word: value + by}] if value + by >= 0 else []

    return breaker


def _renamed(word: str) -> Callable[[Any, int], list[Any] | None]:
    """Return how a bound is broken: by the bound on the other side."""
    return lambda value, _depth: None if isinstance(value, bool) else [{"type": "number", word: value}]


def _required(value: Any, _depth: int) -> list[Any] | None:
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        return None
    return [{"type": "object", ABSENT: [name]} for name in value]


def _properties(value: Any, depth: int) -> list[Any] | None:
    if not isinstance(value, Mapping):
        return None
    broken: list[Any] = []
    for name, schema in value.items():
        found = complement(schema, depth + 1)
        if found is None:
            return None
        broken += [{"type": "object", MEMBERS: {name: part}} for part in found]
    return broken


def _items(value: Any, depth: int) -> list[Any] | None:
    if not isinstance(value, list | tuple):
        return None
    broken: list[Any] = []
    for at, schema in enumerate(value):
        found = complement(schema, depth + 1)
        if found is None:
            return None
        broken += [{"type": "array", "minItems": at + 1, ITEMS: [*([True] * at), part]} for part in found]
    return broken


def _all(value: Any, depth: int) -> list[Any] | None:
    found = [complement(part, depth + 1) for part in value] if isinstance(value, list | tuple) else [None]
    return None if None in found else [part for parts in found for part in parts or ()]


def _any(value: Any, depth: int) -> list[Any] | None:
    found = [complement(part, depth + 1) for part in value] if isinstance(value, list | tuple) else [None]
    return None if None in found else [{"allOf": [{"anyOf": parts} if parts else False for parts in found]}]


_BREAKERS: Mapping[str, Callable[[Any, int], list[Any] | None]] = {
    "type": lambda value, _depth: [{"not": {"type": value}}],
    "enum": lambda value, _depth: [{"not": {"enum": value}}],
    "const": lambda value, _depth: [{"not": {"const": value}}],
    "not": lambda value, _depth: [value],
    "minimum": _renamed("exclusiveMaximum"),
    "maximum": _renamed("exclusiveMinimum"),
    "exclusiveMinimum": _renamed("maximum"),
    "exclusiveMaximum": _renamed("minimum"),
    "minLength": _moved("string", "maxLength", -1),
    "maxLength": _moved("string", "minLength", 1),
    "minItems": _moved("array", "maxItems", -1),
    "maxItems": _moved("array", "minItems", 1),
    "required": _required,
    "properties": _properties,
    "prefixItems": _items,
    "allOf": _all,
    "anyOf": _any,
}
