"""Tests of output files, which are written completely or not at all."""

from __future__ import annotations

import errno
import os
import resource
from contextlib import contextmanager
from pathlib import Path

import pytest

from unrender.cli.inputs import BadInput, write_text

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

    with full_disk(), pytest.raises(BadInput, match=f"a.txt: {os.strerror(errno.EFBIG)}"):
        write_text("a.txt", "x" * 200)

    assert Path("a.txt").read_bytes() == b"old"
    assert list(Path().iterdir()) == [Path("a.txt")]


def test_a_file_keeps_its_rights_and_a_link_its_end():
    """The target of a link is replaced, but not the link. Permissions are kept, and a new file has the default ones."""
    Path("a.txt").write_bytes(b"old")
    Path("a.txt").chmod(0o640)
    Path("link").symlink_to("a.txt")
    Path("usual").touch()

    write_text("link", "new")
    write_text("b.txt", "new")

    assert Path("link").is_symlink()
    assert Path("a.txt").read_bytes() == b"new"
    assert Path("a.txt").stat().st_mode & 0o777 == 0o640
    assert Path("b.txt").stat().st_mode == Path("usual").stat().st_mode


def test_what_is_no_regular_file_is_not_replaced():
    """Devices and pipes are written to directly, and aren't replaced."""
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)

    write_text("pipe", "new")
    write_text(os.devnull, "new")

    assert os.read(reader, 9) == b"new"
    os.close(reader)
    assert Path("pipe").is_fifo()
    assert Path(os.devnull).is_char_device()


@pytest.mark.parametrize("path", ["none/a.txt", "folder"])
def test_errors_name_the_file(path):
    """If the folder is missing, or the path is a folder, the error contains the path."""
    Path("folder").mkdir()

    with pytest.raises(BadInput, match=path):
        write_text(path, "")
