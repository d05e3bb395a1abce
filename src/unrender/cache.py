"""A thread-safe cache of recently used values, bounded by their total weight.

Strategy: a key contains everything that a value depends on, so values never become stale. If two threads need the same value at once, both
may compute it, and only one of the two equal results is kept.

Rules: `SHARED` is the only cache of the process. Everything computed from a template, format, schema, grammar or request is cached there.
Cached values must not be modified. Constant tables use `functools.cache` on functions without arguments instead.
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
"""Lock shared by all caches."""
# Hold the lock during a fork. A forked child only has the thread that called `fork`, so it would deadlock if another thread held the lock.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


@dataclass(slots=True)
class _Entry(Generic[T]):
    value: T
    weight: int
    used: bool = False
    """True if the value has been read since it was stored, or since it last escaped eviction."""


class Cache(Generic[T]):
    """Cache of recently used values whose total weight is at most `limit`.

    A value heavier than a quarter of the limit isn't stored, because it would evict too many others.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kept: OrderedDict[Hashable, _Entry[T]] = OrderedDict()
        self._weight = 0

    def get(self, key: Hashable) -> T | None:
        """Return the value for `key`, or None if it isn't cached."""
        found = self._kept.get(key)
        if found is None:
            return None
        # Only set a flag. Moving the entry to the end would need a lock and a second hash of the key, which is slow for formats.
        found.used = True
        return found.value

    def put(self, key: Hashable, value: T, weight: int) -> None:
        """Store `value` under `key`. If the total weight exceeds the limit, evict the oldest values.

        A value that has been read since it was stored escapes eviction once.
        """
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
        """Return the value for `key`. If there is no such value, compute it with `make` and store it."""
        found = self._kept.get(key)
        if found is not None:
            found.used = True
            return found.value
        value = make()
        self.put(key, value, weigh(value))
        return value

    @property
    def weight(self) -> int:
        """Total weight of the stored values."""
        return self._weight

    def clear(self) -> None:
        """Remove all values."""
        with _lock:
            self._kept.clear()
            self._weight = 0

    def __len__(self) -> int:
        return len(self._kept)


def bytes_of(*values: Any) -> int:
    """Return the size in bytes of `values` and everything they refer to, except functions, classes and modules.

    Each object is counted once. This takes a fraction of a microsecond per object, so use it only for small data such as a request.
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
"""The cache that the whole process shares. Weights are sizes in bytes, computed with `bytes_of` or measured beforehand."""


def kept(weigh: int | Callable[[Any], int]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator that caches a function's results in `SHARED`.

    `weigh` is the weight of a result, or a function that computes it. Equal arguments return the same object while it's cached.
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
