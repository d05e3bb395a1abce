"""Plain data that comes from outside: bounds it, names its JSON types, and copies it so that nobody can change it.

A value is looked at level by level, without recursion, so that one which holds itself ends at the deepest level that is allowed.
What several requests share, and what caches go by, is frozen on its way in: nothing that is handed out can change what
comes later. Frozen lists and dicts are lists and dicts: they are read, compared and written as JSON as any other.
"""

from __future__ import annotations

import marshal
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


# Copies that nobody can change.

_SHARED_ATOMS = frozenset((str, int, float, bool, type(None)))


def _refuse_change(*_: Any, **__: Any) -> NoReturn:
    raise TypeError("this value is shared and immutable; copy it with `unrender.json_values.thawed`")


class FrozenDict(dict[Any, Any]):
    """A dict that cannot be changed."""

    __slots__ = ("content",)
    content: bytes
    """Its `content_key`, once that was asked for."""

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)


class FrozenList(list[Any]):
    """A list that cannot be changed."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenList, (list(self),)


_CHANGING = {
    FrozenDict: "__setitem__ __delitem__ __ior__ clear pop popitem setdefault update",
    FrozenList: "__setitem__ __delitem__ __iadd__ __imul__ append clear extend insert pop remove reverse sort",
}
for _kind, _names in _CHANGING.items():  # In the classes' bodies they would have types that checkers cannot tell.
    for _name in _names.split():
        setattr(_kind, _name, _refuse_change)


def frozen(value: Any) -> Any:
    """Return a copy of lists, tuples and mappings, however nested, that cannot be changed; anything else as it is.

    >>> frozen({"a": [1]}) == {"a": [1]}
    True
    >>> frozen({"a": [1]})["a"].append(2)
    Traceback (most recent call last):
    TypeError: this value is shared and immutable; copy it with `unrender.json_values.thawed`
    """
    return value if type(value) in _FROZEN else _copied(value, FrozenDict, FrozenList)


def thawed(value: Any) -> Any:
    """Return a copy of lists, tuples and mappings, however nested, that is the caller's own to change."""
    return _copied(value, dict, list)


_FROZEN = frozenset((FrozenDict, FrozenList))


def _copied(value: Any, mapping: type[dict[Any, Any]], sequence: type[list[Any]]) -> Any:
    """Copy each part once, without recursion: what is shared, or holds itself, does so in the copy as well."""
    done = _SHARED_ATOMS | (_FROZEN & {mapping, sequence})
    top = [value]
    waiting: list[Any] = [top]
    known: dict[int, tuple[Any, Any]] = {}
    """By id: a part, which lives on so that its id is not used again, and its copy."""
    while waiting:
        holder = waiting.pop()
        # `holder[key] = …` is what a frozen dict refuses; the method of `dict` does not ask it.
        put = dict.__setitem__ if isinstance(holder, dict) else list.__setitem__
        for key, item in holder.items() if isinstance(holder, dict) else enumerate(holder):
            if type(item) in done:
                continue
            found = known.get(id(item))
            if found is None:
                if isinstance(item, (list, tuple)):
                    copy: Any = sequence(item)
                elif isinstance(item, (dict, Mapping)):
                    copy = mapping(item)
                else:
                    continue
                found = known[id(item)] = item, copy
                waiting.append(copy)
            put(holder, key, found[1])
    return top[0]


def content_key(value: Any) -> bytes:
    """Return bytes that differ for any two different plain values, even if only a number's type differs; else b"".

    Equal values may have different keys when they share their parts differently. It takes time linear in the number of
    distinct parts, no matter how they are nested.

    >>> content_key([1]) == content_key([True])
    False
    >>> content_key(object())
    b''
    """
    if isinstance(value, FrozenDict):
        # Only plain data have bytes, and to copy a schema for them costs as much as to read it: it is done once.
        if not hasattr(value, "content"):
            value.content = content_key(thawed(value))
        return value.content
    try:
        return marshal.dumps(value)
    except ValueError:
        return b""
