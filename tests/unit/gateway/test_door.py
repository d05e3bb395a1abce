"""Tests of access: keys are checked before bodies, bodies have limits, and each key opens only its own models."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from live import heard, listening
from serving import Told, served

from unrender.gateway.gateway import GatewayLimits, Keys

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
