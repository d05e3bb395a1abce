"""Tests of operating a gateway: metrics, and mounting it in other applications."""

from __future__ import annotations

import asyncio
import socket

import live
import pytest
from fastapi import FastAPI
from live import ASKED, listening, settled
from serving import Told, counts, posted, served

CHAT = "/v1/chat/completions"


@pytest.mark.slow
def test_cancellations_are_counted():
    """A request counts as cancelled if its client leaves or the gateway shuts down."""

    async def run():
        async with listening(Told(["Hi", 60.0]), shutdown_timeout=0.1) as gateway:
            _, writer = await gateway.send(live.request(CHAT, stream=True))
            await settled(lambda: gateway.application.state.gateway.streams == 1)
            writer.transport.abort()
            await settled(lambda: gateway.application.state.gateway.streams == 0)
            beside = asyncio.create_task(gateway.ask(CHAT))
            await settled(lambda: gateway.application.state.gateway.streams == 1)
            gateway.server.should_exit = True
            await asyncio.gather(beside, return_exceptions=True)
            return counts(gateway.application, "requests", "outcome")

    assert asyncio.run(run()) == {"cancelled": 2}


def test_mounts_into_fastapi():
    """All three APIs work under a path of a FastAPI application, and errors keep their form."""
    outer = FastAPI()
    outer.mount("/llm", served(Told("Hi")))
    answers = [posted(outer, f"/llm{path}", json=body) for path, body in ASKED.items()]
    refused = posted(outer, "/llm/v1/messages/count_tokens", content=b"{")

    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert refused.json()["type"] == "error"


@pytest.mark.slow
def test_responses_do_not_wait_for_acknowledgements():
    """A connection that the gateway has accepted has `TCP_NODELAY`."""

    async def run():
        async with listening(Told("Hi")) as gateway:
            _, writer = await gateway.send(b"")
            await settled(lambda: gateway.server.server_state.connections)
            (connection,) = gateway.server.server_state.connections
            option = connection.transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            writer.close()
            return option

    assert asyncio.run(run()) == 1
