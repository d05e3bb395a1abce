"""Files that are written whole or not at all, and names that are one file."""

from __future__ import annotations

import errno
import os
import resource
from contextlib import contextmanager
from pathlib import Path

import pytest

from unrender.cli.outputs import is_replaceable, write_whole

SOURCE = Path(__file__).resolve().parents[3] / "src"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in a folder of its own."""
    monkeypatch.chdir(tmp_path)


@contextmanager
def full_disk():
    """Let no file grow beyond 100 bytes; no longer than needed, since pytest may print into a file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_failure_leaves_what_was_there():
    """If the disk is full, the old file is whole, nothing lies beside it, and the error names the file."""
    Path("a.txt").write_bytes(b"old")

    with full_disk(), pytest.raises(OSError, match="a.txt") as told:
        write_whole("a.txt", b"x" * 200)

    assert (told.value.errno, told.value.filename) == (errno.EFBIG, "a.txt")
    assert Path("a.txt").read_bytes() == b"old"
    assert list(Path().iterdir()) == [Path("a.txt")]


def test_a_file_keeps_its_rights_and_a_link_its_end():
    """A link's target is replaced, not the link; rights stay, and a new file has the usual ones."""
    Path("a.txt").write_bytes(b"old")
    Path("a.txt").chmod(0o640)
    Path("link").symlink_to("a.txt")
    Path("usual").touch()

    write_whole("link", b"new")
    write_whole("b.txt", b"new")

    assert Path("link").is_symlink()
    assert Path("a.txt").read_bytes() == b"new"
    assert Path("a.txt").stat().st_mode & 0o777 == 0o640
    assert Path("b.txt").stat().st_mode == Path("usual").stat().st_mode


def test_what_is_no_regular_file_is_not_replaced():
    """A device and a pipe are written, and stay what they are."""
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)

    write_whole("pipe", b"new")
    write_whole(os.devnull, b"new")

    assert os.read(reader, 9) == b"new"
    os.close(reader)
    assert not is_replaceable(os.devnull)
    assert not is_replaceable("pipe")
    assert is_replaceable("none")


@pytest.mark.parametrize("path", ["none/a.txt", "folder"])
def test_errors_name_the_file(path):
    """A missing folder, and a folder in the place of the file, are told by the name that was given."""
    Path("folder").mkdir()

    with pytest.raises(OSError, match=path):
        write_whole(path, b"")
