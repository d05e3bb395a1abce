"""Rows of `tests/corpus/schemas.jsonl`: a schema, its shape on one line (see `lines`), its losses, and verdicts.

A row has `why`, `schema`, and either `error` or `shape`. Non-empty fields are added: `longest` (the maximum length that
is counted), `lost` (`path keyword: reason`), `definitions` (recursive shapes), `accepts` and `rejects` (JSON values). A
value that the schema rejects but the grammar accepts is in neither.
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
"""The fields of a row with the result of reading its schema."""


def schema_rows() -> list[dict[str, Any]]:
    """Return all rows."""
    return case_rows(SCHEMAS)


def expected(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row's expected result."""
    return {key: row[key] for key in READ if key in row}


def read(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the current result for the schema."""
    try:
        reading = read_schema(row["schema"], longest=row.get("longest"))
    except GrammarError as error:
        return {"error": str(error)}
    lost = [f"{item.path} {item.keyword}: {item.reason}" for item in reading.unsupported]
    definitions = {name: shape_line(shape) for name, shape in reading.definitions.items()}
    found = {"shape": shape_line(reading.shape), "lost": lost, "definitions": definitions}
    return {key: value for key, value in found.items() if value}


def readers(schema: Any) -> Iterator[tuple[str, Accepts]]:
    """Yield a reader for each dialect, using an engine."""
    value = json_value(schema)
    yield "lark", lark_reader(written(value, "lark"))
    yield "gbnf", converted_reader(written(value, "gbnf"))
