"""Runs work in threads so that clients take turns, however much one of them asks for.

Strategy: a client has one piece of work in the executor's queue at a time, and its next one is put at the end when that is done. So
whoever comes waits for one piece of each client before it, not for all that they have asked for.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

_T = TypeVar("_T")


class Workers:
    """So many threads, which every client uses one at a time."""

    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, name)
        self._waiting: dict[Hashable, deque[tuple[Future[Any], Callable[[], Any]]]] = {}
        """Clients whose work is done or due, with what waits after that."""
        self._lock = threading.Lock()

    async def run(self, client: Hashable, work: Callable[[], _T]) -> _T:
        """Return what `work` returns, when it is this client's turn. Work that is cancelled before is not begun."""
        future: Future[_T] = Future()
        with self._lock:
            idle = client not in self._waiting
            self._waiting.setdefault(client, deque()).append((future, work))
        # With its first piece a client joins the queue; with every next one it only waits in its own line.
        if idle:
            self._pool.submit(self._serve, client)
        return await asyncio.wrap_future(future)

    def _serve(self, client: Hashable) -> None:
        """Do one piece of a client's work, and put the client at the end."""
        with self._lock:
            future, work = self._waiting[client].popleft()
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - whoever waits for it raises it
                future.set_exception(error)
        with self._lock:
            if not self._waiting[client]:
                del self._waiting[client]
                return
        self._pool.submit(self._serve, client)
