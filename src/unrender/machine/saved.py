"""Reads the fields of saved JSON data, and checks their types and ranges.

Rules: whatever is not as expected is a `StateError` that says where it is, what was found and what was expected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from unrender.errors import StateError

MOST = 1 << 53
"""Greatest integer that every JSON reader takes exactly."""
_Choice = TypeVar("_Choice")


class Saved:
    """One JSON object, and its place in the whole."""

    __slots__ = ("_data", "_where")

    def __init__(self, data: Any, where: str = "state") -> None:
        if not isinstance(data, Mapping):
            raise StateError(f"{where}: expected an object, found {type(data).__name__}")
        self._data = data
        self._where = where

    def refuse(self, name: str, expected: str) -> StateError:
        """Return the error for a wrong value in the field `name`."""
        found = repr(self._data.get(name, "nothing"))
        return StateError(f"{self._where}.{name}: expected {expected}, found {found[:60]}")

    def require(self, name: str, condition: bool, expected: str) -> None:
        """Raise `StateError` for the field `name` unless `condition`."""
        if not condition:
            raise self.refuse(name, expected)

    def text(self, name: str) -> str:
        """Return a string."""
        value = self._data.get(name)
        if not isinstance(value, str):
            raise self.refuse(name, "a string")
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean."""
        value = self._data.get(name)
        if not isinstance(value, bool):
            raise self.refuse(name, "true or false")
        return value

    def number(self, name: str, low: int = 0, high: int = MOST) -> int:
        """Return an integer between `low` and `high`, both included."""
        value = self._data.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.refuse(name, f"an integer from {low} to {high}")
        return value

    def choice(self, name: str, options: Mapping[str, _Choice]) -> _Choice:
        """Return the option that the field's word stands for."""
        value = self._data.get(name)
        if not isinstance(value, str) or value not in options:
            raise self.refuse(name, f"one of {', '.join(options)}")
        return options[value]

    def items(self, name: str) -> list[Any]:
        """Return a list; its elements are not checked."""
        value = self._data.get(name)
        if not isinstance(value, list):
            raise self.refuse(name, "a list")
        return value

    def texts(self, name: str) -> list[str]:
        """Return a list of strings."""
        values = self.items(name)
        self.require(name, all(isinstance(value, str) for value in values), "a list of strings")
        return list(values)

    def numbers(self, name: str, low: int, high: int) -> list[int]:
        """Return a list of integers from `low` to `high`, none less than the one before."""
        values = self.items(name)
        valid = all(isinstance(value, int) and not isinstance(value, bool) and low <= value <= high for value in values)
        self.require(name, valid and values == sorted(values), f"a rising list of integers from {low} to {high}")
        return list(values)

    def object(self, name: str) -> Saved | None:
        """Return an object, or None for null."""
        value = self._data.get(name)
        return None if value is None else Saved(value, f"{self._where}.{name}")

    def part(self, name: str) -> Saved:
        """Return an object."""
        return Saved(self._data.get(name), f"{self._where}.{name}")

    def objects(self, name: str) -> list[Saved]:
        """Return a list of objects."""
        return [Saved(value, f"{self._where}.{name}[{i}]") for i, value in enumerate(self.items(name))]
