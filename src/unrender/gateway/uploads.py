"""Reads JSON from request bodies, within limits for each body and for all bodies together.

Rule: input that two parsers could read differently is rejected: duplicate keys, NaN, numbers too large for a double, invalid UTF-8.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from itertools import chain
from math import isfinite
from typing import Any

from unrender.gateway.failure import Failure, FailureKind, invalid

_DEEPEST = 500
"""Maximum nesting of lists and objects."""
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_QUICK = 200_000
"""Maximum size of a body that is parsed on the event loop. Parsing larger bodies there would delay other streams."""


class Gone(Exception):
    """Raised if the client has closed the connection."""


class Uploads:
    """Reads the JSON of request bodies, and limits the memory that unfinished bodies need together.

    Strategy: if all bodies together exceed the budget, only the oldest is read further. So there is always one that proceeds, and the others
    wait in the network. A body that has arrived completely never waits.
    """

    def __init__(self, *, most: int, budget: int, seconds: float) -> None:
        """`most` is the maximum size of one body, `budget` the size of all bodies above which they wait, both in bytes."""
        self._most, self._budget, self._seconds = most, budget, seconds
        self._held: dict[object, int] = {}
        """Number of bytes of each unfinished body, the oldest first."""
        self._waiting: set[object] = set()
        """The bodies that wait for others."""
        self._freed = asyncio.Event()

    async def read(self, receive: Receive, headers: Mapping[bytes, bytes]) -> Any:
        """Return the JSON of a request body.

        Raises `Failure` if the body isn't JSON, is too large, or takes too long. Raises `Gone` if the client disconnects before the end.
        """
        declared = headers.get(b"content-length", b"")
        if declared.isdigit() and int(declared[:20]) > self._most:
            raise self._too_large(f"{int(declared[:20])}")
        body = object()
        self._held[body] = 0
        try:
            try:
                async with asyncio.timeout(self._seconds):
                    data = await self._received(receive, body)
            except TimeoutError:
                if body in self._waiting:
                    raise Failure(FailureKind.BUSY, "body: too many other bodies are being received") from None
                raise Failure(FailureKind.TOO_SLOW, f"body: not received within {self._seconds:g} seconds") from None
            # In a thread, parsing holds the GIL but not the event loop, so other streams can run in between.
            return _parsed(data) if len(data) <= _QUICK else await asyncio.to_thread(_parsed, data)
        finally:
            del self._held[body]
            self._waiting.discard(body)
            self._freed.set()
            self._freed = asyncio.Event()

    async def _received(self, receive: Receive, body: object) -> bytes | bytearray:
        data, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":  # the client can no longer receive an error
                raise Gone
            part: bytes = message.get("body", b"")
            more = message.get("more_body", False)
            if not data and not more:
                return part
            data += part
            self._held[body] = len(data)
            # Count the received bytes, since `content-length` may be missing.
            if len(data) > self._most:
                raise self._too_large("more")
            while more and sum(self._held.values()) > self._budget and next(iter(self._held)) is not body:
                self._waiting.add(body)
                await self._freed.wait()
            self._waiting.discard(body)
        return data

    def _too_large(self, found: str) -> Failure:
        return Failure(FailureKind.TOO_LARGE, f"body: expected at most {self._most} bytes, found {found}")


def _parsed(data: bytes | bytearray) -> Any:
    try:
        text = data.decode("utf-8")
        return _bounded(json.loads(text, object_pairs_hook=_once, parse_constant=_finite, parse_float=_finite))
    except UnicodeDecodeError as error:
        raise invalid(f"body: expected UTF-8, found byte {data[error.start]:#x} at {error.start}") from None
    # `json` reports deeply nested input such as `[[[[…` only as a RecursionError.
    except RecursionError:
        raise invalid("body: expected JSON, found lists or objects nested too deeply") from None
    except json.JSONDecodeError as error:
        raise invalid(f"body: expected JSON: {error}") from None
    except ValueError:  # the only other one that `json` raises; its text is advice for Python programs
        raise invalid("body: expected integers of fewer digits") from None


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
