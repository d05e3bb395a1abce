"""Locates user folders, and safely reads untrusted files.

Rules: reading never blocks and is bounded in memory, even if the path is a pipe, a device or a huge file.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Flags that keep `open` from blocking on a pipe without a writer."""


def named_path(name: str) -> Path | None:
    """Return the absolute path for a setting such as `~/kept`. Returns None if the home folder is unknown."""
    try:
        return Path(name).expanduser().absolute()
    except RuntimeError:
        return None


def user_folder(variable: str, usual: str) -> Path | None:
    """Return the folder set in the XDG environment variable `variable`, or else the folder `usual` in the user's home.

    As the XDG specification requires, a relative path in the variable is ignored.
    """
    set_to = Path(os.environ.get(variable, ""))
    return set_to if set_to.is_absolute() else named_path(f"~/{usual}")


def read_regular(path: Path, *, most: int) -> bytes:
    """Return the contents of a regular file. Raises `OSError` for any other kind of file, or if it's larger than `most` bytes."""
    _check(path.stat(), path, most)  # Check before opening the file, because opening a device may have side effects.
    descriptor = os.open(path, os.O_RDONLY | _AT_ONCE)
    with os.fdopen(descriptor, "rb") as file:
        # Check again, because the file may have been replaced since the first check.
        _check(os.fstat(descriptor), path, most)
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(f"expected at most {most} bytes, but the file is growing")
    return content


def _check(status: os.stat_result, path: Path, most: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"expected a regular file: {path}")
    if status.st_size > most:
        raise OSError(f"expected at most {most} bytes, found {status.st_size}")
