"""Keeps the values that were used last under their keys, within a weight, for all threads.

Strategy: values are kept under everything that decides them, so they never go stale. A value that is asked for by two
threads at once may be made twice; they are equal, and one of them is kept.
"""

from __future__ import annotations

import marshal
import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")

_lock = Lock()
"""One for all caches, held for moments."""
# A forked child has only the thread that forked: if another one held the lock, the child would wait for it for ever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


class Cache(Generic[Value]):
    """The values used most recently, as many as weigh no more than `limit` together.

    A value that weighs more than a quarter of the limit is not kept: it would drive out too many others.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kept: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._weight = 0

    def get(self, key: Hashable) -> Value | None:
        """Return the value that is kept under `key`, or None."""
        with _lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: Value, weight: int) -> None:
        """Keep `value` under `key`. While the total is over the limit, drop the value that was unused for longest."""
        if weight > self.limit // 4:
            return
        with _lock:
            _, before = self._kept.pop(key, (None, 0))
            self._kept[key] = (value, weight)
            self._weight += weight - before
            while self._weight > self.limit:
                _, (_, dropped) = self._kept.popitem(last=False)
                self._weight -= dropped

    def made(self, key: Hashable, make: Callable[[], Value], weigh: Callable[[Value], int]) -> Value:
        """Return the value of `key`; when none is kept, make it with `make`. Nothing is kept when `make` raises."""
        found = self.get(key)
        if found is None:
            found = make()
            self.put(key, found, weigh(found))
        return found

    def clear(self) -> None:
        """Forget everything."""
        with _lock:
            self._kept.clear()
            self._weight = 0

    def __len__(self) -> int:
        return len(self._kept)


def content_key(value: Any) -> bytes:
    """Return bytes that differ for any two different plain values, even if only a number's type differs; else b"".

    Equal values may have different keys when they share their parts differently. It takes time linear in the number of
    distinct parts, no matter how they are nested.

    >>> content_key([1]) == content_key([True])
    False
    >>> content_key(object())
    b''
    """
    try:
        return marshal.dumps(value)
    except ValueError:
        return b""
