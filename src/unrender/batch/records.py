"""Decodes the rows of a piece of a file, and says what is wrong with rows that are not mappings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from unrender.batch.files import Piece, is_table


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRow:
    """A row as it was found."""

    at: int
    """Its line, counted from 1, or in a table its row, counted from 0."""
    raw: Any
    record: Mapping[str, Any] | None
    """Its values by name; None where it has none."""
    problem: str = ""
    """What it is instead."""

    def shown(self, most: int) -> str:
        """Return the first `most` characters of the row, for people."""
        raw = self.raw.decode("utf-8", "replace") if isinstance(self.raw, bytes) else repr(self.raw)
        return raw[:most].rstrip("\n")


def raw_rows(piece: Piece) -> Iterator[RawRow]:
    """Yield the rows of a piece; empty lines are skipped."""
    if is_table(piece.file):
        yield from _of_table(piece)
        return
    for at, line in enumerate(piece.rows, piece.first):
        if line is None or line.strip():
            yield _decoded(at, line)


def place_word(file: str) -> str:
    """Return the word for the place of a row in a file: "row" or "line"."""
    return "row" if is_table(file) else "line"


def _of_table(piece: Piece) -> Iterator[RawRow]:
    try:
        rows = piece.rows.to_pylist()
    except Exception as error:  # noqa: BLE001 - which value it was, and what it could not be, is told row by row
        if piece.size > 1:
            for at in range(piece.size):
                yield from _of_table(replace(piece, first=piece.first + at, rows=piece.rows.slice(at, 1), size=1))
            return
        problem = f"expected values that Python can hold, found {error!s:.200}"
        yield RawRow(at=piece.first, raw=b"", record=None, problem=problem)
        return
    for at, row in enumerate(rows, piece.first):
        yield RawRow(at=at, raw=row, record=row)


def _decoded(at: int, line: bytes | None) -> RawRow:
    if line is None:
        return RawRow(at=at, raw=b"", record=None, problem="expected a line of at most 64 MB, found a longer one")
    try:
        record = json.loads(line)
    except RecursionError:
        return RawRow(at=at, raw=line, record=None, problem="expected JSON, found it nested too deeply")
    except ValueError as error:
        return RawRow(at=at, raw=line, record=None, problem=f"expected JSON: {error}")
    if not isinstance(record, dict):
        problem = f"expected a JSON object, found {type(record).__name__}"
        return RawRow(at=at, raw=line, record=None, problem=problem)
    return RawRow(at=at, raw=line, record=record)


def kind_of(reason: str) -> str:
    """Return a reason without the details that differ from row to row.

    >>> kind_of("text: expected the answer's text, found nothing")
    "text: expected the answer's text"
    """
    return reason.partition(", found ")[0].partition(": line ")[0].partition(" (char ")[0]
