"""Caches analyses on disk: a template is analysed once per machine, and later processes load the result.

Strategy: each template has one JSON file in the user's cache folder. The file's name is a digest of everything that affects the analysis:
the template with its tokens, the analysis code, and the user's declared formats. A file that differs from what this release would write is
ignored and rewritten. File system errors are ignored too, because the cache is optional. Files are data: they are validated like any other
`Format`, and never executed.

Rules: the folder belongs to the user and may contain other files. Only regular files with our names are opened, replaced or removed. A file
is removed only if it also starts with the first bytes of our files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import jinja2
import markupsafe

from unrender import analysis
from unrender.analysis import Analysis
from unrender.cache import kept
from unrender.errors import FormatError
from unrender.format.data import decode, plain_data
from unrender.format.declared import named_path, read_regular, texts_of_users, user_folder
from unrender.limits import MAX_DOCUMENT, MAX_MESSAGES, MAX_STORED, STANDARD
from unrender.rendering import Template
from unrender.version import __version__

CACHE_VARIABLE = "UNRENDER_CACHE"
"""Name of the environment variable that contains the path of the cache folder, or `off` for no cache."""
_OFF = frozenset({"off", "0", "false", "no"})
_OURS = re.compile(r"unrender-[0-9a-f]{40}(\.json|-\w+\.tmp)")
"""Matches the names of our files. Temporary files, which an interrupted process may leave behind, end in `.tmp`."""
_FIRST_WORDS = b'{"unrender": "'
"""The first bytes of each of our files."""
_CODE = (Path(__file__).parents[1], *(Path(str(package.__file__)).parent for package in (jinja2, markupsafe)))
"""Folders of the packages that the analysis loads, apart from the standard library."""


def cache_folder() -> Path | None:
    """Return the cache folder, or None if the cache is off. The folder may not exist yet.

    `UNRENDER_CACHE` sets the folder or turns the cache off. By default, the folder is inside the user's cache folder.
    """
    named = os.environ.get(CACHE_VARIABLE, "")
    if named.lower() in _OFF:
        return None
    if named:
        return named_path(named)
    folder = user_folder("XDG_CACHE_HOME", ".cache")
    return folder and folder / "unrender"


@kept(50_000)
def analysis_of(template: Template, *, cache: bool = True) -> Analysis:
    """Return the analysis of a template. Equal templates share one analysis.

    If `cache` is true, processes share the analysis through the disk cache, unless the template has custom limits.
    """
    found = load(template) if cache else None
    if found is None:
        found = analysis.analyze(template)
        if cache:
            store(template, found)
    return found


def load(template: Template, kind: Any = Analysis) -> Any:
    """Return the stored value of type `kind` for a template, or None if there is no valid value."""
    try:
        path = _path(template, kind)
        return None if path is None else _read(kind, json.loads(read_regular(path, most=MAX_DOCUMENT)))
    except (OSError, ValueError, RecursionError, FormatError):
        return None


def store(template: Template, found: Any) -> None:
    """Store an analysis or a report atomically. Analyses that stopped early aren't stored."""
    if isinstance(found, Analysis) and found.stopped_early:
        return
    text = json.dumps(_written(found), ensure_ascii=True)
    try:
        path = _path(template, type(found))
        if path is None or len(text) > MAX_DOCUMENT:
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(path, text)
        _prune(path.parent)
    except (OSError, FormatError):
        return


def _path(template: Template, kind: type = Analysis) -> Path | None:
    """Return the path of a template's file, or None if the cache is off or the template has custom limits."""
    folder = cache_folder()
    if folder is None or template.limits != STANDARD:
        return None
    parts = json.dumps(
        [kind.__name__, template.digest, _release(), [[str(path), text] for path, text in texts_of_users()]]
    )
    return folder / f"unrender-{hashlib.sha256(parts.encode()).hexdigest()[:40]}.json"


@cache
def _release() -> str:
    """Return a fingerprint of all code that affects an analysis, so that a change to the code invalidates the cache."""
    files = (f"{path} {status.st_size} {status.st_mtime_ns}" for path, status in code_files())
    return "\n".join((__version__, sys.version, *files))


def code_files() -> Iterator[tuple[str, os.stat_result]]:
    """Yield all files of the packages that the analysis loads, except compiled Python files."""
    for package in _CODE:
        for folder, below, names in os.walk(package):
            below[:] = sorted(name for name in below if name != "__pycache__")
            for path in (Path(folder, name) for name in sorted(names)):
                yield str(path), path.stat()


def _written(found: Any) -> dict[str, Any]:
    format = {"format": found.format.to_dict()} if isinstance(found, Analysis) else {}
    return {"unrender": type(found).__name__.lower(), **plain_data(found), **format}


def _read(kind: Any, data: Any) -> Any:
    """Return the value of type `kind` that `data` encodes. Raises `FormatError` if this release would encode the value differently."""
    if not isinstance(data, dict):
        raise FormatError("expected an object", "analysis")
    others = {name: value for name, value in data.items() if name != "unrender"}
    found = decode(kind, others, where="analysis")
    if json.dumps(_written(found)) != json.dumps(data):
        raise FormatError("expected what this release writes", "analysis")
    return found


def _replace(path: Path, text: str) -> None:
    """Replace a file atomically: readers see the old or the new content, never a part of it."""
    # Replace a regular file with this name, even if it's damaged. Leave pipes, folders and links alone, because they aren't ours.
    if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
        return
    # Write to a temporary file first: another process may read at any time, and this one may be killed.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.stem}-", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _prune(folder: Path) -> None:
    """Remove the oldest of our files if there are more than `MAX_STORED`."""
    with os.scandir(folder) as entries:
        ours = [entry for entry in islice(entries, MAX_MESSAGES) if _OURS.fullmatch(entry.name)]
    files = [entry for entry in ours if entry.is_file(follow_symlinks=False)]
    for file in sorted(files, key=lambda file: file.stat().st_mtime_ns)[:-MAX_STORED]:
        with Path(file.path).open("rb") as opened:
            begun = opened.read(len(_FIRST_WORDS))
        # Also remove an unfinished file, which may contain only some of the first bytes.
        if _FIRST_WORDS.startswith(begun):
            Path(file.path).unlink(missing_ok=True)
