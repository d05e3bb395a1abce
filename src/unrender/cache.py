"""Keeps the values that were used last under their keys, within a weight, for all threads.

Strategy: values are kept under everything that decides them, so they never go stale. A value that is asked for by two
threads at once may be made twice; they are equal, and one of them is kept.

Rules: `SHARED` is the one cache of a process: whatever is made from a template, format, schema, grammar or request is
kept there, within one budget, by `kept` or under a key of its own. Nobody changes what is in it. Tables that are made once,
from nothing, are `functools.cache`s of functions without arguments.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import wraps
from gc import get_referents
from sys import getsizeof
from threading import Lock
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Generic, ParamSpec, TypeVar

from unrender.limits import CACHE_BYTES

T = TypeVar("T")
P = ParamSpec("P")

_lock = Lock()
"""One for all caches, held for moments."""
# A forked child has only the thread that forked: if another one held the lock, the child would wait for it for ever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


@dataclass(slots=True)
class _Entry(Generic[T]):
    value: T
    weight: int
    used: bool = False
    """It was read since it was put here, or since it last escaped being dropped."""


class Cache(Generic[T]):
    """The values used most recently, as many as weigh no more than `limit` together.

    A value that weighs more than a quarter of the limit is not kept: it would drive out too many others.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kept: OrderedDict[Hashable, _Entry[T]] = OrderedDict()
        self._weight = 0

    def get(self, key: Hashable) -> T | None:
        """Return the value that is kept under `key`, or None."""
        found = self._kept.get(key)
        if found is None:
            return None
        # Only set a flag: moving the entry to the end would need a lock and another hash of the key, which is slow for a format.
        found.used = True
        return found.value

    def put(self, key: Hashable, value: T, weight: int) -> None:
        """Keep `value` under `key`. While the total is over the limit, drop the oldest value; one that was used is spared once."""
        if weight > self.limit // 4:
            return
        with _lock:
            before = self._kept.pop(key, None)
            self._kept[key] = _Entry(value, weight)
            self._weight += weight - (before.weight if before else 0)
            while self._weight > self.limit:
                oldest, entry = self._kept.popitem(last=False)
                if entry.used:
                    entry.used = False
                    self._kept[oldest] = entry
                else:
                    self._weight -= entry.weight

    def made(self, key: Hashable, make: Callable[[], T], weigh: Callable[[T], int]) -> T:
        """Return the value of `key`; when none is kept, make it with `make`. Nothing is kept when `make` raises."""
        found = self._kept.get(key)
        if found is not None:
            found.used = True
            return found.value
        value = make()
        self.put(key, value, weigh(value))
        return value

    @property
    def weight(self) -> int:
        """The weight of all that is kept."""
        return self._weight

    def clear(self) -> None:
        """Forget everything."""
        with _lock:
            self._kept.clear()
            self._weight = 0

    def __len__(self) -> int:
        return len(self._kept)


def bytes_of(*values: Any) -> int:
    """Return how many bytes some values take in memory with all that they refer to, each part once; code takes none.

    It takes a fraction of a microsecond for each part, and is meant for what is read from a request.
    """
    seen: set[int] = set()
    size, todo = 0, list(values)
    while todo:
        value = todo.pop()
        if id(value) not in seen and not isinstance(value, _CODE):
            seen.add(id(value))
            size += getsizeof(value)
            if not isinstance(value, str | bytes):
                todo += get_referents(value)
    return size


_CODE = (type, ModuleType, FunctionType, BuiltinFunctionType, type(None), bool)

SHARED: Cache[Any] = Cache(limit=CACHE_BYTES)
"""Weighed by bytes, as `bytes_of` counts them or by what was measured. Servers are given the same templates and tools again and again."""


def kept(weigh: int | Callable[[Any], int]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator that keeps a function's results in `SHARED`; `weigh` is what one weighs.

    Equal arguments give the same object, as long as it is kept.
    """
    weight: Callable[[Any], int] = (lambda _: weigh) if isinstance(weigh, int) else weigh

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def known(*args: P.args, **kwargs: P.kwargs) -> T:
            key = (function, args, tuple(sorted(kwargs.items()))) if kwargs else (function, args)
            found: T = SHARED.made(key, lambda: function(*args, **kwargs), weight)
            return found

        return known

    return decorated
