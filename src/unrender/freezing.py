"""Copies data so that nobody can change it, and back into data of one's own.

What several requests share, and what caches go by, is frozen on its way in: nothing that is handed out can change what
comes later. Frozen lists and dicts are lists and dicts: they are read, compared and written as JSON as any other.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from typing import Any, NoReturn

_ATOMS = frozenset((str, int, float, bool, type(None)))


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise TypeError("this is shared and cannot be changed; copy it with `unrender.freezing.thawed`")


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
        setattr(_kind, _name, _refuse)


def frozen(value: Any) -> Any:
    """Return a copy of lists, tuples and mappings, however nested, that cannot be changed; anything else as it is.

    >>> frozen({"a": [1]}) == {"a": [1]}
    True
    >>> frozen({"a": [1]})["a"].append(2)
    Traceback (most recent call last):
    TypeError: this is shared and cannot be changed; copy it with `unrender.freezing.thawed`
    """
    return value if type(value) in _FROZEN else _copied(value, FrozenDict, FrozenList)


def thawed(value: Any) -> Any:
    """Return a copy of lists, tuples and mappings, however nested, that is the caller's own to change."""
    return _copied(value, dict, list)


_FROZEN = frozenset((FrozenDict, FrozenList))


def _copied(value: Any, mapping: type[dict[Any, Any]], sequence: type[list[Any]]) -> Any:
    """Copy each part once, without recursion: what is shared, or holds itself, does so in the copy as well."""
    done = _ATOMS | (_FROZEN & {mapping, sequence})
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
