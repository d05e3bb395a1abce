"""Writes the workers' output to a file that is complete or absent, and a journal to resume a killed job.

Strategy: output is appended to `OUT.part`, bad rows to `OUT.bad.jsonl`; now and then `OUT.journal` is
replaced, atomically, by one that says how many rows both hold, and their lengths. A job that goes on cuts both to these
lengths. At the end `OUT.part` becomes `OUT`. `OUT.lock` keeps a second job away meanwhile.

Rules: nothing is opened or removed before it is certain that it is not an input; every error names the file.
"""

from __future__ import annotations

import gzip
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, fields
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from unrender.batch.columns import Kind, arrow_array, arrow_types
from unrender.batch.files import arrow, named
from unrender.batch.rows import Tally
from unrender.outputs import STANDARD_STREAM, BatchError, is_replaceable, is_same_file, locked

_log = logging.getLogger("unrender.batch")
_VERSION = 1
_EVERY = 1.0
"""Seconds between two journals: what a kill costs at most."""
ANEW = "start anew (force=True, or --force)"
"""What an error proposes where something old is in the way."""
Records = Sequence[Mapping[str, Any]]

COLUMNS = {
    "content": Kind.TEXT,
    "reasoning": Kind.TEXT,
    "tool_calls": Kind.CALLS,
    "status": Kind.TEXT,
    "warnings": Kind.TEXTS,
}


class Paths:
    """The files of one output: what is written so far, the rows that could not be read, and how far the job has come."""

    def __init__(self, out: Path) -> None:
        def beside(suffix: str) -> Path:
            return out.with_name(f"{out.name}{suffix}")

        self.out: Path = out
        self.part: Path = beside(".part")
        self.bad: Path = beside(".bad.jsonl")
        self.journal: Path = beside(".journal")
        made = (beside(".lock"), beside(".new"), beside(".journal.new"))
        self.all: tuple[Path, ...] = (out, self.part, self.bad, self.journal, *made)
        """All files that a job makes, removes or replaces."""


@dataclass(slots=True)
class Journal:
    """How far a job has come: all that it counts has been written."""

    job: str
    """Digest of all that decides the output."""
    rows: int = 0
    """Rows of the input that are done."""
    part: int = 0
    bad: int = 0
    """Bytes of the two files."""
    tally: Tally = field(default_factory=Tally)
    done: bool = False
    """Whether all rows are; then only the output is to be made of what is written."""
    replaces: bool = False
    """Whether the output may take the place of a file that is there."""

    def write(self, path: Path) -> None:
        """Replace the journal atomically."""
        found = {item.name: getattr(self, item.name) for item in fields(self)}
        data = {"version": _VERSION, **found, "tally": self.tally.data()}
        new = path.with_name(f"{path.name}.new")
        # On the disk before it takes the old one's place: after a power cut there is one of the two, and it is whole.
        with new.open("w", encoding="utf-8") as file:
            json.dump(data, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)

    @classmethod
    def read(cls, path: Path, job: str) -> Journal | None:
        """Return the journal of an earlier run; None when there is none.

        Raises `BatchError` when it is another job's.
        """
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            version = found.pop("version")
            journal = cls(**{**found, "tally": Tally.restore(found["tally"])})
        except FileNotFoundError:
            return None
        except OSError as error:
            raise BatchError(f"{path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BatchError(f"{path}: expected the journal of a job, found something else: {error!r}") from error
        if version != _VERSION or journal.job != job:
            other = "another job's journal: other files, tools, columns or format"
            raise BatchError(f"{path}: this is {other}; {ANEW}, or delete it")
        return journal


@contextmanager
def writing(out: str, job: str, inputs: Sequence[str], *, force: bool) -> Iterator[Sink | Stream]:
    """Give what takes the results for an output, and keep other processes from writing it while the block runs.

    Raises `BatchError` when the output is an input, is a folder, or is written already, and when a job's leftovers
    beside it are another's.
    """
    paths = Paths(Path(os.path.realpath(out) if Path(out).is_symlink() else out))
    made = (out,) if out == STANDARD_STREAM else tuple(map(str, paths.all))
    for path, source in ((path, source) for path in made for source in inputs):
        if is_same_file(path, source):
            raise BatchError(f"{path}: this file would be written, and it is the input {source}; name another output")
    if out == STANDARD_STREAM or not is_replaceable(paths.out):
        with closing(Stream(out, job)) as stream:
            yield stream
        return
    with locked(paths.out), closing(Sink(paths, job, force=force)) as sink:
        yield sink


class Stream:
    """Takes results for standard output, or what else cannot be replaced by a file. Nothing of it can be continued."""

    def __init__(self, out: str, job: str) -> None:
        # Parquet is made of what was written before, which a pipe does not give back.
        if form_of(out).complete is not _renamed:
            raise BatchError(f"{out}: expected a regular file, which Parquet needs")
        self.journal: Journal = Journal(job)
        self._out = out
        with named(out):
            self._file: BinaryIO = sys.stdout.buffer if out == STANDARD_STREAM else Path(out).open("wb")  # noqa: SIM115 - closed with the stream

    def close(self) -> None:
        """Close what is not standard output."""
        if self._out != STANDARD_STREAM:
            with suppress(OSError):
                self._file.close()

    def take(self, rows: int, output: bytes, bad: bytes, tally: Tally) -> None:
        """Write the results of one piece; what could not be read is told."""
        with named(self._out):
            self._file.write(output)
            self._file.flush()
        # The worker wrote lines for a file; without a file, each is one warning.
        for found in map(json.loads, bad.splitlines()):
            place = next(f"{word} {found[word]}" for word in ("line", "row") if word in found)
            _log.warning("%s, %s: %s", found["file"], place, found["reason"])
        self.journal.rows += rows
        self.journal.tally.merge(tally)

    def finish(self, _form: Form) -> None:
        """There is nothing left to do."""


class Sink:
    """Takes what workers have written, in order; only `finish` makes the output.

    The order of steps is what makes a job resumable: data is on the disk before the journal counts it, and the journal says
    `done` before OUT.part becomes OUT. A kill between two steps leaves more than the journal tells, and never less.
    """

    def __init__(self, paths: Paths, job: str, *, force: bool) -> None:
        self.paths: Paths = paths
        if force:
            _remove(paths.journal)
        # What lies behind the lengths in the journal was written by a run that was killed before it could say so.
        found = Journal.read(paths.journal, job)
        self.journal: Journal = found or Journal(job, replaces=force)
        if paths.out.exists() and not self.journal.done and not self.journal.replaces:
            raise BatchError(f"{paths.out}: this file exists; {ANEW} to replace it")
        # Killed between the renaming of OUT.part to OUT and the removal of the journal: nothing is left to write.
        renamed = self.journal.done and paths.out.exists() and not paths.part.exists()
        self._part = None if renamed else _opened(paths.part, self.journal.part)
        self._bad = _opened(paths.bad, self.journal.bad)
        self._noted = time.monotonic()

    def close(self) -> None:
        """Close the files; remove those that no journal tells of."""
        self._close()
        # It failed or was interrupted within its first second, before the first journal.
        if not self.paths.journal.exists() and not self.journal.done:
            _remove(self.paths.part, self.paths.bad)  # Nothing tells how much of them can be used.

    def _close(self) -> None:
        for file in (self._part, self._bad):
            if file is not None:
                with suppress(OSError):  # What could not be written is told already, and no journal counts it.
                    file.close()

    def take(self, rows: int, output: bytes, bad: bytes, tally: Tally) -> None:
        """Append the results of one piece."""
        assert self._part is not None
        for file, path, data in ((self._part, self.paths.part, output), (self._bad, self.paths.bad, bad)):
            with named(path):
                file.write(data)
        self.journal.rows += rows
        self.journal.part += len(output)
        self.journal.bad += len(bad)
        self.journal.tally.merge(tally)
        # To wait for the disk after each piece would cost more than reading the piece.
        if time.monotonic() - self._noted > _EVERY:
            self._note()

    def _note(self) -> None:
        for file, path in ((self._part, self.paths.part), (self._bad, self.paths.bad)):
            if file is not None:
                with named(path):
                    # Data first, then the journal that counts it: what a journal tells of is always there.
                    file.flush()
                    os.fsync(file.fileno())
        with named(self.paths.journal):
            self.journal.write(self.paths.journal)
        self._noted = time.monotonic()

    def finish(self, form: Form) -> None:
        """Turn what was written into the output file, and leave only the bad rows beside it."""
        # Noted before the renaming: a job that is killed between the two finds all rows done, and reads none again.
        self.journal.done = True
        self._note()
        self._close()
        if self._part is not None:
            with named(self.paths.out):
                form.complete(self.paths.part, self.paths.out)
        if not self.journal.bad:
            _remove(self.paths.bad)
        _remove(self.paths.journal)


def _opened(path: Path, length: int) -> BinaryIO:
    """Return a file cut to so many bytes and open for writing more. Raises `BatchError` when it is shorter."""
    try:
        file = path.open("ab")
    except OSError as error:
        raise BatchError(f"{path}: {error.strerror}") from error
    if file.tell() < length:
        file.close()
        raise BatchError(f"{path}: expected at least {length} bytes, which the journal tells of; {ANEW}")
    # `OUT.part` has 900 bytes, and the journal counts 800 of them: the last 100 will be written again.
    file.truncate(length)
    file.seek(0, os.SEEK_END)
    return file


def _remove(*paths: Path) -> None:
    for path in paths:
        with named(path), suppress(FileNotFoundError):
            path.unlink()


@dataclass(frozen=True, slots=True)
class Form:
    """A form of output: how a worker writes a piece, and how a file is made of the pieces."""

    written: Callable[[Records, Sequence[str]], bytes]
    """Takes records and the names of the columns that are kept from the input."""
    complete: Callable[[Path, Path], None]


def form_of(out: str) -> Form:
    """Return the form that the name of an output asks for: JSONL, plain or compressed, or Parquet."""
    if out.endswith((".zst", ".zstd", ".parquet")):
        arrow("", out)
    return next((form for suffix, form in _FORMS.items() if out.endswith(suffix)), _JSONL)


def _as_lines(records: Records, _kept: Sequence[str]) -> bytes:
    return b"".join(map(json_line, records))


def json_line(record: Mapping[str, Any]) -> bytes:
    """Return a record as a line of JSON. Half characters, which UTF-8 cannot encode, are written as JSON escapes."""
    try:
        return json.dumps(record, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(record).encode() + b"\n"


def _as_gzip(records: Records, kept: Sequence[str]) -> bytes:
    # Files of gzip put one after another are one file of gzip, so pieces need not know of each other.
    return gzip.compress(_as_lines(records, kept), 6, mtime=0)


def _as_zstd(records: Records, kept: Sequence[str]) -> bytes:
    return bytes(arrow("", "zstd").Codec("zstd").compress(_as_lines(records, kept), asbytes=True))


def _as_arrow(records: Records, kept: Sequence[str]) -> bytes:
    """Return records as a stream of Arrow's with one batch, schema and all, so that streams can be put one after another."""
    pa = arrow("", "parquet")
    types = arrow_types()
    columns = dict.fromkeys(kept, types[Kind.TEXT]) | {name: types[kind] for name, kind in COLUMNS.items()}
    arrays = [arrow_array([_text(record, name) for record in records], kind) for name, kind in columns.items()]
    batch = pa.record_batch(arrays, names=list(columns))
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(out.getvalue().to_pybytes())


def _text(record: Mapping[str, Any], name: str) -> Any:
    """Return a value of a record; what is kept of the input is a text, JSON where it was none."""
    value = record[name]
    return value if name in COLUMNS or value is None or isinstance(value, str) else json.dumps(value, default=str)


def _renamed(part: Path, out: Path) -> None:
    part.replace(out)


def _to_parquet(part: Path, out: Path) -> None:
    """Copy what is a stream of Arrow's for each piece into one file of Parquet."""
    parquet = arrow("parquet", str(out))
    new = out.with_name(f"{out.name}.new")
    batches = _batches(part)
    if (first := next(batches, None)) is None:
        parquet.write_table(arrow("", str(out)).table({name: [] for name in COLUMNS}), new)
    else:
        with parquet.ParquetWriter(new, first.schema, compression="zstd") as writer:
            for batch in chain([first], batches):
                writer.write_batch(batch)
    new.replace(out)
    part.unlink()


def _batches(part: Path) -> Iterator[Any]:
    pa = arrow("", str(part))
    with pa.OSFile(str(part)) as file:
        # Each piece is a stream with a schema and an end of its own; they lie one after another.
        while file.tell() < file.size():
            with pa.ipc.open_stream(file) as stream:
                yield from stream


_JSONL = Form(_as_lines, _renamed)
_FORMS: Mapping[str, Form] = {
    ".gz": Form(_as_gzip, _renamed),
    ".zst": Form(_as_zstd, _renamed),
    ".zstd": Form(_as_zstd, _renamed),
    ".parquet": Form(_as_arrow, _to_parquet),
}
