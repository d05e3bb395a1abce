"""Tests of output files, which are written completely or not at all."""

from __future__ import annotations

import errno
import os
import resource
from contextlib import contextmanager
from pathlib import Path

import pytest

from unrender.cli.inputs import is_replaceable, write_whole

SOURCE = Path(__file__).resolve().parents[3] / "src"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Change to an empty folder."""
    monkeypatch.chdir(tmp_path)


@contextmanager
def full_disk():
    """Limit files to 100 bytes. The limit is lifted soon, because pytest may print into a file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_failure_leaves_what_was_there():
    """If the disk is full, the old file is unchanged, no other file is left, and the error names the file."""
    Path("a.txt").write_bytes(b"old")

    with full_disk(), pytest.raises(OSError, match="a.txt") as told:
        write_whole("a.txt", b"x" * 200)

    assert (told.value.errno, told.value.filename) == (errno.EFBIG, "a.txt")
    assert Path("a.txt").read_bytes() == b"old"
    assert list(Path().iterdir()) == [Path("a.txt")]


def test_a_file_keeps_its_rights_and_a_link_its_end():
    """The target of a link is replaced, but not the link. Permissions are kept, and a new file has the default ones."""
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
    """Devices and pipes are written to directly, and aren't replaced."""
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
    """If the folder is missing, or the path is a folder, the error contains the path."""
    Path("folder").mkdir()

    with pytest.raises(OSError, match=path):
        write_whole(path, b"")
