"""Bundles a JSON Schema with the documents that it refers to, as JSON Schema's own bundling does.

Rules: nothing is fetched; what nobody hands in stays a reference that leads out of the schema. Only documents that
are referred to are taken, each once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from unrender.errors import GrammarError
from unrender.grammar.places import Place, base_of, joined, shown
from unrender.grammar.references import parts_of
from unrender.messages import JsonSchema


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
