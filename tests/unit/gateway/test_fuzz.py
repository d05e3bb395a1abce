"""Random requests to any path are answered, never with a 500, and a stream equals the whole answer.

`UNRENDER_FUZZ=20000 pytest tests/unit/gateway/test_fuzz.py` sends more requests, and `UNRENDER_FUZZ_SEED` selects others.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest
from live import ASKED
from serving import CALL, Told, browser, corpus, served
from streams import STREAMED, Broken, added_up, said
from tables import table

from unrender.gateway.backends import EngineCapabilities, Job, OutputPiece, Sampler
from unrender.gateway.gateway import GatewayLimits

REQUESTS = int(os.environ.get("UNRENDER_FUZZ", "400"))
SEED = int(os.environ.get("UNRENDER_FUZZ_SEED", "1"))
BODIES: list[tuple[str, dict[str, Any]]] = [(row["path"], row["body"]) for row in corpus("requests")]
REFUSED = [(row["path"], row["body"]) for row in corpus("refusals")]
T: Any = table("test_fuzz")
SCALARS: list[Any] = T["SCALARS"]
SCHEMAS: list[Any] = T["SCHEMAS"]
"""Schemas of tools and formats, most of which are invalid."""
WORDS = T["WORDS"]
LITERALS = [
    *(b"1e999", b"-1e999", b"NaN", b"Infinity", b"1E400", b"-0"),
    *(b"9" * 5000, b'"\\ud800"', b"[" * 300 + b"]" * 300),
]
"""Values that only bytes can express."""
MARK = "MARK-5c1d"
QUERIES, NAMES = T["QUERIES"], T["NAMES"]
ALIKE: list[Any] = T["ALIKE"]
"""Values that are probably valid."""
HEADERS = [(name, value.encode("latin-1")) for name, value in T["HEADERS"]]


def changed(value: Any, draw: random.Random) -> Any:
    """Return JSON with one random change: a value, a key, a duplicate item, or a marker for bytes."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = draw.choice(list(value))
        match draw.randrange(8):
            case 0:
                return {**value, draw.choice(["x", "", "a.b", "\ud800", key + "s"]): draw.choice(SCALARS)}
            case 1:
                return {name: item for name, item in value.items() if name != key}
            case 2:  # a value that occurs under this name in any API
                return {**value, key: draw.choice(NAMED.get(key) or SCALARS)}
        return {**value, key: changed(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.9:
        at = draw.randrange(len(value))
        if draw.random() < 0.2:
            return [*value, value[at]]
        return [*value[:at], changed(value[at], draw), *value[at + 1 :]]
    return placed(value, draw)


def placed(value: Any, draw: random.Random) -> Any:
    """Return a replacement: a similar value, a word, a schema, the value deeply nested, a huge value, or any other."""
    if draw.random() < 0.5 and not isinstance(value, dict | list):
        return draw.choice([one for one in ALIKE if type(one) is type(value)] or [value])
    match draw.randrange(12):
        case 0 | 1:
            return MARK
        case 2:
            return draw.choice(WORDS)
        case 3:
            return draw.choice(SCHEMAS)
        case 4:
            return nested(value, draw.choice([1, 2, 60, 450]), draw)
        case 5:
            return draw.choice(HUGE)
    return draw.choice(SCALARS)


def nested(value: Any, levels: int, draw: random.Random) -> Any:
    """Return a value inside the given number of lists or objects."""
    around = draw.choice([None, "type", "properties", "items", "anyOf", "content"])
    for _ in range(levels):
        value = [value] if around is None else {around: value}
    return value


def blank(value: Any) -> Any:
    """Return JSON with null for every value that isn't a container."""
    if isinstance(value, dict):
        return {name: blank(item) for name, item in value.items()}
    return list(map(blank, value)) if isinstance(value, list) else None


def named(value: Any, found: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return all values in JSON by their names."""
    for name, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(name, str) and item not in found.setdefault(name, []):
            found[name].append(item)
        named(item, found)
    return found


NAMED = named([body for _, body in (*BODIES, *REFUSED)], {})
NAMED |= {name: [*NAMED[name], *SCHEMAS * 3] for name in ("parameters", "schema", "input_schema", "a", "city")}
HUGE: list[Any] = [
    "x" * 100_000, "\U0001f600\u202e\u0300" * 3000, "<tool_call>" * 500, ["a"] * 5000, {f"k{i}": i for i in range(2000)},
    [{"type": "text", "text": "a"}] * 500, [{"role": "user", "content": "a"}] * 200,
]  # fmt: skip


def drawn(draw: random.Random) -> tuple[str, str, bytes, list[tuple[str, bytes]]]:
    """Return a random request: method, path with its query, body, headers."""
    headers = [draw.choice(HEADERS) for _ in range(draw.choice([0, 0, 0, 1, 2]))]
    if draw.random() < 0.15:
        path = draw.choice(NAMES) + "?" + draw.choice(QUERIES)
        return draw.choice(["GET", "GET", "DELETE", "POST", "PUT", "HEAD", "OPTIONS"]), path, b"", headers
    path, body = draw.choice(BODIES if draw.random() < 0.8 else REFUSED)
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        body = blank(body) if draw.random() < 0.01 else changed(body, draw)
    data = json.dumps(body).encode().replace(json.dumps(MARK).encode(), draw.choice(LITERALS))
    if draw.random() < 0.1:
        at = draw.randrange(len(data))
        data = data[:at] + draw.choice([b"", b"\xff", b"\x00", b'"', b"{", b"\\", b"e"]) + data[at + 1 :]
    return "POST", path, data, headers


class Steady(Sampler):
    """A sampler that gives each prompt the same answer."""

    async def generate(self, job: Job) -> AsyncGenerator[OutputPiece, None]:
        """Yield a random answer."""
        async for piece in super().generate(replace(job, seed=job.seed or 7)):
            yield piece


def applications() -> list[Any]:
    """Return gateways: one with an engine that writes a call and supports grammars, and others whose answers follow the request."""
    engine = EngineCapabilities(dialect="gbnf", lazy=True, logprobs=True, seed=True)
    limits = GatewayLimits(store_bytes=100_000)
    telling = served(Told(["Hi ", CALL], capabilities=engine), "json-tags", limits=limits)
    return [telling, *(served(Steady(), name, limits=limits) for name in ("", "tagged-key", "channels"))]


async def sent(application: Any, *request: Any) -> Any:
    """Send a request, check that its answer reports no bug, and return the answer."""
    method, path, data, headers = request
    async with browser(application) as client:
        answer = await client.request(method, path, content=data, headers=headers)
    assert answer.status_code != 500
    assert b"internal error" not in answer.content
    if answer.headers.get("content-type") == "application/json" and method != "HEAD":
        words: list[str] = []
        json.loads(answer.content, parse_constant=words.append)
        assert words == []
    return answer


def outcome(path: str, answer: Any) -> Any:
    """Return the content of an answer, streamed or not, or None for an error."""
    if answer.status_code != 200:
        return None
    if "event-stream" not in answer.headers["content-type"]:
        return said(path, answer.json())
    try:
        return added_up(path, answer.text)
    except Broken:
        return None


async def judged(application: Any, *request: Any) -> bool:
    """Send a request. If it succeeds, send it again in the other mode, streamed or whole, and compare both. Returns the success."""
    _, path, data, _ = request
    answer = await sent(application, *request)
    if path not in STREAMED or answer.status_code != 200:
        return False
    body = json.loads(data)
    other = await sent(application, "POST", path, json.dumps(body | {"stream": not body.get("stream")}), [])
    assert outcome(path, answer) == outcome(path, other)
    return True


@pytest.mark.slow
@pytest.mark.timeout(0 if REQUESTS > 1000 else 120)
def test_no_request_is_a_500(caplog: pytest.LogCaptureFixture):
    """Wrong values, keys, bytes, queries and headers are refused or answered, and no error is logged."""
    caplog.set_level(logging.ERROR, "unrender")
    draw = random.Random(SEED)
    gateways = applications()
    answered = 0

    async def run():
        nonlocal answered
        for number in range(REQUESTS):
            request = drawn(draw)
            try:
                answered += await judged(draw.choice(gateways), *request)
                assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
            except Exception as error:
                method, path, data, headers = request
                error.add_note(repr((SEED, number, method, path, data[:3000], headers)))
                raise
        return [(await sent(application, "GET", "/metrics", b"", [])).status_code for application in gateways]

    assert asyncio.run(run()) == [200] * 4
    assert answered > REQUESTS / 10


def test_paths_of_the_fuzzer_are_the_gateways():
    """The fuzzer sends to every path that reads a body."""
    routes: Any = served(Told("Hi")).routes
    posted = {route.path for route in routes if "POST" in route.methods}

    assert {path for path, _ in BODIES} == posted
    assert set(ASKED) <= posted
