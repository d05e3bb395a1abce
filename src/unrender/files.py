"""Finds folders that a user or XDG names, and reads files of folders in which anything may lie.

Rules: nothing here waits or fills the memory, whatever has the name of a file: a pipe, a device, or more than is expected.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""To open a pipe that nobody writes to waits without it."""


def named_path(name: str) -> Path | None:
    """Return the absolute path that a setting names, e.g. `~/kept`; None where nobody has such a home."""
    try:
        return Path(name).expanduser().absolute()
    except RuntimeError:
        return None


def user_folder(variable: str, usual: str) -> Path | None:
    """Return the folder in an environment variable of XDG's, else the `usual` one in the user's home, if there is one.

    A relative path in the variable is ignored, as XDG's specification says.
    """
    set_to = Path(os.environ.get(variable, ""))
    return set_to if set_to.is_absolute() else named_path(f"~/{usual}")


def read_regular(path: Path, *, most: int) -> bytes:
    """Return what is in a regular file. Raises `OSError` for anything else, and for more than `most` bytes."""
    _check(path.stat(), path, most)  # To open a device may already do something.
    descriptor = os.open(path, os.O_RDONLY | _AT_ONCE)
    with os.fdopen(descriptor, "rb") as file:
        # Since the first look, another file may have got the name.
        _check(os.fstat(descriptor), path, most)
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(f"expected at most {most} bytes, and it grows")
    return content


def _check(status: os.stat_result, path: Path, most: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"expected a regular file: {path}")
    if status.st_size > most:
        raise OSError(f"expected at most {most} bytes, found {status.st_size}")
