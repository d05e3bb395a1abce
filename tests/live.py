"""A gateway on a socket, and raw client bytes, for tests that need a real network."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from serving import HELLO, Told, served
from starlette.applications import Starlette

from unrender.gateway.backends import Backend
from unrender.gateway.backends.connection import Connection
from unrender.gateway.backends.llama_server import LlamaServer
from unrender.gateway.serve import Server, listener, server

ASKED: Mapping[str, Mapping[str, Any]] = {
    "/v1/chat/completions": {"messages": HELLO},
    "/v1/responses": {"input": "Hello"},
    "/v1/messages": {"messages": HELLO, "max_tokens": 1000},
}
"""The paths of the three APIs, with a request body for each."""


class Live:
    """A listening gateway."""

    def __init__(self, application: Starlette, running: Server, port: int) -> None:
        self.application = application
        self.server = running
        self.port = port

    async def send(self, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Send bytes over a new connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        return reader, writer

    async def answer(self, data: bytes, *, within: float = 20.0) -> bytes:
        """Send bytes and return the complete response."""
        reader, writer = await self.send(data)
        try:
            return await asyncio.wait_for(reader.read(), within)
        finally:
            writer.close()

    async def ask(self, path: str, *, headers: str = "", **more: Any) -> tuple[int, bytes]:
        """Send a request and return the status and the body. A streamed body includes its chunk sizes."""
        answer = await self.answer(request(path, headers=headers, **more))
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), body


def request(path: str, *, headers: str = "", host: str = "localhost", **more: Any) -> bytes:
    """Return the bytes of a request to one of the three APIs."""
    body = json.dumps({**ASKED[path], **more}).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{headers}content-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def heard(*sent: bytes, **settings: Any) -> tuple[list[bytes], int]:
    """Return the answers to bytes, each sent over its own connection, and the number of the engine's jobs. `PORT` is the gateway's port."""
    engine = Told("Hi")

    async def run() -> list[bytes]:
        async with listening(engine, **settings) as gateway:
            port = str(gateway.port).encode()
            return await asyncio.gather(*(gateway.answer(data.replace(b"PORT", port)) for data in sent))

    return asyncio.run(run()), len(engine.jobs)


@asynccontextmanager
async def listening(
    engine: Backend | str, *, idle_timeout: float = 5.0, shutdown_timeout: float = 1.0, **settings: Any
) -> AsyncGenerator[Live, None]:
    """Run a gateway in front of an engine, or of the llama-server at this address. On exit, check for leftovers."""
    tasks, sockets = asyncio.all_tasks(), open_sockets()
    backend = LlamaServer(Connection(engine, idle_timeout=idle_timeout)) if isinstance(engine, str) else engine
    application = served(backend, **settings)
    running = server(application, shutdown_timeout=shutdown_timeout)
    listens = listener("127.0.0.1", 0)
    serving = asyncio.create_task(running.serve([listens]))
    await settled(lambda: running.started, within=20.0)
    yield Live(application, running, int(listens.getsockname()[1]))
    running.should_exit = True
    await serving
    await asyncio.sleep(0)
    assert application.state.gateway.streams == 0
    await settled(lambda: asyncio.all_tasks() - tasks == set() and open_sockets() <= sockets)


async def settled(holds: Any, within: float = 10.0) -> None:
    """Wait until a condition holds; fail if it takes too long."""
    for _ in range(int(within / 0.01)):
        if holds():
            return
        await asyncio.sleep(0.01)
    assert holds(), (asyncio.all_tasks(), open_sockets())


def open_sockets() -> set[str]:
    """Return the sockets that this process holds, including the pairs that event loops use to wake themselves."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = str(entry.readlink())
        except FileNotFoundError:
            continue
        if target.startswith("socket:"):
            found.add(target)
    return found


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
