"""Eliminates references, `allOf`, dependencies and simple `not`s from subschemas.

A rewritten keyword becomes a separate subschema. For example, `dependentRequired` becomes an `anyOf`: either the property is absent
(`ABSENT`, an internal keyword), or the other properties are required.

A `not` is replaced by the complement of its schema: schemas that match exactly the values that violate it. A value violates a schema if it
violates any keyword. For example, `not {"minimum": 3, "required": ["a"]}` becomes `anyOf`: a number below 3, or an object without `a`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from unrender.json_values import JsonSchema
from unrender.limits import MAX_BREAKS, MAX_SMALL
from unrender.schema.places import Place, References, value_in_words, wrong

ReportLoss = Callable[[str, str, str], None]
"""Callback that reports a keyword that isn't enforced. Its arguments are the path, the keyword and the reason."""


def is_flat(place: Place) -> bool:
    """Return whether a subschema has keywords, but none that refer to other subschemas."""
    return not place.mapping.keys() <= ANNOTATIONS and _REWRITERS.keys().isdisjoint(place.mapping)


def unfolded(place: Place, references: References, report: ReportLoss) -> tuple[list[Place], Place]:
    """Rewrite keywords of `place` as separate places. Return the new places, and `place` without the rewritten keywords.

    Raises `GrammarError` if a reference has no target, or if a keyword's value isn't the expected list or object.
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
    # The path doesn't change, since a place is always rewritten in the same way.
    rest = {keyword: value for keyword, value in place.mapping.items() if keyword not in done}
    return added, replace(place, schema=rest) if done else place


def _reference(place: Place, keyword: str, references: References, report: ReportLoss) -> list[Place]:
    reference = place.get(keyword)
    follow = references.follow_dynamic if keyword == "$dynamicRef" else references.follow
    target = follow(reference, place) if isinstance(reference, str) else None
    if target is None:
        reason = f"only references within the schema are supported, found {value_in_words(reference)}"
        report(place.path, keyword, reason)
    return [target] if target else []


def _unfollowed(place: Place, keyword: str, _references: References, report: ReportLoss) -> list[Place]:
    report(place.path, keyword, "its target depends on the dynamic scope")
    return []


def _condition(place: Place, keyword: str, _references: References, _report: ReportLoss) -> list[Place] | None:
    """Rewrite `if` as an `anyOf`: either `if` and `then`, or the complement of `if`, and `else`. Returns None if `if` has no complement."""
    condition = place.at(keyword)
    branches = [place.at(word) if word in place.mapping else Place(True, place.path) for word in ("then", "else")]
    # A constant condition selects a branch: `{"if": true, "then": x}` is equivalent to x.
    if condition.schema == {} or isinstance(condition.schema, bool):
        return [branches[condition.schema is False]]
    broken = excluded_schemas(condition.schema)
    if broken is None or len(broken) > MAX_BREAKS or not _CONSEQUENCES & place.mapping.keys():
        return None
    # The complement may have several parts, and each part is combined with `else`.
    met = {"allOf": [condition.schema, branches[0].schema]}
    return [place.made(keyword, {"anyOf": [met, *({"allOf": [part, branches[1].schema]} for part in broken)]})]


_CONSEQUENCES = frozenset(("then", "else", "unevaluatedItems", "unevaluatedProperties"))
"""Keywords that depend on the result of an `if` in the same schema."""


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
        # `{"a": ["b"]}` means that either a is absent, or both a and b are present.
        present: JsonSchema = {"required": [name], "allOf": [needed]}
        if isinstance(needed, list | tuple):
            present = {"required": [name, *needed]}
        places.append(place.made(f"{keyword} {name}", {"anyOf": [{ABSENT: [name]}, present]}))
    return places


def _negated(place: Place, keyword: str, _references: References, _report: ReportLoss) -> list[Place] | None:
    """Rewrite `not` as the complement of its schema. Returns None if there's no complement, or if only types and values are excluded."""
    # `not {"type": "null"}` isn't rewritten: `negation` removes the type later.
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
"""Internal keyword: names of properties that an object must not have."""
MEMBERS = "\0members"
"""Internal keyword: properties that an object must have. `MEMBERS` doesn't declare them, so the object stays open."""

ITEMS = "\0items"
"""Internal keyword: the first items of an array. Unlike `prefixItems`, it doesn't mark items as evaluated."""
ANNOTATIONS = frozenset(
    (
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
        *("$schema", "$id", "$comment", "$anchor", "$dynamicAnchor", "$vocabulary", "$defs", "definitions"),
    )
)
"""Keywords that don't restrict values."""


class _Unbroken(Exception):
    """Raised if no schema expresses the complement of a schema."""


def excluded_schemas(schema: Any) -> list[Any] | None:
    """Return the complement of `schema`: a value matches one of these schemas if and only if it doesn't match `schema`.

    None if the complement can't be expressed. An empty list means that every value matches `schema`.

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
        return [{"not": schema}]  # Listed types and values are removed from the shape later.
    words = [word for word in schema if word not in ANNOTATIONS]
    # Keywords without a breaker, such as `pattern`, have no complement.
    if not _BREAKERS.keys() >= set(words):
        raise _Unbroken
    return [part for word in words for part in _BREAKERS[word](schema[word], depth)]


def is_listing(schema: Mapping[str, Any]) -> bool:
    """Return whether `schema` only lists types and single values, which can be excluded one by one."""
    words = schema.keys() - ANNOTATIONS
    return bool(words) and words <= {"type", "enum", "const"}


def _moved(kind: str, word: str, by: int) -> Callable[[Any, int], list[Any]]:
    """Return a function for the complement of a size keyword: the opposite bound, which is one higher or one lower."""

    def breaker(value: Any, _depth: int) -> list[Any]:
        if not isinstance(value, int) or isinstance(value, bool):
            raise _Unbroken
        # `minLength: 0` can't be violated: no string has a length of -1.
        return [{"type": kind, word: value + by}] if value + by >= 0 else []

    return breaker


def _renamed(word: str) -> Callable[[Any, int], list[Any]]:
    """Return a function for the complement of a numeric bound: the opposite bound."""

    def breaker(value: Any, _depth: int) -> list[Any]:
        if isinstance(value, bool):
            raise _Unbroken
        # Only numbers can violate a minimum; strings always satisfy it.
        return [{"type": "number", word: value}]

    return breaker


def _required(value: Any, _depth: int) -> list[Any]:
    # A value violates `required: [a, b]` if a or b is missing.
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
    # Only a property that is present can violate its schema: an object without `a` satisfies `{"a": {"minimum": 3}}`.
    pairs = zip(value, broken, strict=True)
    return [{"type": "object", MEMBERS: {name: part}} for name, parts in pairs for part in parts]


def _items(value: Any, depth: int) -> list[Any]:
    # The third item can violate its schema only in an array of three or more items. The items before it are unrestricted.
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
    # A value violates `anyOf` if it violates every branch. An empty complement means that the branch can't be violated.
    "anyOf": lambda value, depth: [
        {"allOf": [{"anyOf": parts} if parts else False for parts in _complements(value, depth)]}
    ],
}
