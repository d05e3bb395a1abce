"""The dataclasses of `unrender.format` into a JSON Schema: types as constraints, docstrings as descriptions.

Strategy: the classes are the truth. Annotations become types, the string below a field becomes its description, and each
dataclass becomes a definition of its own.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import types
import typing
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from typing import Any

import environment

from unrender.format import Format, Slot

PAGE = environment.ROOT / "docs" / "reference" / "format.schema.json"

_SCALARS = {str: "string", int: "integer", bool: "boolean"}


def main() -> None:
    """Write the schema to where it is published."""
    PAGE.write_text(text(), encoding="utf-8")


def text() -> str:
    """Return the schema as it is published."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def schema() -> dict[str, Any]:
    """Return a JSON Schema that the JSON of every `Format` obeys."""
    definitions: dict[str, Any] = {}
    root = _of(Format, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "unrender Format",
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


def _of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type; what deserves a name goes to `definitions`."""
    if kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    if typing.get_origin(kind) is tuple:
        return _array(typing.get_args(kind), definitions)
    if typing.get_origin(kind) is types.UnionType:
        return {"anyOf": [_of(option, definitions) for option in typing.get_args(kind)]}
    if kind is type(None):
        return {"type": "null"}
    if kind.__name__ not in definitions:
        definitions[kind.__name__] = {}
        definitions[kind.__name__] = _object(kind, definitions) if is_dataclass(kind) else _words(kind)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _array(items: tuple[Any, ...], definitions: dict[str, Any]) -> dict[str, Any]:
    if items[-1] is Ellipsis:
        return {"type": "array", "items": _of(items[0], definitions)}
    return {
        "type": "array",
        "prefixItems": [_of(item, definitions) for item in items],
        "items": False,
        "minItems": len(items),
    }


def _object(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    hints, described = typing.get_type_hints(kind), _descriptions(kind)
    properties = {item.name: _of(hints[item.name], definitions) | described.get(item.name, {}) for item in fields(kind)}
    required = [item.name for item in fields(kind) if item.default is MISSING and item.default_factory is MISSING]
    return {
        "type": "object",
        "description": _first_paragraph(kind),
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _words(kind: type[StrEnum]) -> dict[str, Any]:
    words = {"enum": [item.value for item in kind], "description": _first_paragraph(kind)}
    if kind is not Slot:
        return words
    # Beside plain text a slot is an object, so that no text can be mistaken for one.
    return {"type": "object", "properties": {"slot": words}, "required": ["slot"], "additionalProperties": False}


def _first_paragraph(kind: type) -> str:
    return (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " ")


def _descriptions(kind: type) -> dict[str, dict[str, str]]:
    """Return the strings that are below the fields of a class."""
    tree = ast.parse(inspect.getsource(kind))
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    found = {}
    for field, below in itertools.pairwise(body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                found[name] = {"description": " ".join(inspect.cleandoc(said).split("\n"))}
    return found


if __name__ == "__main__":
    main()
