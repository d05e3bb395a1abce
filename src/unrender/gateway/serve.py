"""Runs the gateway on a socket, and finishes running answers before it ends.

Rules: at the first SIGTERM or SIGINT no new request is taken and `/ready` says so; the process ends when all answers are out,
or after `shutdown_timeout` seconds. A second signal ends it at once.
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
"""Connections that may wait to be taken."""
_COLLECT = (10_000, 20, 20)
"""Thresholds of the garbage collector: high, since it stops all streams, and requests leave no reference cycles."""
_LAST = 1
"""Seconds that answers are given to break off, when time is up."""


class Server(uvicorn.Server):
    """Uvicorn's server; it also finishes running answers before it ends."""

    def __init__(self, config: uvicorn.Config, gateway: Gateway, shutdown_timeout: float) -> None:
        super().__init__(config)
        self._gateway = gateway
        self._timeout = shutdown_timeout
        self._until = 0.0
        self._alone = False
        """This process does nothing else."""

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal ends it."""
        self._alone = True
        super().run(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        if self._alone:
            # Modules, formats and templates stay for good. Looked through again and again, they would stop all streams for 0.1 s.
            gc.collect()
            gc.freeze()
            gc.set_threshold(*_COLLECT)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to drain at the first signal; end at once at the second."""
        # Uvicorn would stop listening at once; balancers need `/ready` to say no for a moment, and streams to end.
        if self._gateway.draining:
            super().handle_exit(sig, frame)
        self._gateway.draining = True
        self._until = time.monotonic() + self._timeout

    async def on_tick(self, counter: int) -> bool:
        """Return whether to end, ten times a second."""
        if self._gateway.draining and (not self._gateway.streams or time.monotonic() >= self._until):
            self.should_exit = True
        return await super().on_tick(counter)


def listeners(host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen at an address, one for each of its families. Raises `Failure` where that cannot be."""
    found: list[socket.socket] = []
    try:
        known = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        # "localhost" is two addresses on most machines, and clients try one or the other first.
        for family, address in dict.fromkeys((family, address) for family, _, _, _, address in known):
            found.append(socket.create_server(address, family=family, backlog=_BACKLOG))
    except OSError as error:
        for one in found:
            one.close()
        raise invalid(f"{host}:{port}: {error.strerror}; is another server running there?") from error
    return found


def server(application: Any, *, host: str = "127.0.0.1", port: int = 8000, shutdown_timeout: float = 30.0) -> Server:
    """Return a server for an application made by `app`; `run()` serves until a signal ends it."""
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
