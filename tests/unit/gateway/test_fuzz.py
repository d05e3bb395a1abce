"""Requests that nobody would write: whatever is sent to any path is answered, never with a 500.

`UNRENDER_FUZZ=20000 pytest tests/unit/gateway/test_fuzz.py` sends more, and `UNRENDER_FUZZ_SEED` others.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from typing import Any

import pytest
from live import ASKED
from serving import CALL, Told, browser, corpus, served

from unrender.gateway import EngineCapabilities, GatewayLimits

REQUESTS = int(os.environ.get("UNRENDER_FUZZ", "400"))
SEED = int(os.environ.get("UNRENDER_FUZZ_SEED", "1"))
BODIES: list[tuple[str, dict[str, Any]]] = [(row["path"], row["body"]) for row in corpus("requests")]
SCALARS: list[Any] = [
    None, True, 0, -1, 5, 10**400, -(10**19), 0.5, 1e308, "", "x", "\x00", "\ud800", "é" * 50, "tool", "developer", "*",
    "__class__", "a\r\nb: c", [], {}, [[]], [{}], {"type": "function"}, {"type": "x"}, [1, "a", None], {"": {"": {}}},
]  # fmt: skip
LITERALS = [
    *(b"1e999", b"-1e999", b"NaN", b"Infinity", b"1E400", b"-0"),
    *(b"9" * 5000, b'"\\ud800"', b"[" * 300 + b"]" * 300),
]
"""What only bytes can say."""
MARK = "MARK-5c1d"
QUERIES = ["limit=" + "9" * 5000, "limit=٣", "limit=1e3", "limit=-1", "limit=1_0", "order=x", "after=%00", "after=%ff", "model=%00", "%", "limit=5&limit=6"]  # fmt: skip
NAMES = ["/v1/responses/%00", "/v1/responses/../x", "/v1/responses/x/input_items", "/v1/models/%ff", "/v1/models/a/b", "/v1/models/", "/v1/format", "/openapi.json", "/v1/models", "/health", "/ready", "/metrics", "/v1/nothing"]  # fmt: skip
HEADERS = [
    ("traceparent", b"a\x01b"), ("traceparent", b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01"), ("tracestate", b"\xff\x01=\x7f"),
    ("x-request-id", b"\xff" * 50), ("authorization", b"Bearer \xff"), ("authorization", b"bearer"), ("x-api-key", b"\x01"),
    ("content-type", b"multipart/form-data"), ("content-encoding", b"gzip"), ("accept", b"\xff"), ("content-length", b"x"),
    ("range", b"bytes=0-"), ("forwarded", b"\x0b"),
]  # fmt: skip


def changed(value: Any, draw: random.Random) -> Any:
    """Return JSON with one change somewhere: a value, a key, an item twice, a marker for bytes."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = draw.choice(list(value))
        match draw.randrange(8):
            case 0:
                return {**value, draw.choice(["x", "", "a.b", "\ud800", key + "s"]): draw.choice(SCALARS)}
            case 1:
                return {name: item for name, item in value.items() if name != key}
        return {**value, key: changed(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.9:
        at = draw.randrange(len(value))
        if draw.random() < 0.2:
            return [*value, value[at]]
        return [*value[:at], changed(value[at], draw), *value[at + 1 :]]
    return MARK if draw.random() < 0.2 else draw.choice(SCALARS)


def drawn(draw: random.Random) -> tuple[str, str, bytes, list[tuple[str, bytes]]]:
    """Return a request: method, path with its query, body, headers."""
    headers = [draw.choice(HEADERS) for _ in range(draw.choice([0, 0, 0, 1, 2]))]
    if draw.random() < 0.15:
        path = draw.choice(NAMES) + "?" + draw.choice(QUERIES)
        return draw.choice(["GET", "GET", "DELETE", "POST", "PUT", "HEAD", "OPTIONS"]), path, b"", headers
    path, body = draw.choice(BODIES)
    for _ in range(draw.choice([1, 1, 2, 4])):
        body = changed(body, draw)
    data = json.dumps(body).encode().replace(json.dumps(MARK).encode(), draw.choice(LITERALS))
    if draw.random() < 0.1:
        at = draw.randrange(len(data))
        data = data[:at] + draw.choice([b"", b"\xff", b"\x00", b'"', b"{", b"\\", b"e"]) + data[at + 1 :]
    return "POST", path, data, headers


def engine() -> Told:
    """Return an engine that writes a call, for every dialect's sake with grammars."""
    return Told(["Hi ", CALL], capabilities=EngineCapabilities(dialect="gbnf", lazy=True, logprobs=True, seed=True))


@pytest.mark.slow
@pytest.mark.timeout(0 if REQUESTS > 1000 else 120)
def test_no_request_is_a_500():
    """Wrong values, keys, bytes, queries and headers are refused or answered; errors are JSON that every reader can read."""
    draw = random.Random(SEED)
    application = served(engine(), "json-tags", limits=GatewayLimits(stored=100_000))

    async def run():
        async with browser(application) as client:
            for number in range(REQUESTS):
                method, path, data, headers = drawn(draw)
                answer = await client.request(method, path, content=data, headers=headers)
                where = (SEED, number, method, path, data[:2000], headers)
                assert answer.status_code != 500, where
                if answer.headers.get("content-type") == "application/json" and method != "HEAD":
                    words: list[str] = []
                    json.loads(answer.content, parse_constant=words.append)
                    assert words == [], where
            return (await client.get("/metrics")).status_code

    assert asyncio.run(run()) == 200


def test_paths_of_the_fuzzer_are_the_gateways():
    """The fuzzer sends to every path that reads a body."""
    routes: Any = served(Told("Hi")).routes
    posted = {route.path for route in routes if "POST" in route.methods}

    assert {path for path, _ in BODIES} == posted
    assert set(ASKED) <= posted
