"""Holds a lock on an output while a job writes it, so that a second job is refused instead of mixing in.

Strategy: a file beside the output is locked by the operating system, which lets go when the process ends, however it ends. So a file
that was left by a killed job is not locked, and is taken over. It is removed by whoever holds it; one that waited for a file that is
gone by then tries again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from unrender.batch.failure import BatchError

try:
    import fcntl
except ModuleNotFoundError:  # On Windows, where two jobs are not kept apart.
    fcntl = None  # type: ignore[assignment]


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Hold the lock of an output while the block runs. Raises `BatchError` when another process holds it."""
    path = out.with_name(f"{out.name}.lock")
    handle = _taken(path, out)
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(path)  # noqa: PTH108 - in the same breath as the handle of the same file
        os.close(handle)


def _taken(path: Path, out: Path) -> int:
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        except OSError as error:
            raise BatchError(f"{out}: {error.strerror}") from error
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(handle, 20).decode("ascii", "replace").strip()
            os.close(handle)
            raise BatchError(
                f"{out}: another process{f' ({holder})' if holder else ''} is writing this file; wait for it, or end it"
            ) from None
        except OSError:
            pass  # A file system without locks: nothing can be known there.
        if _is_at(handle, path):
            os.ftruncate(handle, 0)
            os.write(handle, f"{os.getpid()}\n".encode())
            return handle
        os.close(handle)


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
