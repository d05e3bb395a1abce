"""Tests of bytes on a connection: rows of `corpus/gateway/wire.jsonl`, any chunking, incomplete heads, and access.

Keys are checked before bodies, and bodies have limits.

A row has requests, each `sent` over its own connection: raw text, or arguments of `live.request`. `LONG` is as long as a head may be, and `MOST`
a little shorter. `statuses` are those of each connection. `heads` and `bodies` are patterns of all heads and bodies.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Mapping
from typing import Any

import pytest
from live import ASKED, heard, listening, request
from serving import Told, corpus, gateway_settings, served

from unrender.gateway.gateway import GatewayLimits, Keys
from unrender.gateway.serve import HEAD_BYTES

CHAT = "/v1/chat/completions"
HEAD = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\n"
BODY = json.dumps(ASKED[CHAT]).encode()


def bytes_of(sent: str | Mapping[str, Any]) -> bytes:
    """Return the bytes of a request."""
    data = sent.encode("latin-1") if isinstance(sent, str) else request(**{"path": CHAT, **sent})
    return data.replace(b"LONG", b"a" * HEAD_BYTES).replace(b"MOST", b"a" * (HEAD_BYTES - 1000))


@pytest.mark.slow
@pytest.mark.parametrize("row", corpus("wire"), ids=lambda row: row["says"])
def test_bytes_are_answered(row, caplog):
    """Each connection gets the answers of its row, and bytes that aren't a request never cause a traceback."""
    answers, jobs = heard(*map(bytes_of, row["sent"]), **gateway_settings(row))

    assert [re.findall(r"HTTP/1\.1 (\d+)", answer.decode()) for answer in answers] == row["statuses"]
    assert jobs == row.get("jobs", jobs)
    for answer in answers:
        head, _, body = answer.decode().partition("\r\n\r\n")
        assert re.fullmatch(row.get("heads", "(?s).*"), head)
        assert re.fullmatch(row.get("bodies", "(?s).*"), body)
    assert "Traceback" not in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 0.01])
def test_request_may_come_in_pieces(seconds):
    """A body in chunks and a head that arrives byte by byte are accepted."""
    chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
    data = f"{HEAD}transfer-encoding: chunked\r\nconnection: close\r\n\r\n".encode() + chunks

    async def run():
        engine = Told("Hi")
        async with listening(engine) as gateway:
            reader, writer = await gateway.send(b"")
            for at in range(len(data)):
                writer.write(data[at : at + 1])
                if at % 7 == 0:
                    await asyncio.sleep(seconds)
            answer = await asyncio.wait_for(reader.read(), 10)
            writer.close()
            return answer, len(engine.jobs)

    answer, jobs = asyncio.run(run())

    assert (answer[:12], jobs) == (b"HTTP/1.1 200", 1)


@pytest.mark.slow
def test_half_a_head_is_not_waited_for(monkeypatch):
    """A connection is closed if a head doesn't arrive in time, for the first request or a later one."""
    monkeypatch.setattr("unrender.gateway.serve.HEAD_SECONDS", 0.3)
    whole = f"{HEAD}content-length: {len(BODY)}\r\n\r\n".encode() + BODY

    late, silent, after = heard(HEAD.encode(), b"", whole + HEAD.encode())[0]

    assert (late, silent) == (b"", b"")
    assert (after[:12], after.count(b"HTTP/1.1")) == (b"HTTP/1.1 200", 1)


KEYS = Keys(models={"good": frozenset({"m"})})
OPEN = {"/", "/health", "/ready", "/metrics"}
"""Paths that need no key."""
GOOD = "authorization: Bearer good\r\n"


def routes():
    """Return the method and path of every route, with its parameters filled in."""
    listed: Any = served(Told("Hi")).routes
    return [
        (method, route.path.replace("{id}", "x").replace("{name:path}", "m"))
        for route in listed
        for method in sorted(route.methods - {"HEAD"})
    ]


POSTED = [path for method, path in routes() if method == "POST"]


def head(method, path, more="", length=1_000_000):
    """Return the head of a request, without its body."""
    return f"{method} {path} HTTP/1.1\r\nhost: localhost\r\n{more}content-length: {length}\r\n\r\n".encode()


@pytest.mark.slow
def test_keys_come_before_bodies_on_every_path():
    """Without a key, every path except the open ones returns 401 before it reads the body."""
    wrong = ("expect: 100-continue\r\n", "authorization: Bearer wrong\r\n")
    listed = [(method, path, more) for method, path in routes() for more in wrong]

    found, _ = heard(*(head(*one) for one in listed), keys=KEYS)

    for (method, path, _), answer in zip(listed, found, strict=True):
        assert (answer[:12] == b"HTTP/1.1 401") == (path not in OPEN), (method, path, answer)
        assert b"100 Continue" not in answer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "begun", "status"),
    [(GatewayLimits(upload_timeout=0.3), b"{", b"408"), (GatewayLimits(max_body_bytes=1000), b" " * 2000, b"413")],
)
def test_no_path_waits_for_a_body_without_bounds(limits, begun, status):
    """A body that arrives too slowly or is too large is an error in its API's form on every path."""
    found, _ = heard(*(head("POST", path, GOOD) + begun for path in POSTED), keys=KEYS, limits=limits)

    assert len(POSTED) >= 5
    for path, answer in zip(POSTED, found, strict=True):
        assert answer[9:12] == status, (path, answer)
        body = json.loads(answer.partition(b"\r\n\r\n")[2])
        assert ("type" in body) == ("messages" in path)


@pytest.mark.slow
def test_client_that_sends_on_can_read_its_refusal():
    """A client that sends its whole body before it reads gets the 401."""

    async def run():
        async with listening(Told("Hi"), keys=KEYS) as gateway:
            reader, writer = await gateway.send(head("POST", "/v1/chat/completions", length=20_000_000))
            for _ in range(200):
                writer.write(b" " * 100_000)
                await writer.drain()
            answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 8)
            writer.close()
            return answer

    assert asyncio.run(run())[:12] == b"HTTP/1.1 401"


@pytest.mark.slow
@pytest.mark.parametrize("path", POSTED)
def test_client_that_goes_in_mid_body_leaves_no_traceback(path, caplog):
    """A client that leaves before its body is complete isn't an error."""

    async def run():
        async with listening(Told("Hi")) as gateway:
            _, writer = await gateway.send(head("POST", path) + b'{"messages"')
            await asyncio.sleep(0.1)
            writer.transport.abort()
            await asyncio.sleep(0.2)
            return await gateway.ask("/v1/chat/completions")

    with caplog.at_level(logging.INFO):
        assert asyncio.run(run())[0] == 200
    assert "Traceback" not in caplog.text
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
