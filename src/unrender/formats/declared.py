"""Reads the JSON of a declared format into a checked `Declared`.

Rules: every file, the library's own or a user's, passes the same checks; an error names the file and the field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from unrender.errors import FormatError
from unrender.files import read_regular
from unrender.format import Format, Reasoning, ReasoningMode
from unrender.limits import LARGEST_JSON_FILE

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
