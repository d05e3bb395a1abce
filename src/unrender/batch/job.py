"""Reads files of recorded answers into one file of messages: in order, in several processes, and resumable.

A job that was ended, by whatever means, goes on where it was when it is started again with the same arguments.

Strategy: pieces are read here and go to workers, which do everything else; their results are written here, in order. The next pieces
are read while workers work, and only so many results wait for an earlier one.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import Any, TypeVar

from unrender.batch.files import Piece, RawRow, kind_of, pieces, place_word, raw_rows, size_of, total_size
from unrender.batch.reader import Reader, struct_calls
from unrender.batch.rows import Reading, Status, Tally, unreadable
from unrender.batch.sinks import COLUMNS, form_of, json_line, writing
from unrender.outputs import STANDARD_STREAM, BatchError

Item = TypeVar("Item")
Result = TypeVar("Result")
_AHEAD = 4
"""Pieces for each worker that are out or wait for an earlier one."""
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
    work = partial(_read, reader, tuple(keep), output)
    with writing(output, _digest(reader, files, keep), files, force=force) as sink:
        pace = Pace(files, total, sink.journal.rows, on_progress)
        # All rows may be done and the output not made yet: then nothing is read, and `finish` does the rest.
        left = [] if sink.journal.done else pieces(files, [*reader.columns, *keep], sink.journal.rows)
        for done in mapped(work, left, jobs):
            sink.take(done.piece.size, done.output, done.bad, done.tally)
            pace.show(done.piece)
        sink.finish(form)
        return sink.journal.tally


def _digest(reader: Reader, files: Sequence[str], keep: Sequence[str]) -> str:
    """Return what is equal for jobs with the same output."""
    # A file that has changed since is another job's input: going on would join two halves of different files.
    sizes = [None if path == STANDARD_STREAM else size_of(path) for path in files]
    described = json.dumps([reader.described(), list(files), sizes, list(keep)], sort_keys=True, default=repr)
    return hashlib.blake2b(described.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def readings(reader: Reader, piece: Piece) -> Iterator[tuple[RawRow, Reading]]:
    """Yield the rows of a piece, and what each means."""
    for row in raw_rows(piece):
        yield row, unreadable(row.problem) if row.problem else reader.read(row.record)


def _read(reader: Reader, keep: tuple[str, ...], output: str, piece: Piece) -> Done:
    """Do a worker's part: everything but writing to the files."""
    tally, records, bad = Tally(), [], []
    for row, reading in readings(reader, piece):
        if reading.status is Status.UNREADABLE:
            reason, found = reading.reasons[0], row.shown(_QUOTED)
            bad.append({"file": piece.file, place_word(piece.file): row.at, "reason": reason, "found": found})
            # Counted without its details: `expected JSON: line 1 column 7` is one reason, whatever the column.
            tally.refuse(kind_of(reason))
            continue
        tally.take(reading)
        record = {name: row.record.get(name) for name in keep}
        record |= {"content": reading.message.content, "reasoning": reading.message.reasoning}
        record |= {"tool_calls": struct_calls(reading.message), "status": reading.status.value}
        records.append(record | {"warnings": list(reading.warnings)})
    # Compressed here, in the worker: the parent only appends bytes, and is never what a job waits for.
    written = form_of(output).written(records, keep) if records else b""
    return Done(piece=piece.emptied(), output=written, bad=b"".join(map(json_line, bad)), tally=tally)


class Pace:
    """Measures how fast a job is, and reports it."""

    def __init__(
        self, files: Sequence[str], total: int | None, rows: int, tell: Callable[[Progress], object] | None
    ) -> None:
        # How many bytes of all files come before each of them.
        self._before = (
            {} if total is None else dict(zip(files, accumulate(map(size_of, files), initial=0), strict=False))
        )
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
            # A job that goes on at 60 % has not done these 60 % since it was started.
            if self._share < 0:
                self._share = share  # What an earlier run did, and a first piece, say nothing of this run's speed.
        remaining = None
        if share is not None and share > self._share:
            remaining = seconds * (1 - share) / (share - self._share)
        rate = (self._rows - self._first) / seconds
        self._tell(Progress(rows=self._rows, rate=rate, share=share, remaining=remaining))


def mapped(work: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    """Yield `work` of each item, in order, from `jobs` new processes; with one job, from this process.

    `work` must be picklable. Raises `BatchError` when a worker dies or `work` raises.
    """
    if jobs == 1:
        yield from map(work, items)
        return
    waiting = deque[Future[Result]]()
    # A fork would copy locks that threads of the caller hold.
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_begin, initargs=(work,))
    try:
        for item in items:
            waiting.append(pool.submit(_work, item))
            # Piece 3 may be done before piece 1: its result waits, and no more pieces go out than may wait for one.
            if len(waiting) == jobs * _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise BatchError(
            "a worker has ended; was it killed, for its memory perhaps? The same command goes on where it was"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


_OF_WORKER: dict[str, Callable[[Any], Any]] = {}
"""What this process does with each item, if it is a worker."""


def _begin(work: Callable[[Any], Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer.
    _OF_WORKER["work"] = work  # Sent once, not with each item: a reader keeps the parsers that it has made.
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process as soon as its parent is gone: a parent that was killed cannot say so, and the queue would wait."""
    if (parent := parent_process()) is not None:
        wait([parent.sentinel])
        os._exit(1)


def _work(item: Any) -> Any:
    try:
        return _OF_WORKER["work"](item)
    except Exception as error:
        raise BatchError(f"a worker failed: {traceback.format_exc(limit=-3)}") from error
