"""Runs the gateway on a socket, and finishes running answers before it exits.

After SIGTERM or SIGINT, uvicorn accepts no new connections. The process exits when all answers are finished, or after `shutdown_timeout`
seconds. A second SIGINT stops the process immediately.
"""

from __future__ import annotations

import gc
import socket
from typing import Any

import uvicorn

from unrender.gateway.failure import invalid
from unrender.gateway.http.door import Door
from unrender.web.sockets import listening_socket

_COLLECT = (10_000, 20, 20)
"""Garbage collection thresholds. They are high because a collection pauses all streams, and requests leave no reference cycles."""


class Server(uvicorn.Server):
    """Uvicorn server with its own garbage collection settings."""

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal stops the server."""
        # Exclude modules and templates from garbage collection, since they are never freed. Otherwise, each full collection would pause all
        # streams for 0.1 s.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_COLLECT)
        super().run(sockets)


def listener(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises `Failure` if listening fails."""
    try:
        return listening_socket(host, port)
    except OSError as error:
        raise invalid(f"{host}:{port}: {error.strerror}; is another server running there?") from error


def server(application: Any, *, host: str = "127.0.0.1", port: int = 8000, shutdown_timeout: float = 30.0) -> Server:
    """Return a server for an application made by `app`. `run()` serves until a signal stops it."""
    return Server(
        uvicorn.Config(
            application,
            host=host,
            port=port,
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            http=Door,
            ws="none",
            timeout_graceful_shutdown=shutdown_timeout,  # type: ignore[arg-type]  # asyncio accepts a float
        )
    )
