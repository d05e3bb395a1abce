"""Rows of `tests/corpus/schemas.jsonl` ↔ what is read of a schema: its shape on one line (see `lines`), what is lost, and verdicts.

A row has `why`, `schema`, and either `error` or `shape`; where they are not empty: `longest` (up to which length is counted), `lost`
(`path keyword: reason`), `definitions` (shapes that refer to themselves), `accepts` and `rejects` (JSON values). A value that the
schema refuses and the grammar lets pass is in neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engines import Accepts, converted_reader, lark_reader
from lines import shape_line
from remainders import written
from tables import case_rows

from unrender import GrammarError
from unrender.grammar import schema as json_value
from unrender.schema.reader import read_schema

SCHEMAS = Path(__file__).parent / "corpus" / "schemas.jsonl"
READ = ("error", "shape", "lost", "definitions")
"""The fields of a row that say how its schema is read."""


def schema_rows() -> list[dict[str, Any]]:
    """Return all rows."""
    return case_rows(SCHEMAS)


def expected(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a row says of the reading."""
    return {key: row[key] for key in READ if key in row}


def read(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same of the schema as it is read now."""
    try:
        reading = read_schema(row["schema"], longest=row.get("longest"))
    except GrammarError as error:
        return {"error": str(error)}
    lost = [f"{item.path} {item.keyword}: {item.reason}" for item in reading.unsupported]
    definitions = {name: shape_line(shape) for name, shape in reading.definitions.items()}
    found = {"shape": shape_line(reading.shape), "lost": lost, "definitions": definitions}
    return {key: value for key, value in found.items() if value}


def readers(schema: Any) -> Iterator[tuple[str, Accepts]]:
    """Yield what decides on texts: each dialect, as an engine reads it."""
    value = json_value(schema)
    yield "lark", lark_reader(written(value, "lark"))
    yield "gbnf", converted_reader(written(value, "gbnf"))
