"""Converts raw arguments to JSON text, based on the types in the tool's schema.

Raw text is ambiguous: `02134` is a number in Python, but a postal code for the tool. If the schema allows several types, they are tried
from the narrowest to the widest, ending with strings.

Rules: no text is rejected. If the text fits none of the allowed types, its syntax determines the type: for an object argument, `12` becomes
a number and `Paris` a string.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

from unrender.cache import SHARED
from unrender.errors import GrammarError
from unrender.limits import MAX_OPTIONS
from unrender.messages import Tool
from unrender.schema import shapes
from unrender.schema.admission import TYPES, admits, kind_of, kinds_of, shapes_inside
from unrender.schema.places import step_text
from unrender.schema.reader import Reading, read_schema
from unrender.schema.shapes import Shape
from unrender.values import Status
from unrender.values.finder import OddNames
from unrender.values.scanner import LiteralScanner, LiteralStyle

_BYTES = 1_500
"""Estimated size of a tool's cached argument types in bytes, without the schema."""
ANY: frozenset[str] = frozenset()
"""The empty set of types, which allows any type."""
STRING = frozenset(("string",))


class Kinds(frozenset[str]):
    """The JSON types allowed for a value (empty: any). `shape` restricts the values further.

    Compares equal to the plain set of its types, so `types == STRING` is true for any string shape.
    """

    shape: Shape
    definitions: Mapping[str, Shape]

    @classmethod
    def of(cls, shape: Shape, reading: Reading) -> Kinds:
        """Return the types of the values that match `shape`, which is a part of `reading`."""
        types = kinds_of(shape, reading.definitions)
        # If the schema allows every type, the set is empty, as for an unknown argument.
        kinds = cls(ANY if types == TYPES else types)
        kinds.shape, kinds.definitions = shape, reading.definitions
        return kinds

    def admits(self, value: Any) -> bool:
        """Return whether `value` matches the shape."""
        return admits(self.shape, value, self.definitions)


class ArgumentTypes:
    """The JSON types of one tool's arguments. Without a tool, every argument is a string.

    The tool's schema is parsed on first use. Invalid schemas don't raise errors: an argument with an invalid schema may have any type.
    """

    def __init__(self, tool: Tool | None) -> None:
        self._tool = tool
        self._types: dict[str, frozenset[str]] = {}

    @classmethod
    def of(cls, tool: Tool | None) -> ArgumentTypes:
        """Return the types of a tool's arguments. Equal tools share one instance, so each schema is parsed once."""
        if tool is None or not tool._key:
            return cls(tool)
        weight = _BYTES + 3 * len(tool._key)
        found: ArgumentTypes = SHARED.made(("arguments", tool._key), lambda: cls(tool), lambda _: weight)
        return found

    def __reduce__(self) -> tuple[type[ArgumentTypes], tuple[Tool | None]]:
        return ArgumentTypes, (self._tool,)

    @cached_property
    def _reading(self) -> Reading:
        return _UNKNOWN if self._tool is None else _read(self._tool, "#")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all arguments of the tool; empty if the schema allows additional properties."""
        options = shapes.alternatives(_followed(self._reading))
        closed = all(isinstance(option, shapes.Object) and not option.extra for option in options)
        return self.declared if closed else ()

    @cached_property
    def declared(self) -> tuple[str, ...]:
        """Names of all arguments in the tool's schema."""
        return tuple(dict.fromkeys(item.name for option in _objects(self._reading) for item in option.properties))

    @cached_property
    def odd(self) -> OddNames:
        """Names in `declared` that are not plain words."""
        return OddNames(self.declared)

    def knows(self, key: str) -> bool:
        """Return whether the schema lists the argument `key`. If it lists no arguments, returns True for every `key`."""
        return key in self.declared or not self.declared

    def fit(self, arguments: str) -> bool:
        """Return whether `arguments` is a JSON object with all required arguments, each of an allowed type."""
        if self._tool is None:
            return True
        given = _value(arguments or "{}")
        return isinstance(given, dict) and self._admitted(given) and not self.lacks(given.keys())

    def lacks(self, keys: Collection[str]) -> bool:
        """Return whether a required argument is missing from `keys`."""
        required = [{item.name for item in option.properties if item.required} for option in _objects(self._reading)]
        return bool(required) and not any(names.issubset(keys) for names in required)

    def schema(self, key: str) -> Shape | None:
        """Return the shape of the argument `key`, or None if the tool's schema doesn't mention it."""
        reading = self._reading_of(key)
        found = shapes_inside(reading.shape, key, reading.definitions)
        return shapes.Text() if self._tool is None else _unless_free(found)

    def types(self, key: str) -> frozenset[str]:
        """Return the JSON types that the argument `key` may have; empty if it may have any type."""
        if self._tool is None:
            return STRING
        if len(self._types) > MAX_OPTIONS:  # A model may invent any number of names, so the cache is limited.
            self._types.clear()
        if key not in self._types:
            shape = self.schema(key)
            self._types[key] = ANY if shape is None else Kinds.of(shape, self._reading_of(key))
        return self._types[key]

    def admit(self, arguments: str) -> bool:
        """Return whether each argument in a JSON object has an allowed type. Other constraints, such as bounds, aren't checked."""
        return self._admitted(json.loads(arguments or "{}"))

    def _admitted(self, given: Mapping[str, Any]) -> bool:
        found = given.items()
        return all(not (types := self.types(key)) or not types.isdisjoint(_types(value)) for key, value in found)

    def types_of(self, shape: Shape | None) -> frozenset[str]:
        """Return the JSON types that `shape`, a part of this tool's parameters, allows; empty if it allows any type."""
        return ANY if shape is None else Kinds.of(shape, self._reading)

    def inner(self, shape: Shape | None, key: str | None) -> Shape | None:
        """Return the shape of the property `key` of an object, or of the items of a list if `key` is None. Returns None if any value is
        allowed.
        """
        return None if shape is None else _unless_free(shapes_inside(shape, key, self._reading.definitions))

    def _reading_of(self, key: str) -> Reading:
        """Return the schema that contains `key`. If the tool's schema is invalid, return the schema of the property `key` alone."""
        if self._tool is None or self._reading is not _UNKNOWN:
            return self._reading
        # An invalid type, such as that of `b` in `{"a": {"type": "string"}, "b": {"type": 5}}`, must not affect other arguments.
        part = _read(self._tool, f"#/properties{step_text(key)}")
        named = shapes.Object(properties=(shapes.Property(key, part.shape),))
        return Reading(shape=named, definitions=part.definitions, unsupported=())


def agreed(named: frozenset[str], allowed: frozenset[str]) -> frozenset[str]:
    """Return the possible types of a value whose type is given in the call (`named`) and in the schema (`allowed`).

    Models often name the wrong type. A value marked as a string may have another type if the schema allows no strings. If the schema allows
    only strings, the value is always a string. Without a schema, `named` is returned.
    """
    known = isinstance(allowed, Kinds) and bool(allowed)
    # If `3` is marked with `type="string"`, it's a string only if the schema allows one. If the schema requires a number, the schema takes
    # precedence.
    if "string" in named:
        return STRING | allowed if known and "string" not in allowed else STRING
    return STRING if known and allowed == STRING else named or ANY


def _types(value: Any) -> tuple[str, ...]:
    kind = kind_of(value)
    return (kind, "number") if kind == "integer" else (kind,)


_UNKNOWN = Reading(shape=shapes.Anything(), definitions={}, unsupported=())


def _read(tool: Tool, at: str) -> Reading:
    try:
        return read_schema(tool.parameters, at=at)
    except GrammarError:
        return _UNKNOWN


def _objects(reading: Reading) -> list[shapes.Object]:
    return [option for option in shapes.alternatives(_followed(reading)) if isinstance(option, shapes.Object)]


def _followed(reading: Reading) -> Shape:
    return reading.definitions[reading.shape.name] if isinstance(reading.shape, shapes.Reference) else reading.shape


def _unless_free(shape: Shape) -> Shape | None:
    return None if isinstance(shape, shapes.Nothing | shapes.Anything) else shape


_KINDS = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean", "n": "null"}
"""Maps the first character of a value to its JSON type."""


def read_literal(text: str) -> tuple[str, str]:
    """Parse `text` as one JSON or Python value. Returns the JSON type and the JSON text, or ("", "") if `text` isn't a single value."""
    scanner = LiteralScanner(LiteralStyle())
    at, result, status = scanner.scan(text, 0, final=True)
    if status is not Status.DONE or text[at:].strip():
        return "", ""
    kind = _KINDS.get(result[0]) or ("number" if set(result) & set(".eE") else "integer")
    # Numbers with leading zeros or a plus sign are strings, unless they are inside a list or object.
    if kind in ("integer", "number") and result != text.strip():
        return "", ""
    return kind, result


def coerce(text: str, types: frozenset[str]) -> str:
    """Convert raw `text` to the JSON text of a value of one of the given types (empty: any).

    Returns the first interpretation that the schema allows, or the most natural one if the schema allows none.
    """
    if types == STRING:
        return json.dumps(text, ensure_ascii=False)
    kind, value = read_literal(text)
    # The quotes of `"Paris"` are part of the raw text, because raw strings are encoded without quotes.
    kind = "" if kind == "string" else kind
    if isinstance(types, Kinds):
        # With `{"enum": ["1", 2]}`, the number `1` is tried first and rejected by the enum. Then the string `"1"` is accepted.
        readings = (value if kind else "", _other_word(text, types), json.dumps(text, ensure_ascii=False))
        for found in filter(None, readings):
            if types.admits(_value(found)):
                return found
    # If the schema allows none of the interpretations, a matching type is sufficient. For an integer below 5, `7` is still a number.
    if kind and _fits(kind, value, types):
        return value
    # For a boolean argument, `yes` stays a string. For an object argument, `12` becomes a number, so that a validator reports a number
    # rather than a string.
    if "string" in types or not kind:
        return _other_word(text, types) or json.dumps(text, ensure_ascii=False)
    return value


def _value(json_text: str) -> Any:
    try:
        return json.loads(json_text)
    except (ValueError, RecursionError):  # Raised for numbers with thousands of digits, and for deeply nested lists.
        return _NO_VALUE


_NO_VALUE = object()
"""Placeholder for JSON text that can't be decoded. It has no JSON type, so only the shape `Anything` admits it."""


def _fits(kind: str, value: str, types: frozenset[str]) -> bool:
    if not types or kind in types:
        return True
    if kind == "integer":
        return "number" in types
    # Unlike in most languages, `3.0` is an integer in JSON Schema.
    return kind == "number" and "integer" in types and float(value).is_integer()


def _other_word(text: str, types: frozenset[str]) -> str:
    word = text.strip().lower()
    if "boolean" in types and word in ("true", "false"):
        return word
    # Some templates render null as empty text. If strings are allowed, empty text is the empty string instead.
    nulls = ("null", "none") if "string" in types else ("null", "none", "")
    return "null" if "null" in types and word in nulls else ""
