"""Rewrites a place in a schema with fewer keywords: no references, `allOf`, dependencies or simple `not`s.

A keyword is put in other words at a place of its own. For example `dependentRequired` becomes an `anyOf`: either the
property is absent (`ABSENT`, a keyword of ours), or the others are required.

`not` needs a complement, the schemas of exactly the values that break a schema. Each keyword can be broken alone, so
`not {"minimum": 3, "required": ["a"]}` becomes `anyOf`: a number below 3, or an object without `a`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from unrender.json_values import JsonSchema
from unrender.limits import MAX_BREAKS, MAX_SMALL
from unrender.schema.places import Place, References, value_in_words, wrong

ReportLoss = Callable[[str, str, str], None]
"""Takes a path, a keyword, and the reason why it is not enforced."""


def is_flat(place: Place) -> bool:
    """Return whether a place has keywords, and none that refer to other places."""
    return not place.mapping.keys() <= ANNOTATIONS and _REWRITERS.keys().isdisjoint(place.mapping)


def unfolded(place: Place, references: References, report: ReportLoss) -> tuple[list[Place], Place]:
    """Express keywords of `place` by other places; return these places, and the place without the keywords.

    Raises `GrammarError` for a reference that leads nowhere, and for a value that is not the list or the object that
    its keyword needs.
    """
    if _REWRITERS.keys().isdisjoint(place.mapping):
        return [], place
    added: list[Place] = []
    done: list[str] = []
    for keyword in [keyword for keyword in _REWRITERS if keyword in place.mapping]:
        found = _REWRITERS[keyword](place, keyword, references, report)
        if found is not None:
            added += found
            done.append(keyword)
    # The path stays the same: a place has one set of keywords that are undone.
    rest = {keyword: value for keyword, value in place.mapping.items() if keyword not in done}
    return added, replace(place, schema=rest) if done else place


def _reference(place: Place, keyword: str, references: References, report: ReportLoss) -> list[Place]:
    reference = place.get(keyword)
    follow = references.follow_dynamic if keyword == "$dynamicRef" else references.follow
    target = follow(reference, place) if isinstance(reference, str) else None
    if target is None:
        reason = f"only references within the schema are followed, found {value_in_words(reference)}"
        report(place.path, keyword, reason)
    return [target] if target else []


def _unfollowed(place: Place, keyword: str, _references: References, report: ReportLoss) -> list[Place]:
    report(place.path, keyword, "where it leads depends on how it is reached")
    return []


def _condition(place: Place, keyword: str, _references: References, _report: ReportLoss) -> list[Place] | None:
    """`if` holds and `then` does, or `if` is broken and `else` holds; None where it cannot be said how it is broken."""
    condition = place.at(keyword)
    branches = [place.at(word) if word in place.mapping else Place(True, place.path) for word in ("then", "else")]
    # `{"if": true, "then": x}` is x: a condition that always holds.
    if condition.schema == {} or isinstance(condition.schema, bool):
        return [branches[condition.schema is False]]
    broken = excluded_schemas(condition.schema)
    if broken is None or len(broken) > MAX_BREAKS or not _CONSEQUENCES & place.mapping.keys():
        return None
    # `if` may be broken in several ways, and `else` holds with each of them.
    met = {"allOf": [condition.schema, branches[0].schema]}
    return [place.made(keyword, {"anyOf": [met, *({"allOf": [part, branches[1].schema]} for part in broken)]})]


_CONSEQUENCES = frozenset(("then", "else", "unevaluatedItems", "unevaluatedProperties"))
"""Keywords next to `if` that depend on its result."""


def _dependencies(place: Place, keyword: str, _references: References, _report: ReportLoss) -> list[Place]:
    found, at = place.get(keyword), f"{place.path}/{keyword}"
    if not isinstance(found, Mapping):
        raise wrong(at, "an object", found)
    places: list[Place] = []
    for name, needed in found.items():
        if not isinstance(name, str):
            raise wrong(at, "names that are strings", name)
        if not isinstance(needed, list | tuple | Mapping | bool):
            raise wrong(f"{at}/{name}", "a list or a JSON Schema", needed)
        # `{"a": ["b"]}`: either a is absent, or a and b are there.
        present: JsonSchema = {"required": [name], "allOf": [needed]}
        if isinstance(needed, list | tuple):
            present = {"required": [name, *needed]}
        places.append(place.made(f"{keyword} {name}", {"anyOf": [{ABSENT: [name]}, present]}))
    return places


def _negated(place: Place, keyword: str, _references: References, _report: ReportLoss) -> list[Place] | None:
    """Undo `not` where what it forbids can be said without it; None where that is left to the types."""
    # `not {"type": "null"}` stays as it is: the types of a place are cut by it as a whole.
    forbidden = place.at(keyword)
    if forbidden.mapping and is_listing(forbidden.mapping):
        return None
    broken = excluded_schemas(forbidden.schema)
    if broken is None or len(broken) > MAX_BREAKS:
        return None
    return [forbidden.made("broken", {"anyOf": broken})]


_REWRITERS: Mapping[str, Callable[[Place, str, References, ReportLoss], list[Place] | None]] = {
    "$ref": _reference,
    "$dynamicRef": _reference,
    "$recursiveRef": _unfollowed,
    "allOf": lambda place, keyword, _references, _report: place.each(keyword),
    "if": _condition,
    "dependentRequired": _dependencies,
    "dependentSchemas": _dependencies,
    "dependencies": _dependencies,
    "not": _negated,
}


ABSENT = "\0absent"
"""Our own keyword: the names of properties that an object must not have."""
MEMBERS = "\0members"
"""Our own keyword: properties that an object must have; it declares none, so the object stays open."""

ITEMS = "\0items"
"""Our own keyword: the first items of a list, like `prefixItems`; it evaluates none."""
ANNOTATIONS = frozenset(
    (
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
        *("$schema", "$id", "$comment", "$anchor", "$dynamicAnchor", "$vocabulary", "$defs", "definitions"),
    )
)
"""Keywords that forbid nothing."""


class _Unbroken(Exception):
    """No schema expresses the complement of a schema."""


def excluded_schemas(schema: Any) -> list[Any] | None:
    """Return schemas such that a value obeys one of them exactly when it does not obey `schema`.

    None when that cannot be expressed. An empty list means that every value obeys `schema`.

    >>> excluded_schemas({"minimum": 3})
    [{'type': 'number', 'exclusiveMaximum': 3}]
    """
    try:
        return _broken(schema, 0)
    except _Unbroken:
        return None


def _broken(schema: Any, depth: int) -> list[Any]:
    if isinstance(schema, bool):
        return [] if schema else [True]
    if not isinstance(schema, Mapping) or depth > MAX_SMALL:
        raise _Unbroken
    if is_listing(schema):
        return [{"not": schema}]  # Types and values are excluded later, from the shape itself.
    words = [word for word in schema if word not in ANNOTATIONS]
    # A keyword without a breaker, such as `pattern`, can be broken in ways that no schema says.
    if not _BREAKERS.keys() >= set(words):
        raise _Unbroken
    return [part for word in words for part in _BREAKERS[word](schema[word], depth)]


def is_listing(schema: Mapping[str, Any]) -> bool:
    """Return whether `schema` only lists types and single values, which can be excluded one by one."""
    words = schema.keys() - ANNOTATIONS
    return bool(words) and words <= {"type", "enum", "const"}


def _moved(kind: str, word: str, by: int) -> Callable[[Any, int], list[Any]]:
    """Return how a size is broken: one more, or one less."""

    def breaker(value: Any, _depth: int) -> list[Any]:
        if not isinstance(value, int) or isinstance(value, bool):
            raise _Unbroken
        # `minLength: 0` cannot be broken: no string has a length of -1.
        return [{"type": kind, word: value + by}] if value + by >= 0 else []

    return breaker


def _renamed(word: str) -> Callable[[Any, int], list[Any]]:
    """Return how a bound is broken: by the bound on the other side."""

    def breaker(value: Any, _depth: int) -> list[Any]:
        if isinstance(value, bool):
            raise _Unbroken
        # Only numbers break a minimum: a text obeys it.
        return [{"type": "number", word: value}]

    return breaker


def _required(value: Any, _depth: int) -> list[Any]:
    # `required: [a, b]` is broken without a, or without b.
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise _Unbroken
    return [{"type": "object", ABSENT: [name]} for name in value]


def _complements(schemas: Any, depth: int) -> list[list[Any]]:
    """Return the complement of each schema in a list."""
    if not isinstance(schemas, list | tuple):
        raise _Unbroken
    return [_broken(schema, depth + 1) for schema in schemas]


def _properties(value: Any, depth: int) -> list[Any]:
    broken = _complements(list(value.values()) if isinstance(value, Mapping) else None, depth)
    # A value breaks `{"a": {"minimum": 3}}` only by an `a` that is there and too small: without `a` it obeys.
    pairs = zip(value, broken, strict=True)
    return [{"type": "object", MEMBERS: {name: part}} for name, parts in pairs for part in parts]


def _items(value: Any, depth: int) -> list[Any]:
    # The third item breaks its schema only in a list of three or more; the items before it may be anything.
    return [
        {"type": "array", "minItems": at + 1, ITEMS: [*([True] * at), part]}
        for at, parts in enumerate(_complements(value, depth))
        for part in parts
    ]


_BREAKERS: Mapping[str, Callable[[Any, int], list[Any]]] = {
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
    "allOf": lambda value, depth: [part for parts in _complements(value, depth) for part in parts],
    # To break all branches is to break each of them; a branch without a complement cannot be broken.
    "anyOf": lambda value, depth: [
        {"allOf": [{"anyOf": parts} if parts else False for parts in _complements(value, depth)]}
    ],
}
