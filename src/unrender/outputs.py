"""Writes a file whole or not at all, and tells whether it is something that is read.

Rules: a link stays a link, what it leads to is replaced; a file keeps its rights. What is no regular file (a pipe, a terminal,
`/dev/null`) cannot be replaced, and is written as it is. Every error names the file.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

STANDARD_STREAM = "-"
"""Standard output where a file is written, standard input where one is read."""


def write_whole(path: str | Path, data: bytes) -> None:
    """Write a file in one step: others see the old one or the new one, never a part, and a failure leaves the old one."""
    out = Path(os.path.realpath(path))
    with naming(path):
        if not is_replaceable(out):
            out.write_bytes(data)
            return
        # Beside the output: a file takes another's place in one step only within a file system.
        handle, name = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name[:100]}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())  # Else the new name could be on the disk before the new text is.
            Path(name).chmod(_rights(out))
            Path(name).replace(out)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise


def is_replaceable(path: str | Path) -> bool:
    """Return whether a file can be made anew under a path: there is none yet, or a regular one."""
    try:
        return stat.S_ISREG(Path(path).stat().st_mode)
    except FileNotFoundError:
        return True


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Give an `OSError` of the block, which may name a part of the work or nothing, the name that the user knows."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


def is_same_file(output: str, source: str) -> bool:
    """Return whether two names are one file: by links, by hard links, or by a redirected standard stream."""
    one, other = _status(output, 1), _status(source, 0)
    return one is not None and other is not None and os.path.samestat(one, other)


def _status(path: str, stream: int) -> os.stat_result | None:
    """Return what is known of a file that data can be lost of; None for all others."""
    try:
        found = os.fstat(stream) if path == STANDARD_STREAM else Path(path).stat()
    except (OSError, ValueError):
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def _rights(path: Path) -> int:
    """Return the rights of a file; for a new one, those that a program usually gives."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        mask = os.umask(0o077)  # It can only be read by setting it.
        os.umask(mask)
        return 0o666 & ~mask


def standard_input() -> bytes:
    """Return all of standard input. Raises `OSError` when that is closed."""
    if sys.stdin is None:
        raise OSError(9, "standard input is closed", STANDARD_STREAM)
    return sys.stdin.buffer.read()
