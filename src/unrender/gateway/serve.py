"""Runs the gateway on a socket, and finishes running answers before it exits.

After SIGTERM or SIGINT, uvicorn accepts no new connections. The process exits when all answers are finished, or after `shutdown_timeout`
seconds. A second SIGINT stops the process immediately.

h11 parses the requests. `Door` closes a connection if the client doesn't send a complete head in time, and writes streamed chunks without
h11's overhead.
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
from contextlib import contextmanager, suppress
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from unrender.gateway.failure import invalid
from unrender.gateway.gateway import free_descriptors, raise_limit
from unrender.web import listening_socket

HEAD_SECONDS = 10.0
"""Time limit for a request's head, in seconds. The limit applies from the time a connection is opened or an answer ends."""

HEAD_BYTES = 16_384
"""Maximum size of a request's path and headers together, in bytes."""


def _problem(scope: Any) -> bytes:
    """Return the reason why a request's head is refused; empty if there is none."""
    names = [name for name, _ in scope["headers"]]
    # A proxy in front may trust the other one of the two, and see the body's end, and so the next request, at another place.
    if b"transfer-encoding" in names and b"content-length" in names:
        return b"expected either Content-Length or Transfer-Encoding, found both"
    # h11 only limits an incomplete head, and a head that arrives at once is complete.
    size = len(scope["raw_path"]) + len(scope["query_string"]) + sum(map(len, names))
    if size + sum([len(value) for _, value in scope["headers"]]) > HEAD_BYTES:
        return b"expected at most %d bytes of headers, found more" % HEAD_BYTES
    return b""


class Door(H11Protocol):
    """One client connection."""

    room: asyncio.Semaphore | None = None
    """The places for connections, one of which this connection occupies until it is closed; None if their number has no limit."""
    _timer: asyncio.TimerHandle | None = None

    @property
    def app(self) -> Any:
        """The application that uvicorn calls for each request: a wrapper around the gateway's."""
        return self._answer  # a stored bound method would create a reference cycle

    @app.setter
    def app(self, application: Any) -> None:
        self._application = application

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        """Run the application, and write streamed chunks directly to the transport."""
        if problem := _problem(scope):
            headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
            await send({"type": "http.response.start", "status": 400, "headers": headers})
            await send({"type": "http.response.body", "body": problem})
            return
        cycle, transport, flow, chunked = self.cycle, self.transport, self.flow, False

        async def write(message: Any) -> None:
            nonlocal chunked
            # Write chunks without h11, whose state machine costs as much per chunk as all other work for a token.
            if chunked and message.get("more_body") and not (flow.write_paused or cycle.disconnected):
                if body := message["body"]:  # an empty chunk would end the response
                    transport.write(b"%x\r\n%b\r\n" % (len(body), body))
                return
            if message["type"] == "http.response.start":
                lengths = any(name.lower() == b"content-length" for name, _ in message["headers"])
                chunked = scope["http_version"] == "1.1" and scope["method"] != "HEAD" and not lengths
                if self.room is not None and self.room.locked():  # others wait for this place
                    message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        # At the end of a shutdown, uvicorn cancels the requests. It would log a traceback for each of them.
        with suppress(asyncio.CancelledError):
            await self._application(scope, receive, write)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit for the first request's head."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the time limit, and free the connection's place."""
        self._stop_waiting()
        super().connection_lost(exc)
        if self.room is not None:
            self.room.release()

    def data_received(self, data: bytes) -> None:
        """Process received bytes. The body has its own time limit, `limits.upload_timeout`."""
        super().data_received(data)
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Start the time limit for the next request's head, which includes the rest of an unread body."""
        super().on_response_complete()
        if self.cycle.response_complete and not self.transport.is_closing():
            self._wait()

    def send_400_response(self, msg: str) -> None:
        """Send a 400 for bytes that are not HTTP. During an answer, close the connection instead."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def _wait(self) -> None:
        self._stop_waiting()
        self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


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
