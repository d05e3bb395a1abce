"""Derives the JSON Schema of a request from the function that reads it.

Strategy: the reader is run on fields of no real request: they note what is asked of them, and answer as if nothing were there.
So the description cannot say anything but what is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from unrender.gateway.fields import Fields

Schema = dict[str, Any]


class Recorder(Fields):
    """Fields that note their types in `schema`. `given` holds values that the reader cannot do without."""

    __slots__ = ("_forms", "schema")

    def __init__(self, forms: Mapping[str, Schema], where: str = "", given: Mapping[str, Any] | None = None) -> None:
        super().__init__(given or {}, where)
        self._forms = forms
        self.schema: Schema = {"type": "object", "properties": {}}

    def any(self, name: str) -> Any:
        """Note a field of any type; if its form is known from elsewhere, note that form."""
        self._note(name, self._forms.get(self.place(name), {}))
        return super().any(name)

    def word(self, name: str, *words: str) -> str | None:
        """Note a field that is one of some words."""
        self._note(name, {"enum": [*words, None]})
        return super().word(name, *words)

    def integer(self, name: str, low: int, high: int) -> int | None:
        """Note an integer and its range."""
        self._note(name, {"type": ["integer", "null"], "minimum": low, "maximum": high})
        return super().integer(name, low, high)

    def number(self, name: str, low: float, high: float) -> float | None:
        """Note a number and its range."""
        self._note(name, {"type": ["number", "null"], "minimum": low, "maximum": high})
        return super().number(name, low, high)

    def items(self, name: str, most: int) -> list[Any]:
        """Note a list."""
        inner = self._forms.get(f"{self.place(name)}[]", {})
        self._note(name, {"type": ["array", "null"], "maxItems": most, "items": inner})
        return super().items(name, most)

    def inside(self, name: str) -> Fields:
        """Note that a field is an object; return a recorder for the fields inside it."""
        inner = Recorder(self._forms, self.place(name))
        inner.schema["type"] = ["object", "null"]
        self._note(name, inner.schema)
        return inner

    def texts(self, name: str, most: int) -> tuple[str, ...]:
        """Note a string or a list of strings."""
        listed = {"type": "array", "maxItems": most, "items": {"type": "string"}}
        self._note(name, {"anyOf": [{"type": ["string", "null"]}, listed]})
        return super().texts(name, most)

    def refuse(self, **reasons: str) -> None:
        """Note the fields that must not be there."""
        for name, why in reasons.items():
            self._note(name, {"type": "null", "description": why})

    def without_effect(self, **values: Any) -> None:
        """Note fields that have no effect."""
        for name in values:
            self._note(name, {})

    def typed(self, name: str, kind: type[Any], expected: str) -> Any:
        """Note a field of the type `kind`."""
        self._note(name, {"type": [_TYPES[kind], "null"]})
        return super().typed(name, kind, expected)

    def _note(self, name: str, schema: Schema) -> None:
        """Note a field; what is said first, and most exactly, is kept."""
        self.schema["properties"].setdefault(name, schema)


_TYPES = {str: "string", bool: "boolean", list: "array"}


def schema_of(
    read: Callable[[Any], object], forms: Mapping[str, Schema], given: Mapping[str, Any] | None = None
) -> Schema:
    """Return the schema of the requests that `read` reads.

    `forms` are the schemas, by place, of the parts that `read` passes on unread.
    """
    recorder = Recorder(forms, given=given)
    read(recorder)
    return recorder.schema
