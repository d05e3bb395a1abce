"""Cuts files of recorded answers into pieces small enough to hand to workers, and decodes the rows of a piece.

Strategy: `pieces` does not look at rows: a piece holds lines as they are, or rows as Arrow has them, so reading keeps ahead of any
number of workers. They decode them (`raw_rows`), and say what is wrong with rows that are not mappings.
"""

from __future__ import annotations

import gzip
import importlib
import io
import json
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, cast

from unrender.limits import MAX_FILE
from unrender.outputs import STANDARD_STREAM, BatchError

_ROWS = 500
_BYTES = 4_000_000
"""What a piece holds at most; a longer line is a piece of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Neighbouring rows of one file."""

    file: str
    first: int
    """Where its first row is: a line counted from 1, or a row of a table counted from 0."""
    rows: Any
    """Lines as bytes, or a `RecordBatch`; a line that is too long is None."""
    size: int
    """How many rows it holds."""
    read: int
    """Bytes that had been read of its file then, as far as that is known."""

    def emptied(self) -> Piece:
        """Return the same piece without its rows, which still says where it was."""
        return replace(self, rows=None)


def pieces(paths: Sequence[str], columns: Sequence[str], skip: int = 0) -> Iterator[Piece]:
    """Yield the rows of all files in pieces, without the first `skip` rows. Of tables only `columns` are read.

    Lines are read from JSONL, plain or compressed (`.gz`, `.zst`), and from standard input for "-"; tables from
    `.parquet`. Raises `BatchError`, naming the file, when one cannot be read.
    """
    for path in paths:
        with named(path):
            for piece in _tables(path, columns) if is_table(path) else _lines(path):
                # Of 1,200 rows that are done, pieces of 500 are passed over twice, and the third begins at its row
                # 200.
                if skip < piece.size:
                    rows = piece.rows.slice(skip) if is_table(path) else piece.rows[skip:]
                    yield replace(piece, first=piece.first + skip, rows=rows, size=piece.size - skip)
                skip = max(skip - piece.size, 0)


def is_table(path: str) -> bool:
    """Return whether a file's name says that it is Parquet."""
    return path.endswith(".parquet")


def total_size(paths: Sequence[str]) -> int | None:
    """Return the size of all files in bytes; None with standard input. Raises `BatchError` when a file is missing."""
    return None if STANDARD_STREAM in paths else sum(map(size_of, paths))


def size_of(path: str) -> int:
    """Return a file's size in bytes. Raises `BatchError` when the file does not exist."""
    with named(path):
        return Path(path).stat().st_size


@contextmanager
def named(path: str | Path) -> Iterator[None]:
    """Raise `BatchError`, naming the file, for whatever is wrong with it.

    A pipe whose reader has gone is nothing wrong, and stays a `BrokenPipeError`.
    """
    try:
        yield
    except BrokenPipeError:  # `unrender batch read … -o - | head`
        raise
    except (OSError, EOFError, zlib.error) as error:
        raise BatchError(f"{path}: {_first_line(getattr(error, 'strerror', None) or error)}") from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "pyarrow":
            raise
        raise BatchError(f"{path}: {_first_line(error)}") from error


def _first_line(error: object) -> str:
    return str(error).strip().partition("\n")[0]


def _tables(path: str, columns: Sequence[str]) -> Iterator[Piece]:
    parquet = arrow("parquet", path)
    with parquet.ParquetFile(path) as file:
        found = [name for name in columns if name in file.schema_arrow.names]
        # How many bytes a batch took is not told, so every row weighs the same.
        weight = size_of(path) / max(file.metadata.num_rows, 1)
        first = 0
        for batch in file.iter_batches(batch_size=_ROWS, columns=found):
            read = int((first + batch.num_rows) * weight)
            yield Piece(file=path, first=first, rows=batch, size=batch.num_rows, read=read)
            first += batch.num_rows


def arrow(module: str, path: str) -> Any:
    """Import a module of pyarrow for `path`. Raises `BatchError`, naming the path, when pyarrow is not installed."""
    try:
        return importlib.import_module(f"pyarrow.{module}" if module else "pyarrow")
    except ModuleNotFoundError as error:
        raise BatchError(f"{path}: this needs pyarrow: pip install 'unrender[batch]'") from error


def _lines(path: str) -> Iterator[Piece]:
    with _raw(path) as raw, _decompressed(path, raw) as stream:
        first, held, size = 1, list[bytes | None](), 0

        def piece() -> Piece:
            read = 0 if path == STANDARD_STREAM else raw.tell()
            return Piece(file=path, first=first, rows=held, size=len(held), read=read)

        for line in _bounded(stream):
            held.append(line)
            size += len(line or b"")
            if len(held) == _ROWS or size >= _BYTES:
                yield piece()
                first, held, size = first + len(held), [], 0
        if held:
            yield piece()


@contextmanager
def _raw(path: str) -> Iterator[IO[bytes]]:
    if path == STANDARD_STREAM:
        if sys.stdin is None:
            raise BatchError("-: standard input is closed")
        yield sys.stdin.buffer
        return
    with Path(path).open("rb") as file:
        yield file


def _bounded(stream: IO[bytes]) -> Iterator[bytes | None]:
    """Yield lines, None for one that is too long."""
    # A line without an end, of a file that is no JSONL, must not fill the memory: it is read in parts, and dropped.
    while line := stream.readline(MAX_FILE):
        if line.endswith(b"\n") or len(line) < MAX_FILE:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(MAX_FILE)
        yield None


@contextmanager
def _decompressed(path: str, raw: IO[bytes]) -> Iterator[IO[bytes]]:
    if path.endswith(".gz"):
        with gzip.open(raw, "rb") as unpacked:
            yield cast(IO[bytes], unpacked)
    elif path.endswith((".zst", ".zstd")):
        with io.BufferedReader(arrow("", path).CompressedInputStream(raw, "zstd"), 1 << 20) as buffered:
            yield cast(IO[bytes], buffered)
    else:
        yield raw


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRow:
    """A row as it was found."""

    at: int
    """Its line, counted from 1, or in a table its row, counted from 0."""
    raw: Any
    record: Mapping[str, Any] = field(default_factory=dict)
    """Its values by name."""
    problem: str = ""
    """What it is instead of values by name."""

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
        # One bad value spoils a whole batch of Arrow's: its rows are tried one by one.
        if piece.size > 1:
            for at in range(piece.size):
                yield from _of_table(replace(piece, first=piece.first + at, rows=piece.rows.slice(at, 1), size=1))
            return
        problem = f"expected values that Python can hold, found {error!s:.200}"
        yield RawRow(at=piece.first, raw=b"", problem=problem)
        return
    for at, row in enumerate(rows, piece.first):
        yield RawRow(at=at, raw=row, record=row)


def _decoded(at: int, line: bytes | None) -> RawRow:
    if line is None:
        return RawRow(at=at, raw=b"", problem="expected a line of at most 64 MB, found a longer one")
    try:
        record = json.loads(line)
    except RecursionError:
        return RawRow(at=at, raw=line, problem="expected JSON, found it nested too deeply")
    except ValueError as error:
        return RawRow(at=at, raw=line, problem=f"expected JSON: {error}")
    if not isinstance(record, dict):
        return RawRow(at=at, raw=line, problem=f"expected a JSON object, found {type(record).__name__}")
    return RawRow(at=at, raw=line, record=record)


def kind_of(reason: str) -> str:
    """Return a reason without the details that differ from row to row.

    >>> kind_of("text: expected the answer's text, found nothing")
    "text: expected the answer's text"
    """
    return reason.partition(", found ")[0].partition(": line ")[0].partition(" (char ")[0]
