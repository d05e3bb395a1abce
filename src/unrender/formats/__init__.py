"""Declared formats: what no template can show, as data files with a reason each.

A file holds `name`, `why`, `format` and, when it completes derived formats, `evidence`: texts that the template's source
must contain (`all`, `any`) or must not (`none`); empty evidence fits every template. No code and no evidence names a model; what is matched are markers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from unrender.errors import FormatError
from unrender.format import Format


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Texts in a template's source that show a declared format to apply."""

    all: tuple[str, ...] = ()
    any: tuple[str, ...] = ()
    none: tuple[str, ...] = ()

    def found_in(self, source: str) -> bool:
        """True when the source has all that it must have, and nothing that it must not."""
        some = not self.any or any(text in source for text in self.any)
        return some and all(text in source for text in self.all) and not any(text in source for text in self.none)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A format written by hand: by name, or to complete what a template shows."""

    name: str
    why: str
    format: Format
    evidence: Evidence | None = None


@cache
def declared_formats() -> tuple[Declared, ...]:
    """Return all declared formats, by name."""
    files = sorted(resources.files(__name__).iterdir(), key=lambda file: file.name)
    return tuple(_read(json.loads(file.read_text("utf-8"))) for file in files if file.name.endswith(".json"))


def declared_format(name: str) -> Format:
    """Return the declared format of that name, e.g. "qwen3".

    Raises `FormatError`, listing the names there are, when there is none.
    """
    known = {declared.name: declared.format for declared in declared_formats()}
    if name not in known:
        raise FormatError(f"declared format: expected one of {sorted(known)}, found {name!r}")
    return known[name]


def _read(data: dict[str, Any]) -> Declared:
    evidence = data.get("evidence")
    return Declared(
        name=data["name"],
        why=data["why"],
        format=Format.from_dict(data["format"]),
        evidence=None if evidence is None else Evidence(**{key: tuple(texts) for key, texts in evidence.items()}),
    )
