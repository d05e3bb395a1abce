"""Many concurrent streams through a gateway: CPU per chunk, memory per stream, and delay of text.

python benchmarks/gateway.py [--streams 1000] [--rate 8] [--seconds 8] [--litellm PROGRAM]
    [--only NAME] [--json FILE]

Processes: a paced engine (`tests/paced.py`), the server under test, and the clients (this process). The servers are:

- `relay`, which copies bytes without parsing them, the minimum for asyncio code;
- `unrender`, and
- LiteLLM's proxy, if its program is given or found.

Each is compared with the relay of the same run. CPU time is the server's own, from /proc, between the start of the last
stream and the first end; the cost of starting is counted separately. Delays are wall time, and need a quiet machine.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from reporting import ROOT, arguments, progress
from result_tables import finish
from served import cpu, memory, started

from paced import Heard, client, engine, port_of  # isort: skip - `reporting` sets the path

TEMPLATE = ROOT / "tests" / "templates" / "json-tags.jinja"
ALONE = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # Otherwise, it tries the network for minutes.
    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",  # The address is a loopback address.
}
_SETTLED = 2.0
"""Seconds after the first token of the last stream."""
_RAMP = 300
"""Requests per second until all streams have started."""
_FIRSTS = 60
"""Number of sequential requests for measuring the time to the first byte."""


async def run(port: int, pid: int, streams: int, asked: argparse.Namespace) -> dict[str, float]:
    """Run concurrent streams and return the figures."""
    idle = cpu(pid)
    await asyncio.sleep(_SETTLED)
    begun, held = cpu(pid), memory(pid)
    idle = (begun - idle) / _SETTLED
    started = time.monotonic()
    tokens = int(asked.rate * (asked.seconds + streams / _RAMP))
    tasks = []
    for name in range(streams):
        tasks.append(asyncio.create_task(client(port, name, tokens)))
        await asyncio.sleep(max(0.0, started + name / _RAMP - time.monotonic()))
    await asyncio.sleep(_SETTLED)
    settled, at, peak = cpu(pid), time.monotonic(), memory(pid)
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    until = time.monotonic()
    steady = cpu(pid) - settled - idle * (until - at)
    peak = max(peak, memory(pid))
    heard: list[Heard] = await asyncio.gather(*tasks)
    ended, altogether = cpu(pid) - idle * (time.monotonic() - started), sum(one.tokens for one in heard)
    # A chunk is one token of the engine. A server that is late may put several into one event.
    chunks = sum(at <= now <= until for one in heard for now, _ in one.came())
    cost = steady / chunks if until - at > 1 else math.nan  # Streams may end early on a busy machine.
    late = sorted(delay for one in heard for delay in one.late())
    return {
        "streams": streams,
        "wrong": sum(not one.whole() for one in heard),
        "us_per_chunk": 1e6 * cost,
        "ms_per_request": 1000 * (ended - begun - cost * altogether) / streams,
        "kb_per_stream": (peak - held) / streams / 1024,
        "late_ms_p99": 1000 * late[len(late) * 99 // 100],
    }


async def first(port: int, engine_port: int) -> dict[str, float]:
    """Return the milliseconds that the first byte arrives later than the engine's own."""
    over = []
    for name in range(_FIRSTS):
        direct, through = [await _first(one, name) for one in (engine_port, port)]
        over.append(1000 * (through - direct))
    return {"first_byte_ms_p50": statistics.median(over)}


async def _first(port: int, name: int) -> float:
    heard = await client(port, name, 1)
    return next(now for now, line in heard.lines if b"@" in line) - heard.asked


def main() -> None:
    """Print figures of each server: for the first byte, then for one stream, some, and all."""
    asked = arguments(
        __doc__,
        "--json",
        streams=1000,
        rate={"type": float, "default": 8.0, "help": "tokens a second of each stream"},
        seconds={"type": float, "default": 8.0, "help": "how long all streams are there together, and two more"},
        litellm={"default": shutil.which("litellm") or "", "help": "the program of LiteLLM's proxy"},
        only={"choices": ["relay", "unrender", "litellm"], "action": "append"},
        engine={"action": "store_true", "help": argparse.SUPPRESS},
        relay={"nargs": 2, "help": argparse.SUPPRESS},
    )
    if asked.engine:
        asyncio.run(_engine(asked.rate))
    elif asked.relay:
        asyncio.run(_relay(*asked.relay))
    else:
        finish(asked, "gateway", {"rows": list(_measure(asked))}, *["gateway"] * (not asked.only))


def _measure(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the rows of all servers, and print them."""
    command = [sys.executable, __file__, "--engine", "--rate", str(asked.rate)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other, tempfile.TemporaryDirectory() as folder:
        assert other.stdout is not None
        engine_port = int(other.stdout.readline())
        relay: dict[int, float] = {}
        try:
            for name, command in _servers(asked, engine_port, Path(folder)).items():
                if not asked.only or name in asked.only:
                    for row in _measured(name, command, asked, engine_port):
                        if (streams := int(row.get("streams", 0))) and (streams in relay or name == "relay"):
                            row["of_relay"] = row["us_per_chunk"] / relay.setdefault(streams, row["us_per_chunk"])
                        progress(f"{name} {row}")
                        yield {"server": name, **row}
        finally:
            other.kill()


def _measured(name: str, command: list[str], asked: argparse.Namespace, engine_port: int) -> Iterator[dict[str, float]]:
    """Yield the figures of one server.

    LiteLLM's proxy can't keep up with the largest number of streams on two cores, so it skips it.
    """
    with ExitStack() as stack:
        server = started(stack, command, own=ALONE)
        port, pid = server.port, server.process.pid
        asyncio.run(_warm(port))
        yield asyncio.run(first(port, engine_port))
        counts = sorted({1, asked.streams // 10 or 1, asked.streams})
        for streams in counts[:-1] if name == "litellm" else counts:
            yield asyncio.run(run(port, pid, streams, asked))


def _servers(asked: argparse.Namespace, engine_port: int, folder: Path) -> dict[str, list[str]]:
    """Return the commands that start the servers; `{port}` is a placeholder for the port."""
    address = f"http://127.0.0.1:{engine_port}"
    settings = '[limits]\nmax_streams = 100000\n[[models]]\nname = "m"\nbackend = "llama-server"\n'
    (folder / "g.toml").write_text(f'{settings}url = "{address}"\ntemplate = "{TEMPLATE}"\nconstrain = "never"\n')
    (folder / "litellm.yaml").write_text(
        f'model_list: [{{model_name: m, litellm_params: {{model: openai/m, api_base: "{address}/v1", api_key: any}}}}]\n'
    )
    found = {
        "relay": [sys.executable, __file__, "--relay", str(engine_port), "{port}"],
        "unrender": [sys.executable, "-m", "unrender", "serve", "--config", str(folder / "g.toml"), "--port", "{port}"],
    }
    if asked.litellm:
        yaml = str(folder / "litellm.yaml")
        found["litellm"] = [asked.litellm, "--config", yaml, "--port", "{port}", "--telemetry", "False"]
    return found


async def _engine(rate: float) -> None:
    server = await engine(rate)
    print(port_of(server), flush=True)
    await server.serve_forever()


async def _relay(engine_port: str, port: str) -> None:
    async def copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        source, sink = await asyncio.open_connection("127.0.0.1", engine_port)
        # The relay only detects the end of an answer by the end of the connection.
        head = head.replace(b"\r\n", b"\r\nconnection: close\r\n", 1)
        sink.write(head + (await reader.readexactly(int(length[1])) if length else b""))
        while data := await source.read(65536):
            writer.write(data)
            await writer.drain()
        sink.close()
        writer.close()

    server = await asyncio.start_server(copied, "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


async def _warm(port: int) -> None:
    """Wait until the server answers."""
    for _ in range(3000):  # Imports take long on a busy machine.
        with contextlib.suppress(OSError):
            if (await client(port, 0, 1)).done:
                return
        await asyncio.sleep(0.1)
    sys.exit("the server does not answer")


if __name__ == "__main__":
    main()
