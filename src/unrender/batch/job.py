"""Reads files of recorded answers into one file of messages: in order, in several processes, and resumable.

A job that was ended, by whatever means, goes on where it was when it is started again with the same arguments.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from unrender.batch.failure import BatchError
from unrender.batch.files import Piece, pieces, size_of, total_size
from unrender.batch.outputs import STANDARD
from unrender.batch.reader import Reader, struct_calls
from unrender.batch.records import RawRow, kind_of, place_word, raw_rows
from unrender.batch.rows import Status, unreadable
from unrender.batch.sinks import COLUMNS, form_of, json_line, writing
from unrender.batch.tally import Tally
from unrender.batch.workers import mapped

_QUOTED = 1_000
"""Characters of a bad row that the side file repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a job has come."""

    rows: int
    """Rows that are done, those of earlier runs included."""
    rate: float
    """Rows a second of this run."""
    share: float | None
    """How much of the input is done, from 0 to 1; None where that is not known."""
    remaining: float | None
    """Seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The results of one piece."""

    piece: Piece
    """Without its rows."""
    output: bytes
    bad: bytes
    tally: Tally


def read_files(
    reader: Reader,
    files: Sequence[str],
    output: str,
    *,
    jobs: int = 1,
    keep: Sequence[str] = (),
    force: bool = False,
    on_progress: Callable[[Progress], object] | None = None,
) -> Tally:
    """Read the answers of all files into `output`, and return the totals.

    Files are JSONL, plain or compressed (`.gz`, `.zst`), `.parquet`, or "-" for JSONL on standard input; `output` is
    any of these forms, "-" being standard output. Each row gives one record, in order: the values of the columns in `keep`, then `content`,
    `reasoning`, `tool_calls` (a list of objects with `id`, `name` and `arguments`), `status` and `warnings`. In
    Parquet, kept values are texts. Rows that cannot be read go to `<output>.bad.jsonl` instead, with the file, the line
    (from 1) or row (from 0), and the reason. Memory does not grow with the input.

    Work is done in `jobs` processes. A run that is interrupted leaves `<output>.part` and `<output>.journal`, and the
    next run with the same arguments continues it; standard input must then bring the same rows again. `force` starts
    anew, and replaces `output` at the end. Standard output, and whatever else is not a regular file, is written at once: then
    nothing can be continued, and rows that cannot be read are warnings in the log.

    Raises `BatchError` when a file cannot be read or written, when `output` exists already, is one of the files or is
    being written by another process, or when these leftovers are another job's.
    """
    taken = [name for name in keep if name in COLUMNS]
    if taken:
        raise BatchError(f"keep: {taken[0]!r} is the name of a column that is added")
    form = form_of(output)
    total = total_size(files)
    work = _Work(reader=reader, keep=tuple(keep), output=output)
    with writing(output, _digest(reader, files, keep), files, force=force) as sink:
        pace = Pace(files, total, sink.journal.rows, on_progress)
        left = [] if sink.journal.done else pieces(files, [*reader.columns, *keep], sink.journal.rows)
        for done in mapped(work, left, jobs):
            sink.take(done.piece.size, done.output, done.bad, done.tally)
            pace.show(done.piece)
        sink.finish(form)
        return sink.journal.tally


def _digest(reader: Reader, files: Sequence[str], keep: Sequence[str]) -> str:
    """Return what is equal for jobs with the same output."""
    sizes = [None if path == STANDARD else size_of(path) for path in files]
    described = json.dumps([reader.described(), list(files), sizes, list(keep)], sort_keys=True, default=repr)
    return hashlib.blake2b(described.encode(errors="surrogatepass"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What a worker does with a piece."""

    reader: Reader
    keep: tuple[str, ...]
    output: str

    def __call__(self, piece: Piece) -> Done:
        tally, records, bad = Tally(), [], []
        for row in raw_rows(piece):
            record = row.record
            reading = unreadable(row.problem) if record is None else self.reader.read(record)
            if record is None or reading.status is Status.UNREADABLE:
                bad.append(_bad(piece, row, reading.reasons[0]))
                tally.refuse(kind_of(reading.reasons[0]))
                continue
            tally.take(reading)
            message = reading.message
            records.append(
                {
                    **{name: record.get(name) for name in self.keep},
                    "content": message.content,
                    "reasoning": message.reasoning,
                    "tool_calls": struct_calls(message),
                    "status": reading.status.value,
                    "warnings": list(reading.warnings),
                }
            )
        output = form_of(self.output).written(records, self.keep) if records else b""
        return Done(piece=piece.emptied(), output=output, bad=b"".join(map(json_line, bad)), tally=tally)


def _bad(piece: Piece, row: RawRow, reason: str) -> dict[str, Any]:
    return {"file": piece.file, place_word(piece.file): row.at, "reason": reason, "found": row.shown(_QUOTED)}


class Pace:
    """Measures how fast a job is, and reports it."""

    def __init__(
        self, files: Sequence[str], total: int | None, rows: int, tell: Callable[[Progress], object] | None
    ) -> None:
        self._before = {} if total is None else _starts(files)
        self._total, self._rows, self._tell = total, rows, tell
        self._begun, self._first, self._share = time.monotonic(), rows, -1.0

    def show(self, piece: Piece) -> None:
        """Report progress after a piece."""
        self._rows += piece.size
        if self._tell is None:
            return
        seconds = max(time.monotonic() - self._begun, 1e-9)
        share = None
        if self._total:
            share = min((self._before[piece.file] + piece.read) / self._total, 1.0)
            if self._share < 0:
                self._share = share  # What an earlier run did, and a first piece, say nothing of this run's speed.
        remaining = None
        if share is not None and share > self._share:
            remaining = seconds * (1 - share) / (share - self._share)
        rate = (self._rows - self._first) / seconds
        self._tell(Progress(rows=self._rows, rate=rate, share=share, remaining=remaining))


def _starts(files: Sequence[str]) -> dict[str, int]:
    """Return how many bytes of all files come before each of them."""
    starts, at = {}, 0
    for path in files:
        starts[path] = at
        at += size_of(path)
    return starts
