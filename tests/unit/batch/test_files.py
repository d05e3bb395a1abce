"""Files in pieces, and what is said of those that cannot be read."""

from __future__ import annotations

import gzip
import io
import sys
from types import SimpleNamespace

import pytest

from unrender.batch import BatchError, files
from unrender.batch.files import arrow, pieces, size_of, total_size


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in a folder of its own, in pieces of two rows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "_ROWS", 2)
    (tmp_path / "a.jsonl").write_bytes(b"1\n22\n333\n")
    (tmp_path / "b.jsonl").write_bytes(b"4")
    return tmp_path


def told(*paths, skip=0):
    return [(piece.file, piece.first, piece.rows, piece.size) for piece in pieces(paths, (), skip)]


@pytest.mark.parametrize(
    ("skip", "expected"),
    [
        (0, [("a.jsonl", 1, [b"1\n", b"22\n"], 2), ("a.jsonl", 3, [b"333\n"], 1), ("b.jsonl", 1, [b"4"], 1)]),
        (1, [("a.jsonl", 2, [b"22\n"], 1), ("a.jsonl", 3, [b"333\n"], 1), ("b.jsonl", 1, [b"4"], 1)]),
        (2, [("a.jsonl", 3, [b"333\n"], 1), ("b.jsonl", 1, [b"4"], 1)]),
        (3, [("b.jsonl", 1, [b"4"], 1)]),
        (4, []),
        (9, []),
    ],
)
def test_lines_come_in_pieces(skip, expected):
    """Rows keep their places, whatever is skipped before them, over all files."""
    assert told("a.jsonl", "b.jsonl", skip=skip) == expected


def test_a_piece_is_not_too_long(monkeypatch):
    """A piece ends where it has its bytes, though it has not its rows."""
    monkeypatch.setattr(files, "_BYTES", 2)

    assert [rows for _, _, rows, _ in told("a.jsonl")] == [[b"1\n"], [b"22\n"], [b"333\n"]]


@pytest.mark.parametrize(
    ("longest", "rows"),
    [(4, [b"1\n", b"22\n", b"333\n"]), (3, [b"1\n", b"22\n", None]), (2, [b"1\n", None, None])],
)
def test_a_line_that_is_too_long_is_not_kept(monkeypatch, longest, rows):
    """Its place is kept, and the next line is read from its beginning."""
    monkeypatch.setattr(files, "MAX_FILE", longest)

    assert [row for piece in pieces(["a.jsonl"], ()) for row in piece.rows] == rows


def test_standard_input(monkeypatch):
    """Lines of a pipe have no position, and no size."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"1\n")))

    (piece,) = pieces(["-"], ())
    assert (piece.rows, piece.read) == ([b"1\n"], 0)
    assert total_size(["a.jsonl", "-"]) is None


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: told("none.jsonl"), "^none.jsonl: No such file or directory$"),
        (lambda: told("."), "^.: Is a directory$"),
        (lambda: size_of("none.jsonl"), "^none.jsonl: No such file or directory$"),
        (lambda: total_size(["a.jsonl", "none.jsonl"]), "^none.jsonl: No such file"),
    ],
)
def test_what_cannot_be_read_is_named(ask, message):
    """The file and the system's own words."""
    with pytest.raises(BatchError, match=message):
        ask()


@pytest.mark.parametrize(
    "data",
    [b"no gzip", gzip.compress(b"1\n" * 999)[:-9], gzip.compress(b"1\n")[:12] + b"xx" + gzip.compress(b"1\n")[14:]],
    ids=["no gzip", "cut off", "changed"],
)
def test_damaged_files_are_named(folder, data):
    """A file that is not a gzip file, or breaks off, or is damaged inside, is named."""
    (folder / "d.jsonl.gz").write_bytes(data)

    with pytest.raises(BatchError, match=r"^d\.jsonl\.gz: "):
        told("d.jsonl.gz")


def test_a_missing_library_is_named():
    """What is needed is said with the command that installs it."""
    with pytest.raises(BatchError, match=r"^a\.parquet: this needs pyarrow: pip install 'unrender\[batch\]'$"):
        arrow("no_such_module", "a.parquet")
