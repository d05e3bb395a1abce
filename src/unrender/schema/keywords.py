"""Reads the keywords at one place of a schema into the shape of the values there.

Here is decided which types a value may have; how each type reads its keywords is in `scalar_keywords` and
`list_keywords` and `object_keywords`. What cannot be said is reported to the `Context`, and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from unrender.errors import GrammarError
from unrender.messages.json_values import json_type
from unrender.schema.admission import canonical
from unrender.schema.conjuncts import ABSENT, ANNOTATIONS, ITEMS, MEMBERS, complement
from unrender.schema.lists import read_array
from unrender.schema.objects import read_object
from unrender.schema.places import Context, Excluded, Place, Places, is_deep, pointer, shown
from unrender.schema.scalars import read_boolean, read_integer, read_null, read_number, read_text
from unrender.schema.shapes import Anything, Nothing, Shape, union

TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")

_IMPLIED = {
    "object": "properties required additionalProperties patternProperties propertyNames minProperties maxProperties"
    f" unevaluatedProperties {ABSENT} {MEMBERS}",
    "array": f"items prefixItems minItems maxItems uniqueItems contains additionalItems unevaluatedItems {ITEMS}",
    "string": "minLength maxLength pattern format",
    "number": "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf",
}
TYPE_OF = {keyword: kind for kind, words in _IMPLIED.items() for keyword in words.split(" ")}

_SCALAR = frozenset(
    ("type", "enum", "const", *(word for word, kind in TYPE_OF.items() if kind in ("string", "number")))
)

_NOTHING_EXCLUDED = Excluded()
_ALL_TYPES = frozenset(TYPES)
UNSAID: Mapping[str, str] = {
    "if": "conditions cannot be decided while the value is written",
}
"""Keywords that no grammar says → why."""


def negation(places: Places, report: Callable[[str, str, str], None]) -> Excluded:
    """Return what the `not`s of `places` exclude; report each that cannot be expressed."""
    if not any("not" in place.mapping for place in places):
        return _NOTHING_EXCLUDED
    types: set[str] = set()
    values: list[Any] = []
    for place in places:
        if "not" not in place.mapping:
            continue
        forbidden = place.at("not")
        words = forbidden.mapping.keys() - ANNOTATIONS
        if words == {"type"}:
            types |= _named_types(forbidden)
        elif words & {"enum", "const"} and words <= {"enum", "const", "type"}:
            values += _forbidden_values(forbidden)
        else:
            report(place.path, "not", "only types and single values can be excluded")
    texts = frozenset(value for value in values if isinstance(value, str))
    others = frozenset(canonical(value) for value in values if not isinstance(value, str) and not is_deep(value))
    return Excluded(types=frozenset(types), values=others, words=texts)


def _forbidden_values(place: Place) -> list[Any]:
    """Return the values that `not` forbids by listing them, those of another type than it says left out."""
    values, *others = [place.values(keyword) for keyword in ("enum", "const") if keyword in place.mapping]
    for also in others:
        values = [value for value in values if canonical(value) == canonical(also[0])]
    types = _named_types(place) if place.get("type") is not None else set(TYPES)
    return [
        value for value in values if json_type(value) in types or (json_type(value) == "number" and "integer" in types)
    ]


def without_scalar(place: Place) -> Place | None:
    """Return a schema for the values that break `place`; None unless it is only about scalar values or types."""
    scalar = all(keyword in _SCALAR or keyword in ANNOTATIONS for keyword in place.mapping)
    broken = complement(place.schema) if scalar else None
    if broken is None:
        return None
    implied = (
        {TYPE_OF[keyword] for keyword in place.mapping.keys() & TYPE_OF.keys()}
        if "type" not in place.mapping
        else set()
    )
    others = [{"not": {"type": sorted(implied)}}] if implied else []
    return place.made("broken", {"anyOf": [*broken, *others]})


def _named_types(place: Place) -> set[str]:
    """Return the types that `type` and `nullable` name; an integer is a number."""
    given = place.get("type")
    listed = given if isinstance(given, list | tuple) else [given]
    if not all(isinstance(kind, str) and kind in TYPES for kind in listed):
        raise GrammarError(f"{pointer(place.path)}/type: expected one of {list(TYPES)}, found {shown(given)}")
    return {*listed, *(["null"] if place.get("nullable") is True else []), *(["integer"] if "number" in listed else [])}


def leaf(places: Places, excluded: Excluded, context: Context) -> Shape:
    """Return the shape of the values that obey `places`, which hold no references or branches."""
    for place in places:
        for keyword in UNSAID.keys() & place.mapping.keys():
            if place.mapping[keyword] not in (None, False) and not _is_idle(place, keyword):
                context.report(place.path, keyword, UNSAID[keyword])
    allowed = _types(places)
    types = allowed - excluded.types
    if not types:
        return Nothing()
    said = any(not TYPE_OF.keys().isdisjoint(place.mapping) for place in places)
    if types == _ALL_TYPES and not said and excluded == _NOTHING_EXCLUDED:
        return Anything()
    if excluded.values and any(
        text[0] == sign for text in excluded.values for sign, kind in _CONTAINERS if kind in types
    ):
        context.report(places[0].path, "not", "single lists and objects cannot be excluded")
    readers = _READERS if not types >= {"number", "integer"} else {k: v for k, v in _READERS.items() if k != "integer"}
    found = [reader(places, excluded, context) for kind, reader in readers.items() if kind in types]
    return union(found)


def _is_idle(place: Place, keyword: str) -> bool:
    """Return whether a keyword asks for nothing here: a condition without consequences."""
    return keyword == "if" and not {"then", "else"} & place.mapping.keys()


def _types(places: Places) -> set[str]:
    """Return the types that all places allow; where none is given, the ones that their keywords imply."""
    types = set(TYPES)
    for place in places:
        if place.get("type") is not None:
            types &= _named_types(place)
    if all(place.get("type") is None for place in places):
        implied = {TYPE_OF[keyword] for place in places for keyword in place.mapping if keyword in TYPE_OF}
        types = implied | ({"integer"} if "number" in implied else set()) or types
    return types


_CONTAINERS = (("[", "array"), ("{", "object"))
_READERS: Mapping[str, Callable[[Places, Excluded, Context], Shape]] = {
    "object": read_object,
    "array": read_array,
    "string": read_text,
    "number": read_number,
    "integer": read_integer,
    "boolean": read_boolean,
    "null": read_null,
}
