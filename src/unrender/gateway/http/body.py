"""Parses the bytes of a request as JSON, within bounds.

Rule: what two readers could understand differently is refused: keys that come twice, NaN, numbers that no double holds, text that is not UTF-8.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from math import isfinite
from typing import Any

from unrender.gateway.failure import Failure, Kind, invalid

_DEEPEST = 500
"""Levels of lists and objects inside each other."""
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
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
    return _parsed(data) if len(data) <= _QUICK else await asyncio.to_thread(_parsed, data)


async def _read(receive: Receive, most: int) -> bytes:
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        part, more = message.get("body", b""), message.get("more_body", False)
        size += len(part)
        if size > most:
            raise Failure(Kind.TOO_LARGE, f"body: expected at most {most} bytes, found more")
        parts.append(part)
    return b"".join(parts)


def _parsed(data: bytes) -> Any:
    try:
        text = data.decode("utf-8")
        return _bounded(json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_finite))
    except UnicodeDecodeError as error:
        raise invalid(f"body: expected UTF-8, found byte {data[error.start]:#x} at {error.start}") from None
    except RecursionError:
        raise invalid("body: expected JSON, found lists or objects nested too deeply") from None
    except ValueError as error:
        raise invalid(f"body: expected JSON: {error}") from None


def _bounded(body: Any) -> Any:
    """Return a body that is not nested too deeply to be written, checked and copied again."""
    level = [body]
    # Level by level: a check that called itself would run into the depth that it guards against.
    for _ in range(_DEEPEST):
        level = [item for one in level if isinstance(one, dict | list) for item in _inside(one)]
        if not level:
            return body
    raise invalid(f"body: expected at most {_DEEPEST} levels of lists and objects, found more")


def _inside(holder: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return holder.values() if isinstance(holder, dict) else holder


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # `{"n": 1, "n": 16}` is 16 here and 1 in other readers: a filter in between would check another request.
    found = dict(pairs)
    if len(found) < len(pairs):
        counted = Counter(name for name, _ in pairs)
        twice = next(name for name, times in counted.items() if times > 1)
        raise invalid(f"body: expected every key once, found {twice!r:.80} again")
    return found


def _finite(digits: str) -> float:
    value = float(digits)
    if not isfinite(value):  # it would come back as `Infinity`, which is no JSON
        raise invalid(f"body: expected numbers that a double holds, found {digits:.80}")
    return value


def _no_constant(word: str) -> Any:
    raise invalid(f"body: expected JSON, found {word}")
