"""Bounds plain data that comes from outside, and names its JSON types.

A value is looked at level by level, without recursion, so that one which holds itself ends at the deepest level that is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from unrender.errors import RequestError
from unrender.limits import MAX_DEPTH, MAX_VALUES

JsonSchema = Mapping[str, Any] | bool


def checked_object(value: Any, where: str, expected: str = "an object") -> Mapping[str, Any]:
    """Return a value that is an object. Raises `RequestError`, naming `where`, for any other."""
    if not isinstance(value, Mapping):
        raise RequestError(f"{where}: expected {expected}, found {type(value).__name__}")
    return value


def checked_list(value: Any, where: str) -> Sequence[Any]:
    """Return a value that is a list. Raises `RequestError`, naming `where`, for any other."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
        raise RequestError(f"{where}: expected a list, found {type(value).__name__}")
    return value


_Place = tuple["_Place | None", Any]
"""A key, after the place of what holds it."""
_SCALARS = (str, int, float, type(None))
_ATOMS = frozenset((*_SCALARS, bool))
_SHOWN_KEYS = 6


def check_values(value: Any, *, where: str, only_json: bool = True) -> None:
    """Check that a value is not nested too deeply and does not contain itself; with `only_json`, that it is JSON.

    Raises `RequestError`, naming `where` and the keys that lead to the place.
    """
    level: list[tuple[Any, _Place | None]] = [(value, None)]
    total = 0
    for _ in range(MAX_DEPTH):
        deeper: list[tuple[Any, _Place | None]] = []
        for holder, place in level:
            for key, item in _items(holder):
                kind = type(item)
                if kind in _ATOMS:
                    continue
                if kind is dict or kind is list or isinstance(item, Mapping | list | tuple):
                    deeper.append((item, (place, key)))
                elif only_json and not isinstance(item, _SCALARS):
                    _refuse((place, key), where, f"expected JSON, found {type(item).__name__}")
            if only_json and isinstance(holder, Mapping):
                for key in holder:
                    if not isinstance(key, str):
                        _refuse(place, where, f"expected text as keys, found {key!r:.60}")
        total += len(deeper)
        if total > MAX_VALUES:
            raise RequestError(f"{where}: expected at most {MAX_VALUES} lists and objects, found more")
        if not deeper:
            return
        level = deeper
    _refuse(level[0][1], where, f"expected at most {MAX_DEPTH} levels of lists and objects, found more")


def _items(holder: Any) -> Iterable[tuple[Any, Any]]:
    if type(holder) is dict or isinstance(holder, Mapping):
        return holder.items()
    return enumerate(holder) if isinstance(holder, list | tuple) else ()


def _refuse(place: _Place | None, where: str, problem: str) -> NoReturn:
    keys: list[Any] = []
    while place is not None:
        place, key = place
        keys.append(key)
    keys.reverse()
    path = "".join(f"[{key}]" if isinstance(key, int) else f".{key!s:.60}" for key in keys[:_SHOWN_KEYS])
    raise RequestError(f"{where}{path}{'…' if len(keys) > _SHOWN_KEYS else ''}: {problem}")


def json_type(value: Any) -> str:
    """Return the JSON type's name: `string`, `number`, `boolean`, `null`, `array` or `object`."""
    if value is None:
        return "null"
    # `bool` before `int`: in Python `True` is both.
    kinds = ((bool, "boolean"), (str, "string"), (int | float, "number"), (Mapping, "object"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "array")
