"""Requests that nobody would write: whatever is sent to any path is answered, never with a 500.

`UNRENDER_FUZZ=20000 pytest tests/unit/gateway/test_fuzz.py` sends more, and `UNRENDER_FUZZ_SEED` others.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
from typing import Any

import pytest
from live import ASKED, Live, listening, request
from serving import CALL, HELLO, TOOL, Told, browser, served

from unrender.gateway import EngineCapabilities, GatewayLimits

REQUESTS = int(os.environ.get("UNRENDER_FUZZ", "400"))
SEED = int(os.environ.get("UNRENDER_FUZZ_SEED", "1"))
RESPONSE_TOOL = {
    "type": "function",
    "name": "f",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
}
SCHEMA = {
    "type": "json_schema",
    "json_schema": {"name": "n", "schema": {"type": "object", "properties": {"a": {"minimum": 1}}}},
}
CHAT = {"messages": [*HELLO, {"role": "assistant", "content": "x", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}]}, {"role": "tool", "tool_call_id": "1", "content": "y"}], "tools": [TOOL], "tool_choice": "auto", "stop": ["a"], "n": 2, "logprobs": True, "top_logprobs": 2, "max_tokens": 5, "response_format": SCHEMA, "stream": True, "stream_options": {"include_usage": True}, "chat_template_kwargs": {"enable_thinking": True}, "seed": 1, "temperature": 0.5}  # fmt: skip
BODIES: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", CHAT),
    ("/v1/chat/completions", {"messages": HELLO, "tools": [TOOL], "tool_choice": "required"}),
    ("/v1/responses", {"input": [{"role": "user", "content": [{"type": "input_text", "text": "x"}]}, {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}, {"type": "function_call_output", "call_id": "1", "output": "x"}], "tools": [RESPONSE_TOOL], "text": {"format": {"type": "text"}}, "reasoning": {"effort": "low"}, "store": True, "previous_response_id": None}),
    ("/v1/messages", {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}, {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "x"}]}], "max_tokens": 9, "system": [{"type": "text", "text": "s"}], "tools": [{"name": "f", "input_schema": {"type": "object"}}], "tool_choice": {"type": "auto"}, "thinking": {"type": "enabled", "budget_tokens": 1024}}),
    ("/v1/messages/count_tokens", {"messages": HELLO, "tools": [{"name": "f", "input_schema": {"type": "object"}}]}),
    ("/v1/completions", {"prompt": ["x"], "stop": "a", "max_tokens": 2, "logprobs": 1}),
    ("/v1/render", CHAT),
    ("/v1/parse", {**CHAT, "text": CALL}),
]  # fmt: skip
SCALARS: list[Any] = [
    None, True, 0, -1, 5, 10**400, -(10**19), 0.5, 1e308, "", "x", "\x00", "\ud800", "é" * 50, "tool", "developer", "*",
    "__class__", "a\r\nb: c", [], {}, [[]], [{}], {"type": "function"}, {"type": "x"}, [1, "a", None], {"": {"": {}}},
]  # fmt: skip
LITERALS = [
    b"1e999",
    b"-1e999",
    b"NaN",
    b"Infinity",
    b"1E400",
    b"9" * 5000,
    b'"\\ud800"',
    b"[" * 300 + b"]" * 300,
    b"-0",
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


@pytest.mark.slow
def test_no_bytes_leave_a_traceback(caplog):
    """Bytes of requests changed anywhere, cut anywhere, get at most one answer each, none a 500, and the log no error."""
    draw = random.Random(SEED)
    plain = request("/v1/chat/completions").replace(b"connection: close\r\n", b"")
    chunked = b"POST /v1/render HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\n{}\n\r\n0\r\n\r\n"
    put = [
        b"",
        b" ",
        b"\r",
        b"\n",
        b"\r\n",
        b"\x00",
        b":",
        b"0",
        b"5",
        b"\xff",
        b"GET / HTTP/1.1\r\n",
        b"chunked",
        b"close",
    ]

    def wire() -> bytes:
        data = bytearray(b"".join(draw.choice([plain, chunked]) for _ in range(draw.randrange(1, 4))))
        for _ in range(draw.randrange(3)):
            at = draw.randrange(len(data))
            data[at : at + draw.choice([0, 1, 1, 9])] = draw.choice(put)
        return bytes(data[: draw.randrange(len(data))] if draw.random() < 0.2 else data)

    async def heard(gateway: Live, data: bytes) -> bytes:
        reader, writer = await gateway.send(data)
        found = b""
        try:
            while part := await asyncio.wait_for(reader.read(65_536), 0.5):
                found += part
        except (ConnectionError, TimeoutError):  # a connection that is kept open says no more
            pass
        finally:
            writer.close()
        return found

    async def run() -> None:
        async with listening(Told("Hi")) as gateway:
            for _ in range(REQUESTS // 40):
                sent = [wire() for _ in range(10)]
                for data, answer in zip(
                    sent, await asyncio.gather(*(heard(gateway, one) for one in sent)), strict=True
                ):
                    statuses = [int(word) for word in re.findall(rb"HTTP/1\.1 (\d{3})", answer)]
                    assert 500 not in statuses, data
                    assert len(statuses) <= len(re.findall(rb"HTTP/1.1", data)) + 1, (data, answer)

    asyncio.run(run())
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
