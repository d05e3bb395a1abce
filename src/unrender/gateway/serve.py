"""Runs the gateway on a socket, and finishes running answers before it exits.

Rules: after the first SIGTERM or SIGINT, new requests are rejected and `/ready` returns 503. The process exits when all answers are
finished, or after `shutdown_timeout` seconds. A second signal stops the process immediately.
"""

from __future__ import annotations

import gc
import logging
import socket
import time
from types import FrameType
from typing import Any

import uvicorn

from unrender.gateway.failure import invalid
from unrender.gateway.gateway import Gateway
from unrender.gateway.http.door import Door

_log = logging.getLogger("unrender.gateway")

_BACKLOG = 2048
"""Maximum number of connections waiting to be accepted."""
_COLLECT = (10_000, 20, 20)
"""Garbage collection thresholds. They are high because a collection pauses all streams, and requests leave no reference cycles."""
_LAST = 1
"""Seconds for cancelling the remaining answers after the shutdown timeout."""


class Server(uvicorn.Server):
    """Uvicorn server that finishes running answers before it exits."""

    def __init__(self, config: uvicorn.Config, gateway: Gateway, shutdown_timeout: float) -> None:
        super().__init__(config)
        self._gateway = gateway
        self._timeout = shutdown_timeout
        self._until = 0.0
        self._alone = False
        """True if the process runs only this server."""

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal stops the server."""
        self._alone = True
        super().run(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening and tune garbage collection."""
        await super().startup(sockets)
        if self._alone:
            # Modules, formats and templates are never freed. Without freezing, each full collection would pause all streams for 0.1 s.
            gc.collect()
            gc.freeze()
            gc.set_threshold(*_COLLECT)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start draining on the first signal, and exit immediately on the second."""
        # Uvicorn would stop listening immediately. Load balancers first need a 503 from `/ready`, and streams need time to finish.
        if self._gateway.draining:
            super().handle_exit(sig, frame)
        self._gateway.draining = True
        self._until = time.monotonic() + self._timeout

    async def on_tick(self, counter: int) -> bool:
        """Return True if the server should exit. Called ten times a second."""
        if self._gateway.draining and (not self._gateway.streams or time.monotonic() >= self._until):
            self.should_exit = True
        return await super().on_tick(counter)


def listeners(host: str, port: int) -> list[socket.socket]:
    """Return listening sockets for an address, one for each address family. Raises `Failure` if listening fails."""
    found: list[socket.socket] = []
    try:
        known = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        # "localhost" has two addresses on most machines, and clients may try either one first.
        for family, address in dict.fromkeys((family, address) for family, _, _, _, address in known):
            found.append(socket.create_server(address, family=family, backlog=_BACKLOG))
    except OSError as error:
        for one in found:
            one.close()
        raise invalid(f"{host}:{port}: {error.strerror}; is another server running there?") from error
    return found


def server(application: Any, *, host: str = "127.0.0.1", port: int = 8000, shutdown_timeout: float = 30.0) -> Server:
    """Return a server for an application made by `app`. `run()` serves until a signal stops it."""
    config = uvicorn.Config(
        application,
        host=host,
        port=port,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        http=Door,
        ws="none",
        timeout_graceful_shutdown=_LAST,
    )
    return Server(config, application.state.gateway, shutdown_timeout)
