"""Checks the shape of a response template that a checkpoint ships.

Rules: what the parsers of response templates refuse is refused here, and the error names the place. Patterns are left to them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from unrender.emit.response_template import Exported
from unrender.errors import ExportError

VERSION = 1

_ANCHORS = ("start_anchor", "start_anchor_pattern")
_TOP = {"version", "defaults", "fields", *_ANCHORS}
_FIELD = {"open", "open_pattern", "close", "close_pattern", "content", "content_args", "repeats", "join", "optional"}
_TRANSFORMS = {"transform", "transform_each"}
_CONTENTS = ("text", "int", "float", "bool", "json", "xml-inline", "kv-lines")


def read_response_template(data: Any) -> Exported:
    """Check the shape of a response template and return it.

    Raises `ExportError`, naming the place, when it is not a response template of version 1.

    >>> read_response_template({"start_anchor": "<|assistant|>", "fields": {"content": {"open": "a", "close": "b"}}})
    Exported(template={'start_anchor': '<|assistant|>', 'fields': {...}}, omissions=())
    >>> read_response_template({"fields": {"content": {}}})
    Traceback (most recent call last):
    unrender.errors.ExportError: response_template: expected start_anchor or start_anchor_pattern, found none of the two
    """
    where = "response_template"
    _check_keys(data, _TOP, where=where)
    if data.get("version", VERSION) != VERSION:
        raise ExportError(f"{where}.version: expected {VERSION}, found {data['version']!r}")
    anchors = [name for name in _ANCHORS if name in data]
    if len(anchors) != 1:
        found = "both" if anchors else "none of the two"
        raise ExportError(f"{where}: expected {' or '.join(_ANCHORS)}, found {found}")
    fields = data.get("fields")
    if not isinstance(fields, Mapping) or not fields:
        raise ExportError(f"{where}.fields: expected an object with at least one field, found {fields!r:.60}")
    for name, field in fields.items():
        _check_field(field, where=f"{where}.fields.{name}")
    unopened = [name for name, field in fields.items() if "open" not in field and "open_pattern" not in field]
    if len(unopened) > 1:
        raise ExportError(f"{where}.fields: expected at most one field that nothing opens, found {unopened}")
    return Exported(template=dict(data))


def _check_field(field: Any, *, where: str) -> None:
    _check_keys(field, _FIELD | _TRANSFORMS, where=where)
    for name in ("open", "close"):
        if name in field and f"{name}_pattern" in field:
            raise ExportError(f"{where}: expected {name} or {name}_pattern, found both")
    if field.get("content", "text") not in _CONTENTS:
        raise ExportError(f"{where}.content: expected one of {list(_CONTENTS)}, found {field['content']!r:.60}")


def _check_keys(value: Any, known: Collection[str], *, where: str) -> None:
    if not isinstance(value, Mapping):
        raise ExportError(f"{where}: expected an object, found {type(value).__name__}")
    unknown = sorted(set(value) - set(known))
    if unknown:
        raise ExportError(f"{where}: unknown key {unknown[0]!r}; known are {sorted(known)}")
