"""Limits the time for a request's head, and writes streamed chunks without h11's overhead.

h11 still parses the requests. A connection is closed if the client doesn't send a complete head in time.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

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
