"""Sends frames as an HTTP response that streams: it starts with the first frame, and is kept open in silence.

Rules: every frame waits until the server has taken the one before, so a slow reader slows the engine and fills no memory.
One timer serves a stream however many frames it has.
"""

from __future__ import annotations

import asyncio
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
    """One response. `ping` is sent whenever nothing was sent for `interval` seconds, also before the first frame."""

    __slots__ = ("_headers", "_interval", "_last", "_ping", "_pinging", "_send", "_sending", "_timer", "begun")

    def __init__(self, send: Send, headers: Headers, *, ping: bytes, interval: float) -> None:
        self.begun: bool = False
        """The status is out: what goes wrong from now on is told in the stream."""
        self._send = send
        self._headers = headers
        self._ping = ping
        self._interval = interval
        self._pinging: asyncio.Task[None] | None = None
        self._sending = False
        loop = asyncio.get_running_loop()
        self._last = loop.time()
        self._timer = loop.call_later(interval, self._tick)

    async def send(self, frame: bytes) -> None:
        """Send a frame; returns when the server has taken it."""
        # A ping that is on its way is not cut in two by a frame.
        if self._pinging is not None:
            await self._pinging
        self._sending = True
        if not self.begun:
            await self._begin()
        await self._send({"type": "http.response.body", "body": frame, "more_body": True})
        self._last = asyncio.get_running_loop().time()
        self._sending = False

    async def end(self, frame: bytes = b"") -> None:
        """Send the last frame and end the response."""
        self._timer.cancel()
        if self._pinging is not None:
            await self._pinging
        if not self.begun:
            await self._begin()
        await self._send({"type": "http.response.body", "body": frame, "more_body": False})

    def close(self) -> None:
        """Stop the timer. Call it however the response ended."""
        self._timer.cancel()
        if self._pinging is not None:
            self._pinging.cancel()

    async def _begin(self) -> None:
        self.begun = True
        await self._send({"type": "http.response.start", "status": 200, "headers": [*_STREAMED, *self._headers]})

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        # The timer looks once an interval, not once a frame: thousands of frames a second set no timers.
        due = self._last + self._interval
        if loop.time() >= due and not self._sending:
            self._pinging = loop.create_task(self._keep_open())
            due = loop.time() + self._interval
        self._timer = loop.call_at(max(due, loop.time() + self._interval / 10), self._tick)

    async def _keep_open(self) -> None:
        try:
            if not self.begun:
                await self._begin()
            await self._send({"type": "http.response.body", "body": self._ping, "more_body": True})
        finally:
            self._last = asyncio.get_running_loop().time()
            self._pinging = None
