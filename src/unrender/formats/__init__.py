"""Loads declared formats: data files that say what no template can show, each with a reason.

A file holds `name`, `why`, `format` and, when it completes derived formats, `evidence`: texts that the template's source
must contain (`all`, `any`) or must not (`none`); empty evidence fits every template. No code and no evidence names a model; what is
matched are markers. Users add folders of their own, whose files are checked as these are.
`markers/reasoning.json` holds markers of reasoning, each with a reason, that are read whatever the template says.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

from unrender.cache import kept
from unrender.errors import FormatError
from unrender.format import Format
from unrender.formats.declared import Declared, Signs, folders, read_declared, read_declared_file, read_text_of

__all__ = ["Declared", "Signs", "declared_format", "declared_formats", "read_declared", "read_declared_file"]

SourceText = tuple[Path, str]
"""A file, and what was in it when it was read."""


def declared_formats() -> tuple[Declared, ...]:
    """Return all declared formats: the library's by name, then the users' by folder and file.

    Files are read once in a process. Raises `FormatError`, naming the file, when one is malformed or its name is taken.
    """
    return _all(texts_of_users())


def declared_format(name: str) -> Format:
    """Return the declared format with a given name, e.g. "qwen3".

    Raises `FormatError`, listing the known names, when there is none, and whenever `declared_formats` does.
    """
    known = {declared.name: declared.format for declared in declared_formats()}
    if name not in known:
        raise FormatError(f"declared format: expected one of {sorted(known)}, found {name!r}")
    return known[name]


def texts_of_users() -> tuple[SourceText, ...]:
    """Return the users' files, as this process has read them: `declared_formats` is made of these texts.

    Raises `FormatError`, naming the file, when one cannot be read.
    """
    return _texts(folders())


@kept(100_000)
def _texts(found: tuple[Path, ...]) -> tuple[SourceText, ...]:
    paths = [path for folder in found for path in sorted(folder.glob("*.json"))]
    return tuple((path, read_text_of(path)) for path in paths)


@kept(200_000)
def _all(texts: tuple[SourceText, ...]) -> tuple[Declared, ...]:
    known = {declared.name: declared for declared in _own()}
    for path, text in texts:
        declared = read_declared(text, where=str(path), origin=str(path))
        if declared.name in known:
            taken = known[declared.name].origin or "unrender's own"
            raise FormatError(f"{path}: name: expected one that is not taken, found {declared.name!r} ({taken})")
        known[declared.name] = declared
    return tuple(known.values())


@cache
def _own() -> tuple[Declared, ...]:
    found = sorted(resources.files(__name__).iterdir(), key=lambda file: file.name)
    return tuple(
        read_declared(file.read_text("utf-8"), where=file.name) for file in found if file.name.endswith(".json")
    )
