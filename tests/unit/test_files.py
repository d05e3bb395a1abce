"""The user's folders, and safe reading of files in untrusted folders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cases import cases

from unrender.format.declared import named_path, read_regular, user_folder


def test_a_named_path_is_absolute(tmp_path, monkeypatch):
    """`~` is the home folder, and relative paths start at the working directory. An unknown home has no path."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    assert named_path("~/a") == tmp_path / "a"
    assert named_path("b/c") == tmp_path / "b" / "c"
    assert named_path("/d") == Path("/d")
    assert named_path("~nobody-has-this-name/a") is None


@cases
def test_a_users_folder_is_where_xdg_says(monkeypatch, value, found):
    """Without a value, or with a relative one, which the XDG specification forbids, the folder is in the home."""
    monkeypatch.setenv("HOME", "/home/of/u")
    monkeypatch.setenv("XDG_SOMETHING", value)

    assert user_folder("XDG_SOMETHING", ".usual") == Path(found)


def test_a_regular_file_is_read(tmp_path):
    """A file is read as bytes, also through a link, up to the maximum size."""
    (tmp_path / "file").write_bytes(b"four")
    (tmp_path / "link").symlink_to(tmp_path / "file")

    assert read_regular(tmp_path / "file", most=4) == read_regular(tmp_path / "link", most=4) == b"four"
    with pytest.raises(OSError, match="expected at most 3 bytes, found 4"):
        read_regular(tmp_path / "file", most=3)


def test_nothing_else_is_read(tmp_path):
    """Reading a pipe would block, and reading a device might never end."""
    os.mkfifo(tmp_path / "pipe")

    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero"), tmp_path / "nothing"):
        with pytest.raises(OSError, match="expected a regular file|No such file"):
            read_regular(path, most=10)


def test_a_file_that_seems_empty_and_is_not_is_refused():
    """Some systems show endless files as empty regular files."""
    with pytest.raises(OSError, match="but the file is growing"):
        read_regular(Path("/proc/self/maps"), most=10)
