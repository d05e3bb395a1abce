"""The keywords that hold at one place of a schema → the shape of the values there.

Here is decided which types a value may have; how each type reads its keywords is in `scalar_keywords` and
`container_keywords`. What cannot be said is reported to the `Context`, and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from unrender.errors import GrammarError
from unrender.grammar.admission import canonical
from unrender.grammar.container_keywords import read_array, read_object
from unrender.grammar.places import Context, Excluded, Places
from unrender.grammar.scalar_keywords import read_boolean, read_integer, read_null, read_number, read_text
from unrender.grammar.shapes import Anything, Nothing, Shape, union

TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")

_IMPLIED = {
    "object": "properties required additionalProperties patternProperties propertyNames minProperties maxProperties",
    "array": "items prefixItems minItems maxItems uniqueItems contains additionalItems",
    "string": "minLength maxLength pattern format",
    "number": "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf",
}
_TYPE_OF = {keyword: kind for kind, words in _IMPLIED.items() for keyword in words.split()}

UNSAID: Mapping[str, str] = {
    "if": "conditions cannot be decided while the value is written",
    "dependentRequired": "properties are chosen one after another",
    "dependentSchemas": "properties are chosen one after another",
    "dependencies": "properties are chosen one after another",
    "uniqueItems": "earlier items are not remembered",
    "contains": "items are written one after another",
    "unevaluatedProperties": "only false closes an object",
    "unevaluatedItems": "only items closes a list",
}
"""Keywords that no grammar says → why."""
_HARMLESS = {"unevaluatedItems": True}
"""The value with which such a keyword says nothing, where that is not false."""


def negation(places: Places, report: Callable[[str, str, str], None]) -> tuple[Places, Excluded]:
    """Take `not` out of `places`; report those that cannot be decided."""
    types: set[str] = set()
    values: list[Any] = []
    everything = False
    for place in places:
        forbidden = place.get("not")
        if forbidden is None:
            continue
        keywords = {} if isinstance(forbidden, bool) else {k: v for k, v in forbidden.items() if k != "description"}
        if forbidden is True or forbidden == {}:
            everything = True
        elif set(keywords) == {"type"}:
            types |= set(_listed(keywords["type"]))
        elif set(keywords) & {"enum", "const"} and set(keywords) <= {"enum", "const", "type"}:
            values += keywords.get("enum", [keywords.get("const")])
        elif forbidden is not False:
            report(place.path, "not", "only types and single values can be excluded")
    words = frozenset(value for value in values if isinstance(value, str))
    others = frozenset(canonical(value) for value in values if not isinstance(value, str))
    excluded = Excluded(types=frozenset(types), values=others, words=words, everything=everything)
    return tuple(place.without("not") for place in places), excluded


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def leaf(places: Places, excluded: Excluded, context: Context) -> Shape:
    """Return the shape of the values that obey `places`, which hold no references or branches."""
    for place in places:
        for keyword in UNSAID.keys() & place.mapping.keys():
            if place.mapping[keyword] not in (None, _HARMLESS.get(keyword, False)):
                context.report(place.path, keyword, UNSAID[keyword])
    types = _types(places) - excluded.types
    if excluded.everything or not types:
        return Nothing()
    if types == set(TYPES) and excluded == Excluded():
        return Anything()
    readers = _READERS if not types >= {"number", "integer"} else {k: v for k, v in _READERS.items() if k != "integer"}
    found = [reader(places, excluded, context) for kind, reader in readers.items() if kind in types]
    return union(found)


def _types(places: Places) -> set[str]:
    """Return the types that all places allow; where none is given, the ones that their keywords imply."""
    types = set(TYPES)
    for place in places:
        given = place.get("type")
        if given is None:
            continue
        named = set(_listed(given)) | ({"null"} if place.get("nullable") is True else set())
        if not named <= set(TYPES):
            raise GrammarError(f"{place.path}/type: expected one of {list(TYPES)}, found {given!r:.80}")
        types &= named | ({"integer"} if "number" in named else set())
    if all(place.get("type") is None for place in places):
        implied = {_TYPE_OF[keyword] for place in places for keyword in place.mapping if keyword in _TYPE_OF}
        types = implied or types
    return types


_READERS: Mapping[str, Callable[[Places, Excluded, Context], Shape]] = {
    "object": read_object,
    "array": read_array,
    "string": read_text,
    "number": read_number,
    "integer": read_integer,
    "boolean": read_boolean,
    "null": read_null,
}
