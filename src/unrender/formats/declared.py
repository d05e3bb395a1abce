"""Reads the JSON of a declared format into a checked `Declared`, and finds users' declared formats.

Rules: every file, the library's own or a user's, passes the same checks. An error names the file and the field.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from unrender.errors import FormatError
from unrender.files import named_path, read_regular, user_folder
from unrender.format import Format, Reasoning, ReasoningMode
from unrender.limits import LARGEST_JSON_FILE

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


_KEYS = {"name", "why", "format", "evidence"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """Evidence for a declared format: texts that the template's source must contain, and texts that it must not."""

    all: tuple[str, ...] = ()
    any: tuple[str, ...] = ()
    none: tuple[str, ...] = ()

    def found_in(self, source: str) -> bool:
        """Return whether the source contains all required texts and none of the forbidden ones."""
        some = not self.any or any(text in source for text in self.any)
        return some and all(text in source for text in self.all) and not any(text in source for text in self.none)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A format, or a part of one, written by hand as data, with the reason. No rendering shows it."""

    name: str
    why: str
    format: Format
    evidence: Signs | None = None
    origin: str = ""
    """The file it was read from; empty for the library's own."""


def read_declared(text: str, *, where: str, origin: str = "") -> Declared:
    """Return the declared format that a JSON text holds. Raises `FormatError`, naming the place, when it is not one."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{where}: expected JSON: {error}") from None
    if not isinstance(data, dict):
        raise FormatError(f"{where}: expected an object, found {type(data).__name__}")
    unknown = set(data) - _KEYS
    if unknown:
        raise FormatError(f"{where}: expected only {sorted(_KEYS)}, found {sorted(unknown)}")
    return Declared(
        name=_sentence(data, "name", where),
        why=_sentence(data, "why", where),
        format=_format(data.get("format"), where),
        evidence=_evidence(data["evidence"], f"{where}: evidence") if data.get("evidence") is not None else None,
        origin=origin,
    )


def read_declared_file(path: Path) -> Declared:
    """Return the declared format in a user's file. Raises `FormatError`, naming the file, when there is none."""
    return read_declared(read_text_of(path), where=str(path), origin=str(path))


def read_text_of(path: Path) -> str:
    """Return what is in a user's file. Raises `FormatError`, naming the file, when it cannot be read."""
    try:
        return read_regular(path, most=LARGEST_JSON_FILE).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: expected a readable file of UTF-8 text: {error}") from None


def _sentence(data: Mapping[str, Any], key: str, where: str) -> str:
    value = data.get(key)
    if not isinstance(value, str) or not value.strip():
        raise FormatError(f"{where}: {key}: expected a text, found {value!r:.60}")
    return value


def _format(data: Any, where: str) -> Format:
    if not isinstance(data, dict):
        raise FormatError(f"{where}: format: expected an object, found {data!r:.60}")
    try:
        return Format.from_dict(data)
    except FormatError as error:
        raise FormatError(f"{where}: format: {error}") from error


def _evidence(data: Any, where: str) -> Signs:
    known = [field.name for field in fields(Signs)]
    if not isinstance(data, dict) or not set(data) <= set(known):
        raise FormatError(f"{where}: expected an object with some of {known}, found {data!r:.60}")
    for name, texts in data.items():
        if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
            raise FormatError(f"{where}: {name}: expected a list of texts, found {texts!r:.60}")
    return Signs(**{name: tuple(texts) for name, texts in data.items()})


@cache
def known_reasoning() -> tuple[Reasoning, ...]:
    """Return the markers, each pair as a `Reasoning` of its own. The file says why each pair is there."""
    data = json.loads((resources.files("unrender.formats") / "markers" / "reasoning.json").read_text("utf-8"))
    pairs = [(pair["start"], pair["end"]) for pair in data["markers"]]
    return tuple(Reasoning(mode=ReasoningMode.TAG_BASED, start=start, end=end) for start, end in pairs)


# The users' own files.

GROUP = "unrender.formats"
"""The group of entry points; each is a package with JSON files, or the path of a folder."""
FORMATS_VARIABLE = "UNRENDER_FORMATS"
"""Folders, separated as in PATH."""


def folders() -> tuple[Path, ...]:
    """Return the existing folders in order: packages', the variable's, the user's own.

    Raises `FormatError`, naming where it comes from, for a folder that is named and does not exist.
    """
    return (*_installed(), *_named(), *_own())


def _named() -> Iterator[Path]:
    for name in filter(None, os.environ.get(FORMATS_VARIABLE, "").split(os.pathsep)):
        path = named_path(name)
        if path is None or not path.is_dir():
            raise FormatError(f"{FORMATS_VARIABLE}: expected folders, found {name!r}")
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
