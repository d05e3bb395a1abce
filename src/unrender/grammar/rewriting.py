"""Rewrites a place in a schema with fewer keywords: no references, `allOf`, dependencies or simple `not`s.

What a keyword says in other words is put into a place of its own: `dependentRequired` becomes an `anyOf` of "the
property is absent" (`ABSENT`, a keyword of ours) and "the others are required".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from unrender.errors import GrammarError
from unrender.grammar.complements import ABSENT, complement, is_listing
from unrender.grammar.places import Place, pointer, shown
from unrender.grammar.references import References

MAX_BREAKS = 64
"""Ways to break a schema that are written down."""

Report = Callable[[str, str, str], None]


def unfolded(place: Place, references: References, report: Report) -> tuple[list[Place], Place]:
    """Express keywords of `place` by other places; return these places, and the place without the keywords.

    Raises `GrammarError` for a reference that leads nowhere, and for a value that is not the list or the object that
    its keyword needs.
    """
    if _REWRITERS.keys().isdisjoint(place.mapping):
        return [], place
    present = [keyword for keyword in _REWRITERS if keyword in place.mapping]
    added: list[Place] = []
    done: list[str] = []
    for keyword in present:
        found = _REWRITERS[keyword](place, keyword, references, report)
        if found is not None:
            added += found
            done.append(keyword)
    # The path stays the same: a place has one set of keywords that are undone.
    rest = {keyword: value for keyword, value in place.mapping.items() if keyword not in done}
    return added, replace(place, schema=rest) if done else place


def _reference(place: Place, keyword: str, references: References, report: Report) -> list[Place]:
    reference = place.get(keyword)
    follow = references.follow_dynamic if keyword == "$dynamicRef" else references.follow
    target = follow(reference, place) if isinstance(reference, str) else None
    if target is None:
        reason = f"only references within the schema are followed, found {shown(reference)}"
        report(place.path, keyword, reason)
        return []
    return [target]


def _unfollowed(place: Place, keyword: str, _references: References, report: Report) -> list[Place]:
    report(place.path, keyword, "where it leads depends on how it is reached")
    return []


def _all(place: Place, keyword: str, _references: References, _report: Report) -> list[Place]:
    return place.each(keyword)


def _condition(place: Place, keyword: str, _references: References, _report: Report) -> list[Place] | None:
    """`if` holds and `then` does, or `if` is broken and `else` holds; None where it cannot be said how it is broken."""
    condition = place.at(keyword)
    branches = [place.at(word) if word in place.mapping else Place(True, place.path) for word in ("then", "else")]
    if condition.schema == {} or isinstance(condition.schema, bool):
        return [branches[condition.schema is False]]
    broken = complement(condition.schema)
    if broken is None or len(broken) > MAX_BREAKS or not _CONSEQUENCES & place.mapping.keys():
        return None
    met = {"allOf": [condition.schema, branches[0].schema]}
    return [place.made(keyword, {"anyOf": [met, *({"allOf": [part, branches[1].schema]} for part in broken)]})]


_CONSEQUENCES = frozenset(("then", "else", "unevaluatedItems", "unevaluatedProperties"))
"""Keywords beside `if` that ask whether it holds."""


def _dependencies(place: Place, keyword: str, _references: References, _report: Report) -> list[Place]:
    found = place.get(keyword)
    if not isinstance(found, Mapping):
        raise GrammarError(f"{pointer(place.path)}/{keyword}: expected an object, found {shown(found)}")
    return [_dependency(place, keyword, name, needed) for name, needed in found.items()]


def _dependency(place: Place, keyword: str, name: Any, needed: Any) -> Place:
    at = f"{pointer(place.path)}/{keyword}"
    if not isinstance(name, str):
        raise GrammarError(f"{at}: expected names that are strings, found {shown(name)}")
    if isinstance(needed, list | tuple):
        present: dict[str, Any] = {"required": [name, *needed]}
    elif isinstance(needed, Mapping | bool):
        present = {"required": [name], "allOf": [needed]}
    else:
        raise GrammarError(f"{at}/{name}: expected a list or a JSON Schema, found {shown(needed)}")
    return place.made(f"{keyword} {name}", {"anyOf": [{ABSENT: [name]}, present]})


def _negated(place: Place, keyword: str, _references: References, _report: Report) -> list[Place] | None:
    """Undo `not` where what it forbids can be said without it; None where that is left to the types."""
    forbidden = place.at(keyword)
    if forbidden.mapping and is_listing(forbidden.mapping):
        return None
    broken = complement(forbidden.schema)
    if broken is None or len(broken) > MAX_BREAKS:
        return None
    return [forbidden.made("broken", {"anyOf": broken})]


_REWRITERS: Mapping[str, Callable[[Place, str, References, Report], list[Place] | None]] = {
    "$ref": _reference,
    "$dynamicRef": _reference,
    "$recursiveRef": _unfollowed,
    "allOf": _all,
    "if": _condition,
    "dependentRequired": _dependencies,
    "dependentSchemas": _dependencies,
    "dependencies": _dependencies,
    "not": _negated,
}
