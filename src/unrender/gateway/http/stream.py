"""Sends the frames of an answer as a stream.

Rules: each frame waits until the server has accepted the previous one, so a slow client slows down the engine instead of filling memory. A
stream has one task that sends pings.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
_STREAMED: Headers = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


class EventStream:
    """One streamed response. Sends `ping` after `interval` seconds without a frame, even before the first frame."""

    def __init__(self, send: Send, headers: Headers, *, ping: bytes, interval: float) -> None:
        self.begun: bool = False
        """True once the status has been sent. Later errors are sent as events."""
        self._send = send
        self._headers = headers
        self._sending = False
        """True while a frame is being sent. Then the connection needs no ping."""
        self._pinging: asyncio.Event | None = None
        """Set when the ping that is being sent has been sent; None if none is."""
        self._last = time.monotonic()
        self._pings = asyncio.create_task(self._keep_open(ping, interval))

    async def send(self, frame: bytes) -> None:
        """Send a frame. Returns once the server has accepted the frame. Only one task may call this method."""
        # A frame and a ping must not interrupt each other. A lock would cost as much per frame as the rest of this method.
        if self._pinging is not None:
            await self._pinging.wait()
        self._sending = True
        try:
            await self._write(frame)
        finally:
            self._sending = False

    async def end(self, frame: bytes = b"") -> None:
        """Send the last frame and end the response."""
        if self._pinging is not None:
            await self._pinging.wait()
        self.close()
        await self._write(frame, more=False)

    def close(self) -> None:
        """Stop the pings. Call this method after every response, even a failed one."""
        self._pings.cancel()

    async def _write(self, data: bytes, *, more: bool = True) -> None:
        if not self.begun:
            self.begun = True
            await self._send({"type": "http.response.start", "status": 200, "headers": [*_STREAMED, *self._headers]})
        await self._send({"type": "http.response.body", "body": data, "more_body": more})
        self._last = time.monotonic()

    async def _keep_open(self, ping: bytes, interval: float) -> None:
        while True:
            # The minimum keeps the loop from spinning while a slow client delays a frame.
            await asyncio.sleep(max(self._last + interval - time.monotonic(), interval / 10))
            # No ping is needed during a delayed frame, since the connection isn't silent.
            if time.monotonic() - self._last >= interval and not self._sending:
                self._pinging = asyncio.Event()
                try:
                    await self._write(ping)
                finally:
                    self._pinging.set()
                    self._pinging = None
