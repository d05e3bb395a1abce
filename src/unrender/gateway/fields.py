"""Takes the fields of a JSON object one by one, checked, and knows which were not taken.

>>> fields = Fields({"n": 2, "top_k": 5, "user": None})
>>> fields.integer("n", 1, 16), fields.flag("stream"), fields.left()
(2, False, ('top_k',))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from unrender.gateway.failure import Failure, invalid

_T = TypeVar("_T")


class Fields:
    """The fields of an object at `where`. Null counts as absent. Every method raises `Failure` for a wrong type."""

    __slots__ = ("_body", "_left", "taken", "where")

    def __init__(self, body: Any, where: str = "") -> None:
        if not isinstance(body, Mapping):
            raise wrong(where or "body", "an object", body)
        self._body = body
        self._left = {name: None for name, value in body.items() if value is not None}
        self.where: str = where
        self.taken: set[str] = set()
        """The names of the fields that were asked for, whether they are there or not."""

    @staticmethod
    def of(body: Any) -> Fields:
        """Return the fields of a request's body. A body that is already `Fields` is returned unchanged."""
        return body if isinstance(body, Fields) else Fields(body)

    def any(self, name: str) -> Any:
        """Take a field of any type; None when it is absent. To take a field means that it is no longer among `left`."""
        self._left.pop(name, None)
        self.taken.add(name)
        return self._body.get(name)

    def text(self, name: str) -> str | None:
        """Take a string."""
        return self.typed(name, str, "a string")

    def word(self, name: str, *words: str) -> str | None:
        """Take a string that must be one of `words`."""
        value = self.any(name)
        if value is not None and value not in words:
            raise wrong(self.place(name), f"one of {list(words)}", value)
        return None if value is None else str(value)

    def flag(self, name: str, default: bool = False) -> bool:
        """Take a boolean."""
        value = self.typed(name, bool, "true or false")
        return default if value is None else value

    def integer(self, name: str, low: int, high: int) -> int | None:
        """Take an integer from `low` to `high`."""
        value = self.any(name)
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if value is not None and (isinstance(value, bool) or not whole or not low <= value <= high):
            raise wrong(self.place(name), f"an integer from {low} to {high}", value)
        return None if value is None else int(value)

    def number(self, name: str, low: float, high: float) -> float | None:
        """Take a number from `low` to `high`."""
        value = self.any(name)
        if value is not None and (
            not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high
        ):
            raise wrong(self.place(name), f"a number from {low:g} to {high:g}", value)
        return None if value is None else float(value)

    def items(self, name: str, most: int) -> list[Any]:
        """Take a list of at most `most` items; an empty one when it is absent."""
        value = self.typed(name, list, "a list") or []
        if len(value) > most:
            raise invalid(f"{self.place(name)}: expected at most {most} items, found {len(value)}", param=name)
        return value

    def inside(self, name: str) -> Fields:
        """Take an object; an empty one when it is absent."""
        value = self.any(name)
        return Fields({} if value is None else value, self.place(name))

    def texts(self, name: str, most: int) -> tuple[str, ...]:
        """Take a string, or a list of strings. Empty strings are left out."""
        value = self.any(name)
        listed = [value] if isinstance(value, str) else [] if value is None else value
        if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
            raise wrong(self.place(name), "a string or a list of strings", value)
        if len(listed) > most:
            raise invalid(f"{self.place(name)}: expected at most {most} strings, found {len(listed)}", param=name)
        return tuple(text for text in listed if text)

    def refuse(self, **reasons: str) -> None:
        """Take fields that must be absent; `reasons` maps each name to the sentence for the error."""
        for name, why in reasons.items():
            if self.any(name) is not None:
                raise invalid(f"{self.place(name)}: {why}", param=name)

    def without_effect(self, **values: Any) -> None:
        """Take fields that have no effect, if they have the given values."""
        for name, value in values.items():
            if self._body.get(name) == value:
                self._left.pop(name, None)

    def all(self) -> Mapping[str, Any]:
        """Take every field, of any type."""
        self._left.clear()
        return self._body

    def left(self) -> tuple[str, ...]:
        """Return the places of the fields that were not taken."""
        return tuple(self.place(name) for name in self._left)

    def place(self, name: str) -> str:
        """Return the name of a field in errors."""
        return f"{self.where}.{name}" if self.where else name

    def typed(self, name: str, kind: type[_T], expected: str) -> _T | None:
        """Take a field of the type `kind`, which errors call `expected`; None when it is absent."""
        value = self.any(name)
        if value is not None and not isinstance(value, kind):
            raise wrong(self.place(name), expected, value)
        return value


def wrong(where: str, expected: str, found: Any) -> Failure:
    """Return the failure of a field with the wrong value."""
    return invalid(f"{where}: expected {expected}, found {found!r:.80}", param=where)
