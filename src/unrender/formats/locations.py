"""Finds users' declared formats: in installed packages, in an environment variable, and in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from unrender.errors import FormatError
from unrender.files import named_path, user_folder

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "unrender.formats"
"""The group of entry points; each is a package with JSON files, or the path of a folder."""
VARIABLE = "UNRENDER_FORMATS"
"""Folders, separated as in PATH."""


def folders() -> tuple[Path, ...]:
    """Return the existing folders in order: packages', the variable's, the user's own.

    Raises `FormatError`, naming where it comes from, for a folder that is named and does not exist.
    """
    return (*_installed(), *_named(), *_own())


def _named() -> Iterator[Path]:
    for name in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        path = named_path(name)
        if path is None or not path.is_dir():
            raise FormatError(f"{VARIABLE}: expected folders, found {name!r}")
        yield path


def _own() -> Iterator[Path]:
    """Yield the folder in the user's configuration, if it is there."""
    configuration = user_folder("XDG_CONFIG_HOME", ".config")
    path = configuration and configuration / "unrender" / "formats"
    if path and path.is_dir():
        yield path


@cache
def _installed() -> tuple[Path, ...]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow to import, and wanted once

    return tuple(map(_folder, sorted(entry_points(group=GROUP), key=lambda point: point.name)))


def _folder(point: EntryPoint) -> Path:
    try:
        target = point.load()
    except Exception as error:
        raise FormatError(f"entry point {point.name!r} of {GROUP}: {type(error).__name__}: {error}") from error
    path = Path(str(files(target))) if isinstance(target, ModuleType) else Path(target)
    if not path.is_dir():
        raise FormatError(
            f"entry point {point.name!r} of {GROUP}: expected a package or a folder, found {str(target)!r}"
        )
    return path
