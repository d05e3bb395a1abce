"""Judges JSON by a schema, and a schema by what grammars can hold of it."""

from __future__ import annotations

from typing import Any

from unrender.messages.wire import JsonSchema
from unrender.schema.admission import admits
from unrender.schema.reader import read_schema


def conforms(value: Any, schema: JsonSchema) -> bool:
    """Return whether a JSON value is one that a schema allows, as far as grammars hold the schema.

    Raises `GrammarError` when `schema` is not a JSON schema.

    >>> conforms({"n": 1}, {"type": "object", "required": ["n"]}), conforms([], {"type": "object"})
    (True, False)
    """
    reading = read_schema(schema)
    return admits(reading.shape, value, reading.definitions)


def unsupported_keywords(schema: JsonSchema) -> tuple[str, ...]:
    """Return the places of the keywords that no grammar holds; none where grammars hold the whole schema.

    Raises `GrammarError` when `schema` is not a JSON schema.

    >>> unsupported_keywords({"pattern": "^a+$"}), unsupported_keywords({"pattern": "(?=a)"})
    ((), ('#/pattern',))
    """
    return tuple(f"{found.path}/{found.keyword}" for found in read_schema(schema).unsupported)
