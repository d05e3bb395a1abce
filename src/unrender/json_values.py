"""Checks, freezes and copies plain data from outside the library.

Values are traversed level by level, without recursion. So the depth limit also rejects values that contain themselves. Data that is shared
between requests or used as a cache key is frozen on input, so that no caller can modify it later. Frozen lists and dicts are subclasses of
`list` and `dict`, so they compare and serialize normally.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from unrender.errors import RequestError
from unrender.limits import MAX_DEPTH, MAX_VALUES

JsonSchema = Mapping[str, Any] | bool


def checked_object(value: Any, where: str, expected: str = "an object") -> Mapping[str, Any]:
    """Return `value` if it's an object. Otherwise, raise `RequestError` with a message that starts with `where`."""
    if not isinstance(value, Mapping):
        raise RequestError(f"{where}: expected {expected}, found {type(value).__name__}")
    return value


def checked_list(value: Any, where: str) -> Sequence[Any]:
    """Return `value` if it's a list. Otherwise, raise `RequestError` with a message that starts with `where`."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
        raise RequestError(f"{where}: expected a list, found {type(value).__name__}")
    return value


_Place = tuple["_Place | None", Any]
"""A path as a linked list: the path of the container, and a key."""
_SCALARS = (str, int, float, type(None))
_ATOMS = frozenset((*_SCALARS, bool))
_SHOWN_KEYS = 6


def check_values(value: Any, *, where: str, only_json: bool = True) -> None:
    """Check the nesting depth of a value. With `only_json`, also check that the value consists of JSON types. Raises `RequestError` with a
    message that starts with `where` and the path of the problem.
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
    """Return the name of the value's JSON type: `string`, `number`, `boolean`, `null`, `array` or `object`."""
    if value is None:
        return "null"
    # `bool` comes before `int`, because `True` is an instance of both in Python.
    kinds = ((bool, "boolean"), (str, "string"), (int | float, "number"), (Mapping, "object"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "array")


# Immutable copies of lists and mappings.

_SHARED_ATOMS = frozenset((str, int, float, bool, type(None)))


def _refuse_change(*_: Any, **__: Any) -> NoReturn:
    raise TypeError("this value is shared and immutable; copy it with `unrender.json_values.thawed`")


class FrozenDict(dict[Any, Any]):
    """An immutable dict."""

    __slots__ = ("content",)
    content: bytes
    """Cached result of `content_key`."""

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)


class FrozenList(list[Any]):
    """An immutable list."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenList, (list(self),)


_CHANGING = {
    FrozenDict: "__setitem__ __delitem__ __ior__ clear pop popitem setdefault update",
    FrozenList: "__setitem__ __delitem__ __iadd__ __imul__ append clear extend insert pop remove reverse sort",
}
for _kind, _names in _CHANGING.items():  # Type checkers would reject these assignments in a class body.
    for _name in _names.split():
        setattr(_kind, _name, _refuse_change)


def frozen(value: Any) -> Any:
    """Return an immutable deep copy of lists, tuples and mappings; other values are returned unchanged.

    >>> frozen({"a": [1]}) == {"a": [1]}
    True
    >>> frozen({"a": [1]})["a"].append(2)
    Traceback (most recent call last):
    TypeError: this value is shared and immutable; copy it with `unrender.json_values.thawed`
    """
    return value if type(value) in _FROZEN else _copied(value, FrozenDict, FrozenList)


def thawed(value: Any) -> Any:
    """Return a mutable deep copy of lists, tuples and mappings."""
    return _copied(value, dict, list)


_FROZEN = frozenset((FrozenDict, FrozenList))


def _copied(value: Any, mapping: type[dict[Any, Any]], sequence: type[list[Any]]) -> Any:
    """Copy without recursion. Each object is copied only once, so shared and cyclic references are preserved."""
    done = _SHARED_ATOMS | (_FROZEN & {mapping, sequence})
    top = [value]
    waiting: list[Any] = [top]
    known: dict[int, tuple[Any, Any]] = {}
    """Maps the id of each original to the original and its copy. The originals are kept alive so that their ids aren't reused."""
    while waiting:
        holder = waiting.pop()
        # `holder[key] = …` would raise for a frozen dict, so call the method of the base class instead.
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
    """Return a cache key for a plain value, or b"" for any other value.

    Different values have different keys, even if they differ only in a number's type. Equal values may have different keys if they share
    sub-objects differently. The time is linear in the number of distinct objects, regardless of nesting.

    >>> content_key([1]) == content_key([True])
    False
    >>> content_key(object())
    b''
    """
    if isinstance(value, FrozenDict):
        # `marshal` rejects subclasses of dict, and copying a schema is as expensive as reading it. So the key is cached.
        if not hasattr(value, "content"):
            value.content = content_key(thawed(value))
        return value.content
    try:
        return marshal.dumps(value)
    except ValueError:
        return b""
