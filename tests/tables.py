"""Test data: rows of JSON Lines files, the named values of a test module in `corpus/support`, and comparison with parts of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent / "corpus"


@cache
def case_rows(path: Path) -> list[Any]:
    """Return the rows of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def named_rows(path: Path, kind: str) -> dict[str, Any]:
    """Return the rows of a file with a field `kind`, by the name in it, without that field."""
    return {row[kind]: {key: row[key] for key in row if key != kind} for row in case_rows(path) if kind in row}


def table(name: str) -> dict[str, Any]:
    """Return the values of `corpus/support/NAME.jsonl`. A row is a named value, or an entry of a named mapping."""
    found: dict[str, Any] = {}
    for row in case_rows(CORPUS / "support" / f"{name}.jsonl"):
        for key, value in row.items():
            found[key] = found[key] | value if key in found else value
    return found


def at(value: Any, path: str) -> Any:
    """Return a part of a value. `path` has the names of items and fields, and `*` is a list of a part of all items."""
    for name in path.split("."):
        if name == "*":
            return [at(item, path.partition("*.")[2]) for item in value]
        value = (
            value[int(name)] if name.isdigit() else value[name] if isinstance(value, Mapping) else getattr(value, name)
        )
    return value


def within(expected: Any, found: Any) -> bool:
    """Return whether JSON has all expected fields."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return all(name in found and within(item, found[name]) for name, item in expected.items())
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(within, expected, found))
    return bool(expected == found)
