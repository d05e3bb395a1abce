"""Keeps analyses on disk: a template's analysis is made once on a machine, and read by every later process.

Strategy: one JSON file for each template, in the user's cache folder, named by a digest of all that decides the analysis:
the template with its tokens, this release's code, and the users' declared formats. A file that does not say exactly what
this release would write is ignored, and written anew; so is any error of the file system, since nothing depends on it.
Files are data: they are checked as a `Format` from anywhere is, and nothing in them is executed.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from unrender.analysis.capabilities import Capabilities
from unrender.analysis.result import Analysis, Evidence
from unrender.errors import FormatError
from unrender.format import Format
from unrender.format.data import decode, encode
from unrender.formats.locations import folders
from unrender.template.budget import Limits
from unrender.template.rendering import Template
from unrender.version import __version__

VARIABLE = "UNRENDER_CACHE"
"""A folder to keep analyses in, or `off`."""
MOST_FILES = 256
"""Analyses that are kept; beyond that, those that were written first go."""
LARGEST_FILE = 1_000_000
"""Bytes of a file that is read or written."""
_OFF = frozenset({"off", "0", "false", "no"})
_DECIDING = ("analysis", "format", "formats", "grammar", "parsing", "template")
"""The packages whose code decides what is found."""


def cache_folder() -> Path | None:
    """Return the folder for analyses, which need not exist yet; None when analyses are not kept."""
    named = os.environ.get(VARIABLE, "")
    if named.lower() in _OFF:
        return None
    if named:
        return Path(named)
    home = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(home) if home else Path.home() / ".cache") / "unrender"
    except RuntimeError:  # There is nobody's home.
        return None


def load(template: Template) -> Analysis | None:
    """Return the stored analysis of a template; None when nothing is stored, or when it cannot be trusted."""
    path = _path(template)
    try:
        if path is None or path.stat().st_size > LARGEST_FILE:
            return None
        return _read(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError, FormatError):
        return None


def store(template: Template, analysis: Analysis) -> None:
    """Keep an analysis on disk, completely or not at all. An analysis that stopped early is not kept."""
    path = _path(template)
    if path is None or analysis.stopped_early:
        return
    text = json.dumps(_written(analysis), ensure_ascii=True)
    if len(text) > LARGEST_FILE:
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(path, text)
        _prune(path.parent)
    except OSError:
        return


def _path(template: Template) -> Path | None:
    """Return the file for a template; None for one that is rendered within limits of its own."""
    folder = cache_folder()
    if folder is None or template.limits != Limits():
        return None
    parts = "\n".join((template.digest, _release(), *_stamps(folders())))
    return folder / f"{hashlib.sha256(parts.encode(errors='surrogatepass')).hexdigest()[:40]}.json"


@cache
def _release() -> str:
    """Return what names this release's code, also where it is edited in place."""
    root = Path(__file__).resolve().parent.parent
    return "\n".join((__version__, *_stamps(tuple(root / package for package in _DECIDING))))


def _stamps(found: tuple[Path, ...]) -> Iterator[str]:
    for folder in found:
        for file in sorted(os.scandir(folder), key=lambda file: file.name):
            if file.name.endswith((".py", ".json")):
                status = file.stat()
                yield f"{folder}/{file.name} {status.st_size} {status.st_mtime_ns}"


def _written(analysis: Analysis) -> dict[str, Any]:
    return {**encode(analysis), "format": analysis.format.to_dict()}


def _read(data: Any) -> Analysis:
    """Return the analysis in `data`. Raises `FormatError` when that is not what `_written` writes."""
    if not isinstance(data, dict):
        raise FormatError("expected an object", "analysis")
    format = Format.from_dict(data.get("format"))
    analysis = Analysis(
        format=format,
        capabilities=decode(Capabilities, data.get("capabilities", {}), where="capabilities"),
        evidence=decode(tuple[Evidence, ...], data.get("evidence", []), where="evidence"),
        diagnostics=decode(tuple[str, ...], data.get("diagnostics", []), where="diagnostics"),
        given_up=decode(tuple[str, ...], data.get("given_up", []), where="given_up"),
        renderings=decode(int, data.get("renderings", 0), where="renderings"),
    )
    if json.dumps(_written(analysis)) != json.dumps(data):
        raise FormatError("expected what this release writes", "analysis")
    return analysis


def _replace(path: Path, text: str) -> None:
    """Write a file in one step: others see the old one or the new one, never a part."""
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _prune(folder: Path) -> None:
    """Remove the oldest files beyond the number that is kept."""
    files = [file for file in os.scandir(folder) if file.name.endswith((".json", ".tmp"))]
    for file in sorted(files, key=lambda file: file.stat().st_mtime_ns)[:-MOST_FILES]:
        Path(file.path).unlink(missing_ok=True)
