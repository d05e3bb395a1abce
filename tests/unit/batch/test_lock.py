"""One process writes an output; a lock that nobody holds any more keeps nobody away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from unrender.batch import BatchError
from unrender.outputs import locked

SOURCE = Path(__file__).resolve().parents[3] / "src"
HOLD = """
from pathlib import Path
from unrender.outputs import locked
with locked(Path("out.jsonl").absolute()):
    print("held", flush=True)
    input()
"""


@pytest.fixture
def out(tmp_path, monkeypatch):
    """Return an output in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return Path("out.jsonl").absolute()


@contextmanager
def held():
    """Hold the lock in another process."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield holder
        holder.kill()


def test_a_second_process_is_refused(out):
    """Who holds the lock is named, and nothing is changed by the one who came late."""
    with held() as holder:
        told = rf"out.jsonl: another process \({holder.pid}\) is writing this file; wait for it"
        for _ in range(2):
            with pytest.raises(BatchError, match=told), locked(out):
                pass
        holder.communicate(b"\n")
    assert list(Path().iterdir()) == []


def test_a_lock_ends_with_its_process(out):
    """What a killed process leaves is no lock: the next one takes it over, and leaves nothing."""
    with held() as holder:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert list(Path().iterdir()) == [Path("out.jsonl.lock")]

    with locked(out):
        assert Path("out.jsonl.lock").read_text(encoding="ascii") == f"{os.getpid()}\n"
    assert list(Path().iterdir()) == []


def test_one_process_has_it_once(out):
    """Not even the same process writes an output twice at a time."""
    with locked(out), pytest.raises(BatchError, match="another process"), locked(out):
        pass


def test_a_link_in_its_place_is_not_followed(out):
    """A lock that is a link to another file is refused, and that file stays as it is."""
    Path("mine").write_text("mine", encoding="ascii")
    Path("out.jsonl.lock").symlink_to("mine")

    with pytest.raises(BatchError, match="out.jsonl"), locked(out):
        pass
    assert Path("mine").read_text(encoding="ascii") == "mine"
