"""Decide by the tool's schema what a raw argument is: text in, JSON text out.

Raw text is ambiguous: `02134` is a number to Python and a postal code to the tool. The schema settles it; where it allows
several types they are tried from the narrowest to the widest, and text is the last resort. Nothing is ever refused:
what fits no type comes back as what it looks like.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from unrender.messages import JsonSchema, Tool
from unrender.parsing.values import LiteralScanner, LiteralStyle, Status

ANY: frozenset[str] = frozenset()
"""No statement about the type."""
STRING = frozenset(("string",))
MAX_HOPS = 32
"""How many `$ref`s and combinators are followed; deeper schemas count as untyped."""

_KINDS = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


class ArgumentTypes:
    """The JSON types of one tool's arguments. With no tool at all, every argument is a string."""

    __slots__ = ("_known", "_tool")

    def __init__(self, tool: Tool | None) -> None:
        self._tool = tool
        self._known: dict[str, JsonSchema] = {}

    def schema(self, key: str) -> JsonSchema | None:
        """Return the schema of the argument `key`, or None when the tool says nothing of it."""
        if self._tool is None:
            return {"type": "string"}
        if not self._known:
            self._known = dict(_properties(self._tool.parameters, self._tool.parameters, MAX_HOPS))
        return self._known.get(key)

    def types(self, key: str) -> frozenset[str]:
        """Return the JSON types that the argument `key` may have; empty for any."""
        return self.types_of(self.schema(key))

    def types_of(self, schema: JsonSchema | None) -> frozenset[str]:
        """Return the JSON types that `schema`, a part of this tool's parameters, allows; empty for any."""
        root: JsonSchema = self._tool.parameters if self._tool else {}
        return frozenset(_types(schema, root, MAX_HOPS))

    def inner(self, schema: JsonSchema | None, key: str | None) -> JsonSchema | None:
        """Return the schema of the property `key` of an object, or of a list's items (None), inside `schema`."""
        root: JsonSchema = self._tool.parameters if self._tool else {}
        for option in _branches(schema, root, MAX_HOPS):
            inner = option.get("items") if key is None else option.get("properties", {}).get(key)
            if inner is not None:
                return inner if isinstance(inner, Mapping | bool) else None
        return None


def _properties(schema: JsonSchema, root: JsonSchema, hops: int) -> Iterator[tuple[str, JsonSchema]]:
    for option in _branches(schema, root, hops):
        yield from option.get("properties", {}).items()


def _branches(schema: JsonSchema | None, root: JsonSchema, hops: int) -> Iterator[Mapping[str, Any]]:
    """Yield `schema` and everything it refers to or combines."""
    if not isinstance(schema, Mapping) or hops == 0:
        return
    yield schema
    reference = schema.get("$ref")
    if isinstance(reference, str):
        yield from _branches(_resolve(reference, root), root, hops - 1)
    for keyword in ("anyOf", "oneOf", "allOf"):
        options = schema.get(keyword)
        for option in options if isinstance(options, list) else ():
            yield from _branches(option, root, hops - 1)


def _resolve(reference: str, root: JsonSchema) -> JsonSchema | None:
    at: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(at, Mapping) and name in at:
            at = at[name]
        elif isinstance(at, list) and name.isdigit() and int(name) < len(at):
            at = at[int(name)]
        elif name:
            return None
    return at if isinstance(at, Mapping | bool) else None


def _types(schema: JsonSchema | None, root: JsonSchema, hops: int) -> Iterator[str]:
    for option in _branches(schema, root, hops):
        named = option.get("type")
        if isinstance(named, str):
            yield named
        elif isinstance(named, list):
            yield from (name for name in named if isinstance(name, str))
        elif "const" in option or "enum" in option:
            yield from _value_types([option["const"]] if "const" in option else option["enum"])
        elif "properties" in option:
            yield "object"
        elif "items" in option:
            yield "array"
        if option.get("nullable") is True:
            yield "null"


def _value_types(values: Any) -> Iterator[str]:
    for value in values if isinstance(values, Iterable) else ():
        yield "null" if value is None else _KINDS.get(type(value), "string")


def read_literal(text: str) -> tuple[str, str]:
    """Read all of `text` as one JSON or Python value: its JSON type and JSON text, or ("", "") when it is none."""
    scanner = LiteralScanner(LiteralStyle())
    at, result, status = scanner.scan(text, 0, final=True)
    if status is not Status.DONE or text[at:].strip():
        return "", ""
    kind = _literal_kind(result)
    # Loose spellings of numbers (leading zeros, a plus sign) are text unless they stand inside a list or object.
    if kind in ("integer", "number") and result != text.strip():
        return "", ""
    return kind, result


def _literal_kind(json_text: str) -> str:
    head = json_text[0]
    if head in '{["':
        return {"{": "object", "[": "array", '"': "string"}[head]
    if head in "tf":
        return "boolean"
    if head == "n":
        return "null"
    return "number" if any(char in json_text for char in ".eE") else "integer"


def coerce(text: str, types: frozenset[str]) -> str:
    """Return raw `text` as the JSON text of a value of one of `types` (empty: any)."""
    if types == STRING:
        return json.dumps(text, ensure_ascii=False)
    kind, value = read_literal(text)
    if kind == "string":
        # Quotes belong to a raw string; they are notation only where no string is allowed to be raw.
        kind = ""
    if kind and _fits(kind, value, types):
        return value
    if "string" in types or not kind or not types:
        return _other_word(text, types) or json.dumps(text, ensure_ascii=False)
    return value


def _fits(kind: str, value: str, types: frozenset[str]) -> bool:
    if not types or kind in types:
        return True
    if kind == "integer":
        return "number" in types
    return kind == "number" and "integer" in types and float(value).is_integer()


def _other_word(text: str, types: frozenset[str]) -> str:
    word = text.strip().lower()
    if "boolean" in types and word in ("true", "false"):
        return word
    return "null" if "null" in types and word in ("null", "none") else ""
