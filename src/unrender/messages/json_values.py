"""Checks that a value from outside is JSON, not too deep and not too large; errors name the place.

Strategy: level by level, without recursion, so that a value which holds itself ends at the deepest level that is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from unrender.errors import MessageError
from unrender.limits import DEEPEST_VALUE, MOST_VALUES

_Place = tuple["_Place | None", Any]
"""A key, after the place of what holds it."""
_SCALARS = (str, int, float, type(None))
_ATOMS = frozenset((*_SCALARS, bool))
_SHOWN_KEYS = 6


def check_values(value: Any, *, where: str, only_json: bool = True) -> None:
    """Check that a value is not nested too deeply and does not contain itself; with `only_json`, that it is JSON.

    Raises `MessageError`, naming `where` and the keys that lead to the place.
    """
    level: list[tuple[Any, _Place | None]] = [(value, None)]
    total = 0
    for _ in range(DEEPEST_VALUE):
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
                _check_keys(holder, place, where)
        total += len(deeper)
        if total > MOST_VALUES:
            raise MessageError(f"{where}: expected at most {MOST_VALUES} lists and objects, found more")
        if not deeper:
            return
        level = deeper
    _refuse(level[0][1], where, f"expected at most {DEEPEST_VALUE} levels of lists and objects, found more")


def _items(holder: Any) -> Iterable[tuple[Any, Any]]:
    if type(holder) is dict or isinstance(holder, Mapping):
        return holder.items()
    return enumerate(holder) if isinstance(holder, list | tuple) else ()


def _check_keys(holder: Mapping[Any, Any], place: _Place | None, where: str) -> None:
    for key in holder:
        if not isinstance(key, str):
            _refuse(place, where, f"expected text as keys, found {key!r:.60}")


def _refuse(place: _Place | None, where: str, problem: str) -> NoReturn:
    keys: list[Any] = []
    while place is not None:
        place, key = place
        keys.append(key)
    keys.reverse()
    path = "".join(f"[{key}]" if isinstance(key, int) else f".{key!s:.60}" for key in keys[:_SHOWN_KEYS])
    raise MessageError(f"{where}{path}{'…' if len(keys) > _SHOWN_KEYS else ''}: {problem}")


def json_type(value: Any) -> str:
    """Return the JSON type's name: `string`, `number`, `boolean`, `null`, `array` or `object`."""
    if value is None:
        return "null"
    kinds = ((bool, "boolean"), (str, "string"), (int | float, "number"), (Mapping, "object"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "array")
