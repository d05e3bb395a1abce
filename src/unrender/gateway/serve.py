"""The gateway on a socket: a server that, told to end, finishes the answers on their way first.

Rules: at the first SIGTERM or SIGINT no new request is taken and `/ready` says so; the process ends when all answers are out,
or after `drain` seconds. A second signal ends it at once.
"""

from __future__ import annotations

import time
from types import FrameType
from typing import Any

import uvicorn

from unrender.gateway.gateway import Gateway

_LAST = 1
"""Seconds that answers are given to break off, when time is up."""


class Server(uvicorn.Server):
    """Uvicorn's server, which drains."""

    def __init__(self, config: uvicorn.Config, gateway: Gateway, drain: float) -> None:
        super().__init__(config)
        self._gateway = gateway
        self._drain = drain
        self._until = 0.0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to drain; asked again, end."""
        if self._gateway.draining:
            super().handle_exit(sig, frame)
        self._gateway.draining = True
        self._until = time.monotonic() + self._drain

    async def on_tick(self, counter: int) -> bool:
        """Return whether to end, ten times a second."""
        if self._gateway.draining and (not self._gateway.streams or time.monotonic() >= self._until):
            self.should_exit = True
        return await super().on_tick(counter)


def server(application: Any, *, host: str = "127.0.0.1", port: int = 8000, drain: float = 30.0) -> Server:
    """Return a server for what `app` has made; `run()` serves until a signal ends it."""
    config = uvicorn.Config(
        application,
        host=host,
        port=port,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_LAST,
    )
    return Server(config, application.state.gateway, drain)
