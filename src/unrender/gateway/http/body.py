"""The two bodies of an exchange: a request's bytes become JSON, within bounds, and an answer's frames become a stream.

Rules: what two readers could understand differently is refused: keys that come twice, NaN, numbers that no double holds, text that
is not UTF-8. Every frame waits until the server has taken the one before, so a slow reader slows the engine and fills no memory.
One timer serves a stream however many frames it has.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from itertools import chain
from math import isfinite
from typing import Any

from unrender.gateway.failure import Failure, Kind, invalid

_DEEPEST = 500
"""Levels of lists and objects inside each other."""
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
_QUICK = 200_000
"""Bytes that are read on the event loop; more would let other streams wait."""


class Gone(Exception):
    """The client has closed the connection."""


async def read_json(receive: Receive, most: int, seconds: float) -> Any:
    """Return the body's JSON.

    Raises `Failure` for more than `most` bytes, for one that takes more than `seconds`, and for what is not JSON; `Gone`
    for half a body.
    """
    try:
        async with asyncio.timeout(seconds):
            data = await _read(receive, most)
    except TimeoutError:
        raise Failure(Kind.TOO_SLOW, f"body: expected all of it within {seconds:g} seconds") from None
    # Parsing holds the interpreter's lock, but not the event loop: other streams get their turns in between.
    return _parsed(data) if len(data) <= _QUICK else await asyncio.to_thread(_parsed, data)


async def _read(receive: Receive, most: int) -> bytes:
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":  # half a body: there is nobody to be told
            raise Gone
        part, more = message.get("body", b""), message.get("more_body", False)
        size += len(part)
        # Counted as it comes: `content-length` is only what the client says of it.
        if size > most:
            raise Failure(Kind.TOO_LARGE, f"body: expected at most {most} bytes, found more")
        parts.append(part)
    return b"".join(parts)


def _parsed(data: bytes) -> Any:
    try:
        text = data.decode("utf-8")
        return _bounded(json.loads(text, object_pairs_hook=_once, parse_constant=_finite, parse_float=_finite))
    except UnicodeDecodeError as error:
        raise invalid(f"body: expected UTF-8, found byte {data[error.start]:#x} at {error.start}") from None
    # `[[[[…` has no error of its own in `json`: its reader runs out of stack.
    except RecursionError:
        raise invalid("body: expected JSON, found lists or objects nested too deeply") from None
    except ValueError as error:
        raise invalid(f"body: expected JSON: {error}") from None


def _bounded(body: Any) -> Any:
    """Return a body that is not nested too deeply to be written, checked and copied again."""
    level = [body]
    # Level by level: a check that called itself would run into the depth that it guards against.
    for _ in range(_DEEPEST):
        found = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = list(chain.from_iterable(found))
        if not level:
            return body
    raise invalid(f"body: expected at most {_DEEPEST} levels of lists and objects, found more")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # `{"n": 1, "n": 16}` is 16 here and 1 in other readers: a filter in between would check another request.
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise invalid(f"body: expected every key once, found {twice!r:.80} again")
    return found


def _finite(digits: str) -> float:
    value = float(digits)
    if not isfinite(value):  # "1e999" and "NaN": they would come back as `Infinity` and `NaN`, which are no JSON
        raise invalid(f"body: expected numbers that a double holds, found {digits:.80}")
    return value


_STREAMED: Headers = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


class EventStream:
    """One response. `ping` is sent whenever nothing was sent for `interval` seconds, also before the first frame."""

    __slots__ = ("_headers", "_interval", "_last", "_ping", "_pinging", "_send", "_sending", "_time", "_timer", "begun")

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
        self._time = loop.time
        self._last = self._time()
        self._timer = loop.call_later(interval, self._tick)

    async def send(self, frame: bytes) -> None:
        """Send a frame; returns when the server has taken it."""
        # A ping that is on its way is not cut in two by a frame.
        if self._pinging is not None:
            await self._pinging
        # While a slow reader keeps a frame waiting, no ping is due: the connection is anything but silent.
        self._sending = True
        await self._write(frame)
        self._last = self._time()
        self._sending = False

    async def end(self, frame: bytes = b"") -> None:
        """Send the last frame and end the response."""
        self._timer.cancel()
        if self._pinging is not None:
            await self._pinging
        await self._write(frame, more=False)

    def close(self) -> None:
        """Stop the timer. Call it however the response ended."""
        self._timer.cancel()
        # The client may have gone in the middle of a ping, and nobody would wait for that task any more.
        if self._pinging is not None:
            self._pinging.cancel()

    async def _write(self, data: bytes, *, more: bool = True) -> None:
        if not self.begun:
            self.begun = True
            await self._send({"type": "http.response.start", "status": 200, "headers": [*_STREAMED, *self._headers]})
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        # The timer looks once an interval, not once a frame: thousands of frames a second set no timers.
        due = self._last + self._interval
        if loop.time() >= due and not self._sending:
            self._pinging = loop.create_task(self._keep_open())
            due = loop.time() + self._interval
        # `due` may have passed while a frame was on its way; a tenth of the interval keeps the timer from spinning.
        self._timer = loop.call_at(max(due, loop.time() + self._interval / 10), self._tick)

    async def _keep_open(self) -> None:
        try:
            await self._write(self._ping)
        finally:
            # A ping counts as something sent; `send` and `end` wait for it, since it may be the response's first body.
            self._last = self._time()
            self._pinging = None
