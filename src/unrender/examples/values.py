"""Generates readable example values for JSON Schemas, such as those in documentation.

Strategy: the schema's own values come first (`const`, `examples`, `default`, `enum`), then values for its format, then words from the
property's name and the question. Each of these guesses is checked against the schema. If no guess is valid, a value is sampled from the
schema's grammar.

Rules: the same schema, name and question give the same value. The schema always allows the returned value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from unrender.errors import GrammarError
from unrender.format import Format
from unrender.grammar import Grammar, conforms
from unrender.grammar import schema as value_of
from unrender.json_values import JsonSchema, thawed
from unrender.limits import MAX_PLACES, MAX_SHOWN, MAX_SHOWN_ITEMS, MAX_SMALL
from unrender.messages import Request
from unrender.schema.places import References
from unrender.turn import Turn

_FORMATS: Mapping[str, str] = {
    "date": "2026-01-15",
    "date-time": "2026-01-15T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "PT1H",
    **dict.fromkeys(("email", "idn-email"), "ada@example.com"),
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    **dict.fromkeys(("uri", "uri-reference", "iri"), "https://example.com"),
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
}
_PLACES = ("city", "town", "location", "place", "destination", "origin", "country", "region", "capital")
_ASKED = [
    "query",
    "question",
    "prompt",
    "text",
    "message",
    "input",
    "search",
    "task",
    "topic",
    "subject",
    "content",
    "keywords",
]
"""Words that mark a property as the place for the user's question, such as `query` in `search_query`."""
_TEXTS: Mapping[str, str] = {
    **dict.fromkeys(_PLACES, "Paris"),
    "country": "France",
    **dict.fromkeys(("name", "person", "author"), "Ada"),
    **dict.fromkeys(("user", "username"), "ada"),
    "language": "English",
    **dict.fromkeys(("lang", "locale"), "en"),
    "email": "ada@example.com",
    **dict.fromkeys(("url", "uri", "link", "website"), "https://example.com"),
    **dict.fromkeys(("path", "file", "filename"), "notes.txt"),
    **dict.fromkeys(("directory", "folder", "dir"), "docs"),
    **dict.fromkeys(("date", "day"), "2026-01-15"),
    "time": "12:00",
    **dict.fromkeys(("timezone", "zone", "tz"), "Europe/Paris"),
    "currency": "EUR",
    **dict.fromkeys(("unit", "units"), "celsius"),
    **dict.fromkeys(("color", "colour"), "red"),
    "title": "Example",
    "code": "print(1 + 1)",
    **dict.fromkeys(("command", "cmd"), "ls"),
    **dict.fromkeys(("expression", "formula", "equation"), "1 + 1"),
    **dict.fromkeys(("symbol", "ticker"), "ACME"),
    "phone": "+1 555 0100",
    "id": "a1",
}
_SHALLOW = 4
"""Maximum depth of lists that get an item even if the schema allows an empty list."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_PROPER = re.compile(r"(?<=[\w,] )[A-Z][^\W\d_]{2,}(?: [A-Z][^\W\d_]+)*")
"""Matches capitalized names inside a sentence. The first word is excluded, because it's always capitalized."""
_NUMBER = re.compile(r"(?<![\w.])-?\d{1,9}(?:\.\d{1,6})?(?![\w.])")


def words_of(name: str) -> list[str]:
    """Return the words of an identifier, in lower case.

    >>> words_of("getUser_name2")
    ['get', 'user', 'name']
    """
    return [word.lower() for word in _WORD.findall(name)]


def example_value(schema: JsonSchema, *, name: str = "", question: str = "") -> Any:
    """Return a readable value that `schema` allows. `name` is the property's name, and `question` is the user's question.

    Raises `GrammarError` if the schema is malformed or allows no value.

    >>> example_value({"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]})
    {'city': 'Paris'}
    >>> example_value({"type": "integer", "minimum": 10}, question="The next 12 days")
    12
    """
    plain = thawed(schema)
    value = _Writer(References(plain if isinstance(plain, Mapping) else {}), question).value(plain, name, 0)
    return value if conforms(value, plain) else _drawn(plain)


def _drawn(schema: JsonSchema) -> Any:
    """Return a value sampled from the schema's grammar."""
    turn = Turn(prompt="", request=Request(), format=Format(), grammar=Grammar(value_of(schema)))
    return json.loads(turn.sample(0))


@dataclass(slots=True)
class _Writer:
    references: References
    """The schema to which `$ref` refers."""
    question: str
    left: int = MAX_PLACES

    def value(self, schema: JsonSchema, name: str, depth: int) -> Any:
        """Return a value for a subschema: the first valid guess, or a sample if no guess is valid."""
        if depth > MAX_SMALL:
            raise GrammarError(f"schema: no example within {MAX_SMALL} levels")
        schema = self.resolved(schema)
        alone = self.rooted(schema)
        for guess in self.guesses(schema, name, depth):
            self.left -= 1
            if self.left < 0:
                raise GrammarError(f"schema: none of {MAX_PLACES} guesses is an example")
            if conforms(guess, alone):
                return guess
        return _drawn(alone)

    def resolved(self, schema: JsonSchema) -> Mapping[str, Any]:
        """Return a schema with `$ref` and `allOf` merged into it."""
        if not isinstance(schema, Mapping):
            return {}
        for _ in range(MAX_SMALL):
            pointer, start = schema.get("$ref"), self.references.start()
            target = self.references.target(pointer, start) if isinstance(pointer, str) else None
            if target is None:
                break
            schema = {**target.mapping, **{key: value for key, value in schema.items() if key != "$ref"}}
        for part in schema.get("allOf", ()) if isinstance(schema.get("allOf"), list | tuple) else ():
            if isinstance(part, Mapping) and "$ref" not in part:
                schema = {**part, **schema}
        return schema

    def rooted(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a subschema with the root's definitions added, so that it can be used on its own."""
        root = self.references.start().mapping
        kept = {key: root[key] for key in ("$defs", "definitions") if key in root}
        return {**kept, **schema}

    def guesses(self, schema: Mapping[str, Any], name: str, depth: int) -> Iterator[Any]:
        """Yield values, with the most readable ones first. Some of these values may violate the schema."""
        if "const" in schema:
            yield schema["const"]
        if options := _list(schema, "enum"):
            yield from (one for one in options if isinstance(one, str) and _mentioned(one, self.question))
        yield from _list(schema, "examples")[:1]
        if schema.get("default") is not None:
            yield schema["default"]
        yield from options
        for branch in (*_list(schema, "anyOf"), *_list(schema, "oneOf")):
            beside = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
            resolved = self.resolved(branch)
            if resolved.get("type") != "null":
                yield from self.guesses({**beside, **resolved}, name, depth + 1) if depth < MAX_SMALL else ()
        for kind in _kinds(schema):
            yield from self.of_kind(kind, schema, name, depth)

    def of_kind(self, kind: str, schema: Mapping[str, Any], name: str, depth: int) -> Iterator[Any]:
        """Yield guesses at a value of one JSON type."""
        match kind:
            case "object":
                yield self.object(schema, depth)
            case "array":
                yield self.array(schema, name, depth)
            case "string":
                yield from self.texts(schema, name)
            case "integer" | "number":
                yield from self.numbers(schema, whole=kind == "integer")
            case "boolean":
                yield True
            case "null":
                yield None

    def object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """Return an object with the required properties. If none is required, it contains only the first property."""
        properties = schema.get("properties")
        known = properties if isinstance(properties, Mapping) else {}
        wanted = [key for key in _list(schema, "required") if isinstance(key, str)] or list(known)[:1]
        return {key: self.value(known.get(key, {}), key, depth + 1) for key in wanted}

    def array(self, schema: Mapping[str, Any], name: str, depth: int) -> list[Any]:
        """Return a list with the fewest allowed items, usually at least one."""
        heads, low = _list(schema, "prefixItems"), schema.get("minItems")
        # Limit the depth, because values of a recursive schema could be nested without end.
        fewest = len(heads) or int(depth < _SHALLOW)
        length = low if isinstance(low, int) and low > 0 else fewest
        if length > MAX_SHOWN_ITEMS or schema.get("maxItems") == 0:
            return []
        rest = schema.get("items", {})
        items = [*heads[:length], *[rest] * (length - len(heads))]
        return [self.value(item, name.removesuffix("s"), depth + 1) for item in items]

    def texts(self, schema: Mapping[str, Any], name: str) -> Iterator[str]:
        """Yield strings based on the format, the property's name and the question, adjusted to the allowed length."""
        # Try the last word of the name first. For example, `city_name` is a city, and `user_email` is an email address.
        words = [word for word in reversed(words_of(name)) if word != "name"]
        form = schema.get("format")
        found = [_FORMATS[form]] if isinstance(form, str) and form in _FORMATS else []
        for word in (*words, *(["name"] if "name" in words_of(name) else [])):
            if word in _PLACES or word == "name":
                found += _PROPER.findall(self.question)[:1]
            if word in _ASKED and self.question:
                found.append(" ".join(self.question.split()))
            found += [_TEXTS[word]] if word in _TEXTS else []
        found += [" ".join(words_of(name)) or "example", "example"]
        low, high = schema.get("minLength"), schema.get("maxLength")
        for text in found:
            fewest = low if isinstance(low, int) and low <= MAX_SHOWN else 0
            longer = (f"{text} " * fewest)[:fewest] if len(text) < fewest else text
            yield longer[: max(high, 0) if isinstance(high, int) else None]

    def numbers(self, schema: Mapping[str, Any], *, whole: bool) -> Iterator[float]:
        """Yield numbers based on the question and the schema's bounds."""
        found: list[float] = [float(text) for text in _NUMBER.findall(self.question)]
        found += [3, 1, 0]
        step = _number(schema, "multipleOf") or 1
        for key in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"):
            bound = _number(schema, key)
            if bound is not None and abs(bound) < 1e15:
                nearest = bound // step * step
                found += [bound, nearest, nearest + step, nearest - step]
        for number in filter(isfinite, found):
            yield int(number) if whole or number == int(number) else number


def _list(schema: Mapping[str, Any], key: str) -> list[Any]:
    found = schema.get(key)
    return list(found) if isinstance(found, list | tuple) else []


def _number(schema: Mapping[str, Any], key: str) -> float | None:
    found = schema.get(key)
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    """Return the schema's JSON types with null last. If the schema names no type, infer the types from its keywords."""
    said = schema.get("type")
    if isinstance(said, str):
        return [said]
    if isinstance(said, list | tuple):
        return sorted((kind for kind in said if isinstance(kind, str)), key=lambda kind: kind == "null")
    if {"properties", "required"} & schema.keys():
        return ["object"]
    if {"items", "prefixItems", "minItems"} & schema.keys():
        return ["array"]
    return ["number"] if {"minimum", "maximum", "multipleOf"} & schema.keys() else ["string", "object"]


def _mentioned(word: str, text: str) -> bool:
    return bool(word) and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None
