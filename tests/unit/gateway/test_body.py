"""Bodies that are JSON in one reading only."""

from __future__ import annotations

import asyncio

import pytest

from unrender.gateway.body import Gone, read_json
from unrender.gateway.failure import Failure


def read(*parts, most=1000):
    messages = [{"type": "http.request", "body": part, "more_body": part is not parts[-1]} for part in parts]

    async def receive():
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    return asyncio.run(read_json(receive, most, 5.0))


def test_json_is_read():
    """A body may come in parts, cut anywhere."""
    assert read(b'{"a": "\xc3', b'\xa9"}') == {"a": "é"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b'{"a": 1, "a": 2}',
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b'{"a": -1e999}',
        b'{"a": Infinity}',
        b"[" * 900,
        b"[" * 600 + b"]" * 600,
        b'{"a": ' + b"1" * 5000 + b"}",
        b'"\xed\xa0\x80"',
    ],
)
def test_what_is_not_json_is_refused(body):
    """Whatever is not JSON, or could be read in two ways, is a 400 that says why."""
    with pytest.raises(Failure, match=r"body.*: expected") as caught:
        read(body, most=10_000)

    assert caught.value.status == 400


def test_large_body_is_refused_early():
    """More bytes than allowed are refused before all of them are there."""
    with pytest.raises(Failure, match="at most 10 bytes") as caught:
        read(b"12345678", b"12345678", b"never read", most=10)

    assert caught.value.status == 413


def test_slow_body_is_refused():
    """A body that comes a byte at a time has no more time than any other."""

    async def receive():
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b" ", "more_body": True}

    with pytest.raises(Failure, match=r"within 0\.2 seconds") as caught:
        asyncio.run(read_json(receive, 1000, 0.2))

    assert caught.value.status == 408


def test_half_a_body_is_nobody():
    """A client that goes away before its body is whole gets no answer."""

    async def receive():
        return {"type": "http.disconnect"}

    with pytest.raises(Gone):
        asyncio.run(read_json(receive, 10, 5.0))
