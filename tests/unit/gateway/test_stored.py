"""Tests of stored answers: references, access, and expiry."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from serving import Told, asked, posted, served
from starlette.testclient import TestClient

from unrender.gateway.gateway import GatewayLimits

ROOM = GatewayLimits(store_bytes=100_000)


def stored_as(application, **request):
    """Return the response to a request."""
    return posted(application, "/v1/responses", json=request)


def bytes_in(place):
    """Return the size of all answers in an SQLite file in bytes, and their number."""
    with closing(sqlite3.connect(place)) as database:
        return database.execute(
            "SELECT COALESCE(SUM(LENGTH(given) + LENGTH(response)), 0), COUNT(*) FROM answers"
        ).fetchone()


def stored(place, most, *texts):
    """Return the ids of stored answers with these texts, and the gateway that stores them in a file."""
    engine = Told("")
    application = served(engine, limits=GatewayLimits(store_bytes=most), store=str(place))

    def id_of(text):
        engine.said = [text]
        return stored_as(application, input="Hello").json()["id"]

    return [id_of(text) for text in texts], application


def status(application, id, **how):
    """Return the status of a request for a stored answer."""
    return asked(application, "GET", f"/v1/responses/{id}", **how).status_code


def test_store_is_bounded(tmp_path):
    """The oldest answers are removed for new ones. An answer above the limit isn't stored. A lower limit applies at the next start."""
    place = tmp_path / "answers.db"

    ids, application = stored(place, 20_000, *["x" * 100] * 30, "x" * 20_000)

    size, count = bytes_in(place)
    assert 10_000 < size <= 20_000
    assert count < 30
    assert [status(application, id) for id in (ids[0], ids[-2], ids[-1])] == [404, 200, 404]
    assert place.stat().st_mode & 0o077 == 0

    with TestClient(served(Told(""), limits=GatewayLimits(store_bytes=5_000), store=str(place))):
        assert bytes_in(place)[0] <= 5_000


def test_answers_expire(tmp_path, monkeypatch):
    """An expired answer isn't found, and is removed when the next one is stored."""
    (old,), application = stored(tmp_path / "answers.db", 100_000, "Hi")
    assert status(application, old) == 200

    later = time.time() + 31 * 24 * 3600
    monkeypatch.setattr("time.time", lambda: later)

    assert status(application, old) == 404
    stored(tmp_path / "answers.db", 100_000, "Ho")
    assert bytes_in(tmp_path / "answers.db")[1] == 1


WRITER = """
import sys
from test_stored import stored
stored(sys.argv[1], 20_000, *["x" * 100] * 20)
"""


@pytest.mark.slow
def test_processes_share_a_file(tmp_path):
    """Two processes can store answers in the same file at once, within one limit."""
    place = tmp_path / "answers.db"
    path = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])}

    writers = [subprocess.Popen([sys.executable, "-c", WRITER, place], env=path) for _ in "ab"]

    assert [writer.wait(300) for writer in writers] == [0, 0]
    assert 8_000 < bytes_in(place)[0] <= 20_000
    assert status(stored(place, 20_000)[1], newest(place)) == 200


def newest(place):
    """Return the id of the newest answer in a file."""
    with closing(sqlite3.connect(place)) as database:
        return database.execute("SELECT id FROM answers ORDER BY kept DESC").fetchone()[0]
