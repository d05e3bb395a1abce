"""Writes files atomically, and reads standard input.

Rules: symbolic links are followed, and file permissions are preserved. Anything other than a regular file, such as a pipe, a terminal or
`/dev/null`, is written to directly. Every error names the file.
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
"""Path that stands for standard output, or for standard input when reading."""


def write_whole(path: str | Path, data: bytes) -> None:
    """Write a file atomically. Readers see either the old or the new contents, and if writing fails, the old contents are kept."""
    out = Path(os.path.realpath(path))
    with naming(path):
        if not is_replaceable(out):
            out.write_bytes(data)
            return
        # Create the temporary file in the same folder, because renaming is atomic only within a file system.
        handle, name = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name[:100]}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())  # Without `fsync`, a power cut after the rename could leave an empty file.
            Path(name).chmod(_rights(out))
            Path(name).replace(out)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise


def is_replaceable(path: str | Path) -> bool:
    """Return True if the path is a regular file or doesn't exist."""
    try:
        return stat.S_ISREG(Path(path).stat().st_mode)
    except FileNotFoundError:
        return True


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Replace the file name of any `OSError` in the block with the path that the user passed."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


def _rights(path: Path) -> int:
    """Return the permissions of a file, or the default permissions if it doesn't exist."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        mask = os.umask(0o077)  # The umask can only be read by setting it.
        os.umask(mask)
        return 0o666 & ~mask


def standard_input() -> bytes:
    """Return the contents of standard input. Raises `OSError` if standard input is closed."""
    if sys.stdin is None:
        raise OSError(9, "standard input is closed", STANDARD_STREAM)
    return sys.stdin.buffer.read()
