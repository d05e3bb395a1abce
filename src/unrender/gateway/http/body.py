"""Reads JSON from request bodies, and sends the frames of an answer as a stream.

Rules: input that two parsers could read differently is rejected: duplicate keys, NaN, numbers too large for a double, invalid UTF-8. Each
frame waits until the server has accepted the previous one, so a slow client slows down the engine instead of filling memory. A stream has
one task that sends pings.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from itertools import chain
from math import isfinite
from typing import Any

from unrender.gateway.failure import Failure, Kind, invalid

_DEEPEST = 500
"""Maximum nesting of lists and objects."""
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
_QUICK = 200_000
"""Maximum size of a body that is parsed on the event loop. Parsing larger bodies there would delay other streams."""


class Gone(Exception):
    """Raised if the client has closed the connection."""


async def read_json(receive: Receive, most: int, seconds: float) -> Any:
    """Return the JSON of a request body.

    Raises `Failure` if the body isn't JSON, has more than `most` bytes, or takes longer than `seconds`. Raises `Gone` if the client
    disconnects before the end.
    """
    try:
        async with asyncio.timeout(seconds):
            data = await _read(receive, most)
    except TimeoutError:
        raise Failure(Kind.TOO_SLOW, f"body: not received within {seconds:g} seconds") from None
    # In a thread, parsing holds the GIL but not the event loop, so other streams can run in between.
    return _parsed(data) if len(data) <= _QUICK else await asyncio.to_thread(_parsed, data)


async def _read(receive: Receive, most: int) -> bytes:
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":  # the client can no longer receive an error
            raise Gone
        part, more = message.get("body", b""), message.get("more_body", False)
        size += len(part)
        # Count the received bytes, since `content-length` may be wrong.
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
    # `json` reports deeply nested input such as `[[[[…` only as a RecursionError.
    except RecursionError:
        raise invalid("body: expected JSON, found lists or objects nested too deeply") from None
    except ValueError as error:
        raise invalid(f"body: expected JSON: {error}") from None


def _bounded(body: Any) -> Any:
    """Check the nesting of a parsed body, and return the body. Raises `Failure` if it is nested too deeply to process."""
    level = [body]
    # Check level by level: a recursive check would itself exceed the recursion limit.
    for _ in range(_DEEPEST):
        found = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = list(chain.from_iterable(found))
        if not level:
            return body
    raise invalid(f"body: expected at most {_DEEPEST} levels of lists and objects, found more")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Reject duplicate keys: `{"n": 1, "n": 16}` is 16 here and 1 in other parsers, so a proxy could check a different request.
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise invalid(f"body: duplicate key {twice!r:.80}")
    return found


def _finite(digits: str) -> float:
    value = float(digits)
    if not isfinite(value):  # "1e999" and "NaN" would be written as `Infinity` and `NaN`, which are not JSON
        raise invalid(f"body: expected numbers in the range of a double, found {digits:.80}")
    return value


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
        # Only one task sends at a time, so that a frame and a ping don't interrupt each other.
        self._sending = asyncio.Lock()
        self._last = time.monotonic()
        self._pings = asyncio.create_task(self._keep_open(ping, interval))

    async def send(self, frame: bytes) -> None:
        """Send a frame. Returns once the server has accepted the frame."""
        async with self._sending:
            await self._write(frame)

    async def end(self, frame: bytes = b"") -> None:
        """Send the last frame and end the response."""
        async with self._sending:
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
            if time.monotonic() - self._last >= interval and not self._sending.locked():
                await self.send(ping)
