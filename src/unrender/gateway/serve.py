"""Runs the gateway on a socket, and finishes running answers before it exits.

After SIGTERM or SIGINT, uvicorn accepts no new connections. The process exits when all answers are finished, or after `shutdown_timeout`
seconds. A second SIGINT stops the process immediately.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from unrender.gateway.failure import invalid
from unrender.gateway.http.descriptors import free_descriptors, raise_limit
from unrender.gateway.http.door import Door
from unrender.web.sockets import listening_socket

_log = logging.getLogger("unrender.gateway")
_QUIET = 10.0
"""Minimum time between two log lines about waiting clients, in seconds."""
_PAUSE = 1.0
"""Time until the next attempt to accept a connection if the system has no descriptor left, in seconds."""
_COLLECT = (10_000, 20, 20)
"""Garbage collection thresholds. They are high because a collection pauses all streams, and requests leave no reference cycles."""


class Server(uvicorn.Server):
    """Uvicorn server that accepts no more connections than the process's file descriptors allow. Further clients wait.

    It has its own garbage collection settings.
    """

    _accepting: asyncio.Task[None] | None = None

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve the clients of one listening socket until a signal stops the server."""
        # Exclude modules and templates from garbage collection, since they are never freed. Otherwise, each full collection would pause all
        # streams for 0.1 s.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_COLLECT)
        raise_limit()
        super().run(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Treat SIGHUP, which a closed terminal sends, like SIGTERM, unless the process ignores it."""
        hang_up = getattr(signal, "SIGHUP", None)
        with super().capture_signals():
            if hang_up is None or threading.current_thread() is not threading.main_thread():
                yield
                return
            before = signal.getsignal(hang_up)
            if before is not signal.SIG_IGN:
                signal.signal(hang_up, lambda *_: self.handle_exit(signal.SIGTERM, None))
            try:
                yield
            finally:
                signal.signal(hang_up, before)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, and accept connections."""
        assert sockets is not None
        await super().startup([])
        (listening,) = sockets
        listening.setblocking(False)
        self._accepting = asyncio.create_task(self._accept(listening))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections, and finish running answers."""
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.wait([self._accepting])
        await super().shutdown(sockets)

    async def _accept(self, listening: socket.socket) -> None:
        # asyncio's own servers accept until no descriptor is left. Then they log an error for each waiting client, in a loop.
        loop, most = asyncio.get_running_loop(), free_descriptors().clients
        room = asyncio.Semaphore(most)
        told = -_QUIET

        def door() -> Door:
            made = Door(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)
            made.room = room
            return made

        while True:
            if room.locked() and time.monotonic() - told >= _QUIET:
                told = time.monotonic()
                _log.warning("%d connections are open, as many as the limit of open files allows; others wait", most)
            await room.acquire()
            try:
                accepted, _ = await loop.sock_accept(listening)
            except OSError as error:  # the client has gone, or the whole system has no descriptor left
                room.release()
                if error.errno != errno.ECONNABORTED:
                    _log.warning("no connection can be accepted: %s", error.strerror)
                    await asyncio.sleep(_PAUSE)
                continue
            await loop.connect_accepted_socket(door, accepted)


def listener(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises `Failure` if listening fails."""
    try:
        return listening_socket(host, port)
    except OSError as error:
        raise invalid(f"{host}:{port}: {error.strerror}; is another server running there?") from error


def server(application: Any, *, shutdown_timeout: float = 30.0) -> Server:
    """Return a server for an application made by `app`. `run([listener(host, port)])` serves until a signal stops it."""
    return Server(
        uvicorn.Config(
            application,
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            http=Door,
            ws="none",
            timeout_graceful_shutdown=shutdown_timeout,  # type: ignore[arg-type]  # asyncio accepts a float
        )
    )
