"""Spreads pieces of work over several processes, and yields the results in order.

Strategy: every worker has one piece at a time and a pipe of its own, so nothing waits in a queue that a killed process could
leave locked, and a worker whose parent is gone reads the end of its pipe and ends. The next piece is read while workers work;
only so many results wait for an earlier one.
"""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar, cast

from unrender.batch.failure import BatchError

Item = TypeVar("Item")
Result = TypeVar("Result")
_AHEAD = 4
"""Pieces for each worker that are out or wait for an earlier one."""


def mapped(work: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    """Yield `work` of each item, in order, from `jobs` new processes; with one job, from this process.

    `work` must be picklable. Raises `BatchError` when a worker dies or `work` raises.
    """
    if jobs == 1:
        yield from map(work, items)
        return
    with _started(work, jobs) as idle:
        yield from _spread(iter(enumerate(items)), idle, jobs * _AHEAD)


def _spread(items: Iterator[tuple[int, Item]], idle: list[Connection], ahead: int) -> Iterator[Any]:
    busy: dict[Connection, int] = {}
    done: dict[int, Any] = {}
    wanted, item = 0, next(items, None)
    while busy or item:
        while item and idle and item[0] - wanted < ahead:
            conn = idle.pop()
            _send(conn, item[1])
            busy[conn], item = item[0], next(items, None)
        for ready in cast(list[Connection], wait(list(busy))):
            done[busy.pop(ready)] = _received(ready)
            idle.append(ready)
        while wanted in done:
            failed, result = done.pop(wanted)
            if failed:
                raise BatchError(f"a worker failed: {result}")
            yield result
            wanted += 1


def _send(conn: Connection, item: Any) -> None:
    try:
        conn.send(item)
    except OSError as error:
        raise BatchError(f"a worker has ended: {error}") from error


def _received(conn: Connection) -> Any:
    """Return whether a worker failed, and its result or what went wrong."""
    try:
        return conn.recv()
    except (EOFError, OSError) as error:
        raise BatchError(
            "a worker has ended; was it killed, for its memory perhaps? The same command goes on where it was"
        ) from error


@contextmanager
def _started(work: Callable[[Any], Any], jobs: int) -> Iterator[list[Connection]]:
    context = get_context("spawn")
    conns, processes = [], []
    try:
        for _ in range(jobs):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, work), daemon=True)
            process.start()
            theirs.close()
            conns.append(ours)
            processes.append(process)
        yield list(conns)
    finally:
        for conn in conns:
            conn.close()
        for process in processes:
            process.terminate()
            process.join()


def _serve(conn: Connection, work: Callable[[Any], Any]) -> None:
    """Work until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer.
    with suppress(EOFError, OSError):
        while True:
            item = conn.recv()
            try:
                answer: tuple[bool, Any] = (False, work(item))
            except Exception:  # noqa: BLE001 - it is told where it can be read
                answer = (True, traceback.format_exc(limit=-3))
            conn.send(answer)
