"""Reads the most common subschemas directly, without conjuncts.

Rules: what is read here means the same read keyword by keyword; `tests/unit/grammar/test_plain.py` reads both ways.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unrender.schema import shapes
from unrender.schema.conjuncts import ANNOTATIONS
from unrender.schema.shapes import Shape

_SCALARS: Mapping[str, Shape] = {
    "string": shapes.Text(),
    "integer": shapes.Integer(),
    "number": shapes.Number(),
    "boolean": shapes.Boolean(),
    "null": shapes.Null(),
}
_TYPE_ALONE = ANNOTATIONS | {"type"}
_OF_OBJECTS = _TYPE_ALONE | {"properties", "required", "additionalProperties"}
_OF_LISTS = _TYPE_ALONE | {"items"}
_OF_WORDS = _TYPE_ALONE | {"enum"}
_OF_OPTIONS = ANNOTATIONS | {"anyOf"}
_STRINGS = {str}


def plain_scalar(schema: Any) -> Shape | None:
    """Return the shape of a schema that only names one scalar type; None for any other schema."""
    if type(schema) is not dict:
        return None
    kind = schema.get("type")
    if type(kind) is not str or kind not in _SCALARS or not schema.keys() <= _TYPE_ALONE:
        return None
    return _SCALARS[kind]


def plain_kind(schema: Any) -> str:
    """Return the kind of a plain schema: "object", "array", "enum" or "anyOf"; "" for any other schema.

    A plain object declares its properties, including all required ones, and allows no others. A plain list has only one
    schema for its items. The values of a plain `enum` are strings.
    """
    if type(schema) is not dict:
        return ""
    said = schema.keys()
    match schema.get("type"):
        case "object" if said <= _OF_OBJECTS and _is_declared(schema):
            return "object"
        case "array" if said <= _OF_LISTS and type(schema.get("items")) is dict:
            return "array"
        case None | "string" if said <= _OF_WORDS and _are_words(schema.get("enum")):
            return "enum"
        case None if said <= _OF_OPTIONS and type(schema.get("anyOf")) is list and "type" not in said:
            return "anyOf"
    return ""


def _is_declared(schema: Mapping[str, Any]) -> bool:
    properties, required = schema.get("properties"), schema.get("required", [])
    if type(properties) is not dict or type(required) is not list:
        return False
    closed = schema.get("additionalProperties", False) is False
    return closed and {*map(type, properties), *map(type, required)} <= _STRINGS and properties.keys() >= {*required}


def _are_words(values: Any) -> bool:
    return type(values) is list and bool(values) and {*map(type, values)} == _STRINGS
