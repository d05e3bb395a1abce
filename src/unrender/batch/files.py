"""Cuts files of recorded answers into pieces, in order, small enough to hand to workers.

Strategy: what belongs to one row is not looked at here: a piece holds lines as they are, or rows as Arrow has them, and workers
decode them. So reading keeps ahead of any number of workers.
"""

from __future__ import annotations

import gzip
import importlib
import io
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, cast

from unrender.batch.failure import BatchError
from unrender.batch.outputs import STANDARD
from unrender.limits import LONGEST_BATCH_LINE

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
                if skip < piece.size:
                    yield _without(piece, skip)
                skip = max(skip - piece.size, 0)


def is_table(path: str) -> bool:
    """Return whether a file's name says that it is Parquet."""
    return path.endswith(".parquet")


def total_size(paths: Sequence[str]) -> int | None:
    """Return the size of all files in bytes; None with standard input. Raises `BatchError` when a file is missing."""
    if STANDARD in paths:
        return None
    return sum(size_of(path) for path in paths)


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
    except BrokenPipeError:
        raise
    except (OSError, EOFError, zlib.error) as error:
        raise BatchError(f"{path}: {_first_line(getattr(error, 'strerror', None) or error)}") from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "pyarrow":
            raise
        raise BatchError(f"{path}: {_first_line(error)}") from error


def _first_line(error: object) -> str:
    return str(error).strip().partition("\n")[0]


def _without(piece: Piece, skip: int) -> Piece:
    if not skip:
        return piece
    rows = piece.rows.slice(skip) if is_table(piece.file) else piece.rows[skip:]
    return Piece(file=piece.file, first=piece.first + skip, rows=rows, size=piece.size - skip, read=piece.read)


def _tables(path: str, columns: Sequence[str]) -> Iterator[Piece]:
    parquet = arrow("parquet", path)
    with parquet.ParquetFile(path) as file:
        found = [name for name in columns if name in file.schema_arrow.names]
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
        for line in _bounded(stream):
            held.append(line)
            size += len(line or b"")
            if len(held) == _ROWS or size >= _BYTES:
                yield Piece(file=path, first=first, rows=held, size=len(held), read=_position(path, raw))
                first, held, size = first + len(held), [], 0
        if held:
            yield Piece(file=path, first=first, rows=held, size=len(held), read=_position(path, raw))


@contextmanager
def _raw(path: str) -> Iterator[IO[bytes]]:
    if path == STANDARD:
        if sys.stdin is None:
            raise BatchError("-: standard input is closed")
        yield sys.stdin.buffer
        return
    with Path(path).open("rb") as file:
        yield file


def _position(path: str, raw: IO[bytes]) -> int:
    return 0 if path == STANDARD else raw.tell()


def _bounded(stream: IO[bytes]) -> Iterator[bytes | None]:
    """Yield lines, None for one that is too long."""
    while line := stream.readline(LONGEST_BATCH_LINE):
        if line.endswith(b"\n") or len(line) < LONGEST_BATCH_LINE:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(LONGEST_BATCH_LINE)
        yield None


@contextmanager
def _decompressed(path: str, raw: IO[bytes]) -> Iterator[IO[bytes]]:
    for suffix, opened in _COMPRESSED.items():
        if path.endswith(suffix):
            with opened(raw, path) as stream:
                yield stream
            return
    yield raw


def _gunzipped(raw: IO[bytes], _path: str) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(raw, "rb"))


def _from_zstd(raw: IO[bytes], path: str) -> IO[bytes]:
    stream = arrow("", path).CompressedInputStream(raw, "zstd")
    return cast(IO[bytes], io.BufferedReader(stream, 1 << 20))


_COMPRESSED: Mapping[str, Callable[[IO[bytes], str], IO[bytes]]] = {
    ".gz": _gunzipped,
    ".zst": _from_zstd,
    ".zstd": _from_zstd,
}
