"""Run many streams through a gateway with a faulty engine and disconnecting clients. Report lost text and leaks.

python benchmarks/soak.py [--minutes 30] [--streams 300] [--rate 5] [--seed S]

Processes: the engine and the clients (this process), and `unrender serve`. Each request names its fault, so each client
knows what to expect: every piece of its own text in order, or the pieces up to the fault and an error in the API's own
form. The exit status is 1 if text is lost, a connection stays open, or memory grows.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from reporting import ROOT, arguments
from served import configured, memory

from engine_server import EngineServer, events  # isort: skip - `reporting` sets the path
from streams import STREAMED, Broken, added_up, frames, said  # isort: skip - `reporting` sets the path

IDLE = 3.0
"""Seconds of silence that the gateway allows the engine."""
SAMPLE = 2.0
"""Seconds between two memory samples."""
GROWTH = 1.1
"""Maximum memory of the last quarter of a run, relative to the second quarter."""
SLACK = 8 << 20
"""Additional bytes that don't count as a leak."""
FAULTS: Mapping[str, tuple[int, int]] = {
    "none": (12, 200), "call": (6, 200), "slow": (2, 200), "once": (3, 200), "leave": (4, 0), "reader": (2, 200),
    "cut": (2, 0), "garbage": (2, 0), "bytes": (1, 0), "error": (1, 0), "silent": (1, 0), "500": (1, 502), "400": (1, 400), "503": (1, 503),
    "long": (1, 400),
}  # fmt: skip
"""Faults with their frequency and status. With status 0, the fault occurs during the stream."""
MESSAGES = {"500": "out of memory", "400": "no such grammar", "503": "busy", "long": "the prompt is too long"}
"""Faults that are errors, and the engine's messages."""
MIDDLE: Mapping[str, bytes] = {
    "garbage": b"data: {nonsense}\n\n",
    "bytes": b'data: {"content": "\xff\xc3"}\n\n',
    "error": b'data: {"error": {"code": 500, "message": "out of memory"}}\n\n',
}
"""Bytes that the engine sends in mid-stream."""
_ASKED = re.compile(r"stream (\d+) tokens (\d+) fault (\w+) at (\d+)")
_TOOL = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


def pieces(name: int, tokens: int) -> list[str]:
    """Return the text of a stream, piece by piece."""
    return [f"<{name}.{i}> " for i in range(tokens)]


class Faulty(EngineServer):
    """A fake llama-server that follows each prompt, including its faults. A fault occurs only once for each stream."""

    def __init__(self, rate: float) -> None:
        super().__init__({"/tokenize": {"tokens": []}, "/completion": self._answer})
        self._rate, self._met = rate, set[str]()

    def _answer(self, body: Mapping[str, Any]) -> Any:
        found = _ASKED.search(body["prompt"])
        assert found
        name, tokens, fault, at = int(found[1]), int(found[2]), found[3], int(found[4])
        if fault == "once" and found[1] not in self._met:
            self._met.add(found[1])
            return None
        if fault in MESSAGES:
            status = int({"long": "400"}.get(fault, fault))
            return {"status": status, "error": {"code": status, "message": MESSAGES[fault]}}
        return list(self._parts(pieces(name, tokens), fault, at))

    def _parts(self, texts: Sequence[str], fault: str, at: int) -> Iterator[bytes | float]:
        if fault == "call":
            yield _item('<tool_call>\n{"name": "f", "arguments": {"a": "')
        for number, text in enumerate(texts):
            yield (IDLE * 0.5 if fault == "slow" and number == at else 1) / self._rate
            if number == at and fault in ("cut", "silent", *MIDDLE):
                yield from (MIDDLE.get(fault, b""), IDLE * 5 if fault == "silent" else 0.0)
                return
            yield _item(text)
        if fault == "call":
            yield _item('"}}\n</tool_call>')
        yield _item("", stop=True, stop_type="eos", tokens_predicted=len(texts), tokens_evaluated=1)


def _item(text: str, *, stop: bool = False, **more: Any) -> bytes:
    return events({"content": text, "tokens": [1] if text else [], "stop": stop, **more}, done=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request and its expected outcome."""

    name: int
    path: str
    stream: bool
    tokens: int
    fault: str
    at: int

    def body(self) -> dict[str, Any]:
        """Return the request body."""
        question = f"stream {self.name} tokens {self.tokens} fault {self.fault} at {self.at}"
        said = [{"role": "user", "content": question}]
        bodies: Mapping[str, dict[str, Any]] = {
            "/v1/responses": {"input": said, "tools": [{"type": "function", "name": "f", "parameters": _TOOL}]},
            "/v1/messages": {"messages": said, "max_tokens": 9999, "tools": [{"name": "f", "input_schema": _TOOL}]},
        }
        tools = [{"type": "function", "function": {"name": "f", "parameters": _TOOL}}]
        return {"model": "m", "stream": self.stream, **bodies.get(self.path, {"messages": said, "tools": tools})}

    def wrong(self, status: int, text: str) -> str:
        """Return the error in an answer; "" if it's as expected."""
        fails = FAULTS[self.fault][1] or (200 if self.stream and self.at else 502)
        # A comment that keeps a silent stream open may precede the engine's error, which is then an event.
        if status == 200 != fails and self.stream:
            return self._broken(text, "")
        if status != (529 if fails == 503 and self.path == "/v1/messages" else fails):
            return f"status {status}, not {fails}"
        if status != 200:
            return "" if "error" in json.loads(text) else "no error"
        if not FAULTS[self.fault][1]:
            return self._broken(text, "".join(pieces(self.name, self.at)))
        try:
            answer = added_up(self.path, text) if self.stream else said(self.path, json.loads(text))
        except Broken as error:
            return f"an error: {error}"
        heard = re.findall(r"<[\d.]+>", json.dumps(answer))
        return "" if heard == [text.strip() for text in pieces(self.name, self.tokens)] else f"lost: {heard}"

    def _broken(self, text: str, before: str) -> str:
        try:
            added_up(self.path, text)
        except Broken:
            heard = "".join(map(DELTAS[self.path], frames(text)))
            return "" if heard.strip() == before.strip() else f"lost before the error: {heard!r}"
        return "no error in the stream"


DELTAS: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "/v1/chat/completions": lambda frame: "".join(
        one["delta"].get("content") or "" for one in frame.get("choices", ())
    ),
    "/v1/responses": lambda frame: frame["delta"] if frame["type"] == "response.output_text.delta" else "",
    "/v1/messages": lambda frame: frame.get("delta", {}).get("text", ""),
}
"""The text of a frame."""
PATHS = tuple(path for path in STREAMED if path in DELTAS)


@dataclass(slots=True)
class Soak:
    """A run: the results of its requests, and the gateway's resources over time."""

    address: str
    draw: random.Random
    until: float
    ends: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    count: int = 0
    memory: list[int] = field(default_factory=list)

    async def client(self, session: aiohttp.ClientSession) -> None:
        """Send one request after another until the time is over."""
        weights = [often for often, _ in FAULTS.values()]
        while time.monotonic() < self.until:
            self.count += 1
            tokens = self.draw.randrange(4, 60)
            fault = self.draw.choices(list(FAULTS), weights)[0]
            asked = Asked(
                name=self.count,
                path=self.draw.choice(PATHS),
                stream=self.draw.random() < 0.8 or fault in ("leave", "reader"),
                tokens=tokens,
                fault=fault,
                at=self.draw.randrange(tokens),
            )
            try:
                found = await asyncio.wait_for(self._ask(session, asked), 120)
            except (aiohttp.ClientError, TimeoutError) as error:
                found = f"no answer: {error!r}"
            self.ends[fault] += 1
            if found:
                self.wrong.append(f"{asked}: {found[:600]}")

    async def _ask(self, session: aiohttp.ClientSession, asked: Asked) -> str:
        async with session.post(f"{self.address}{asked.path}", json=asked.body()) as answer:
            heard = b""
            async for part in answer.content.iter_any():
                heard += part
                if asked.fault == "leave" and heard.count(b"\n\n") > asked.at:
                    return ""
                await asyncio.sleep(1 if asked.fault == "reader" and self.draw.random() < 0.2 else 0)
            return "" if asked.fault == "leave" else asked.wrong(answer.status, heard.decode())

    async def clients(self, pid: int, streams: int) -> str:
        """Run the clients until the time is over, and return the metric of streams that are left."""
        plain = aiohttp.TCPConnector(limit=0, force_close=True)
        async with aiohttp.ClientSession(connector=plain, timeout=aiohttp.ClientTimeout(None)) as session:
            # The port is open before the server is ready to handle signals.
            async with session.get(f"{self.address}/health"):
                pass
            watching = asyncio.create_task(self._watch(pid))
            await asyncio.gather(*(self.client(session) for _ in range(streams)))
            watching.cancel()
            await asyncio.sleep(IDLE * 2)
            async with session.get(f"{self.address}/metrics") as answer:
                found = re.search(r"^unrender_streams (\S+)", await answer.text(), re.MULTILINE)
        return found[1] if found else "unknown"

    async def _watch(self, pid: int) -> None:
        """Record the gateway's memory at intervals."""
        while True:
            await asyncio.sleep(SAMPLE)
            self.memory.append(memory(pid))


TOML = """[limits]
keepalive_interval = 1.0
kept_bytes = 1000000
[[models]]
name = "m"
backend = "llama-server"
url = "{engine}"
template = {template}
idle_timeout = {idle}
probe = false
"""
TEMPLATE = ROOT / "tests" / "templates" / "json-tags.jinja"


async def soak(minutes: float, streams: int, rate: float, seed: int) -> list[str]:
    """Run the soak test, print its figures, and return the faults."""
    with ExitStack() as stack:
        log = stack.enter_context(tempfile.TemporaryFile())
        async with Faulty(rate) as faulty:
            settings = TOML.format(engine=faulty.url, template=json.dumps(str(TEMPLATE)), idle=IDLE)
            # `/ready` would ask the engine.
            server = await asyncio.to_thread(configured, stack, settings, "/health", log)
            run = Soak(f"http://127.0.0.1:{server.port}", random.Random(seed), time.monotonic() + minutes * 60)
            left = await run.clients(server.process.pid, streams)
            files = len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))
            server.process.terminate()
            ended = await asyncio.to_thread(server.process.wait, 60)
        log.seek(0)
        logged = log.read().decode().splitlines()
    found = [*run.wrong, *(line for line in logged if "Traceback" in line or "defect" in line)]
    found += [f"{faulty.open} connections to the engine are left"] if faulty.open else []
    found += [f"streams left: {left}"] if left != "0.0" else []
    # The server ends by the signal itself.
    found += [f"the gateway ended with {ended}"] if ended != -signal.SIGTERM else []
    quarter = max(1, len(run.memory) // 4)
    early, late = (statistics.median(run.memory[at:][:quarter]) for at in (quarter, -quarter))
    if late > early * GROWTH + SLACK:
        found.append(f"memory grew from {early / 1e6:.0f} to {late / 1e6:.0f} MB")
    print(f"{run.count} requests, {run.ends.total()} ended, {len(run.wrong)} wrong, {files} files open at the end")
    print(", ".join(f"{name} {number}" for name, number in sorted(run.ends.items())))
    megabytes = [f"{size / 1e6:.1f} MB" for size in (early, late, max(run.memory))]
    print("memory: {} in the second quarter, {} in the last, {} at most".format(*megabytes))
    return found


def main() -> None:
    """Run the soak test, print the result, and exit with 1 if there was a fault."""
    asked = arguments(__doc__, minutes=30.0, streams=300, rate=5.0, seed=1)
    found: list[str] = []
    with suppress(KeyboardInterrupt):
        found = asyncio.run(soak(asked.minutes, asked.streams, asked.rate, asked.seed))
    print(*found[:20], sep="\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
