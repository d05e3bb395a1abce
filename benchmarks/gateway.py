"""Many streams at once through a gateway: what a chunk costs it, what a stream holds, and how late text arrives.

python benchmarks/gateway.py [--streams 1000] [--rate 8] [--tokens 60]

Three processes: a paced engine that speaks llama-server's `/completion`, the gateway, and the clients (this one). Each token
says which stream it belongs to, its number, and when the engine wrote it, so that whatever is lost, swapped or late is found. CPU time is
the gateway's own, from /proc, so other load changes little; lateness is wall time, and needs a quiet machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOKEN = re.compile(r"<(\d+)\.(\d+)@([\d.]+)> ")
TEMPLATE = """{%- if tools %}{{ tools | tojson }}{% endif %}{%- for m in messages %}<|{{ m.role }}|>
{%- if m.role == 'assistant' and m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}
{%- for c in m.tool_calls or [] %}<call>{"name": {{ c.function.name | tojson }}, "arguments": {{ c.function.arguments | tojson }}}</call>
{%- endfor %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"""


async def engine(rate: float) -> None:
    """Serve streams of `rate` tokens a second; the prompt says how many and for which stream."""
    ready = await asyncio.start_server(lambda r, w: _stream(r, w, rate), "127.0.0.1", 0, backlog=4096)
    print(ready.sockets[0].getsockname()[1], flush=True)
    await ready.serve_forever()


async def _stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rate: float) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = re.search(r"content-length: (\d+)", head)
    body = json.loads(await reader.readexactly(int(length[1]))) if length else None
    writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n")
    if body is None or "prompt" not in body:
        writer.write(b'{"tokens": []}')
        writer.close()
        return
    found = re.search(r"stream (\d+) tokens (\d+)", body["prompt"])
    assert found
    name, tokens = found[1], int(found[2])
    due = time.monotonic()
    for number in range(tokens):
        due += 1 / rate
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        _say(writer, {"content": f"<{name}.{number}@{time.monotonic():.4f}> ", "tokens": [1], "stop": False})
        await writer.drain()
    _say(writer, {"content": "", "stop": True, "stop_type": "eos", "tokens_predicted": tokens, "tokens_evaluated": 1})
    await writer.drain()
    writer.close()


def _say(writer: asyncio.StreamWriter, item: object) -> None:
    writer.write(b"data: " + json.dumps(item).encode() + b"\n\n")


async def client(port: int, name: int, tokens: int) -> tuple[list[float], bool]:
    """Return how late each token came, in seconds, and whether all came, in order and nobody else's."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    ask = {"stream": True, "tools": [tool], "messages": [{"role": "user", "content": f"stream {name} tokens {tokens}"}]}
    body = json.dumps(ask).encode()
    writer.write(
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
    )
    late: list[float] = []
    text = ""
    async for line in reader:
        now = time.monotonic()
        if b"[DONE]" in line:
            break
        if not line.startswith(b"data: ") or b'"content":"' not in line:
            continue
        text += json.loads(line[6:])["choices"][0]["delta"].get("content") or ""
        seen = [float(at) for _, _, at in TOKEN.findall(text)[len(late) :]]
        late += [now - at for at in seen]
    writer.close()
    whole = [(int(stream), int(number)) for stream, number, _ in TOKEN.findall(text)]
    return late, whole == [(name, number) for number in range(tokens)] and not TOKEN.sub("", text).strip()


def cpu(pid: int) -> float:
    """Return the seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> int:
    """Return the bytes that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def run(port: int, pid: int, streams: int, tokens: int) -> dict[str, float]:
    """Run streams at once and return the figures."""
    before, held = cpu(pid), memory(pid)
    peak = held
    tasks = [asyncio.create_task(client(port, name, tokens)) for name in range(streams)]
    while not all(task.done() for task in tasks):
        await asyncio.sleep(0.5)
        peak = max(peak, memory(pid))
    results = [task.result() for task in tasks]
    late = sorted(delay for delays, _ in results for delay in delays)
    return {
        "streams": streams,
        "wrong": sum(not whole for _, whole in results),
        "chunks": len(late),
        "cpu_us_per_chunk": 1e6 * (cpu(pid) - before) / len(late),
        "kb_per_stream": (peak - held) / streams / 1024,
        "late_ms_p50": 1000 * late[len(late) // 2],
        "late_ms_p99": 1000 * late[len(late) * 99 // 100],
    }


def main() -> None:
    """Print a line of figures for one stream, some, and all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=8.0)
    parser.add_argument("--tokens", type=int, default=60)
    parser.add_argument("--engine", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.engine:
        asyncio.run(engine(asked.rate))
        return
    command = [sys.executable, __file__, "--engine", "--rate", str(asked.rate)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other, tempfile.TemporaryDirectory() as folder:
        assert other.stdout is not None
        _measured(asked, int(other.stdout.readline()), Path(folder))
        other.kill()


def _measured(asked: argparse.Namespace, engine_port: int, folder: Path) -> None:
    (folder / "t.jinja").write_text(TEMPLATE)
    port = engine_port + 1
    settings = f'port = {port}\n[limits]\nstreams = 100000\n[[models]]\nname = "m"\nbackend = "llama-server"\n'
    (folder / "g.toml").write_text(
        settings + f'url = "http://127.0.0.1:{engine_port}"\ntemplate = "{folder}/t.jinja"\nconstrain = "never"\n'
    )
    command = [sys.executable, "-m", "unrender", "serve", "--config", str(folder / "g.toml")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as gateway:
        try:
            asyncio.run(_warm(port))
            for streams in sorted({1, asked.streams // 10 or 1, asked.streams}):
                figures = asyncio.run(run(port, gateway.pid, streams, asked.tokens))
                print("  ".join(f"{name} {value:.4g}" for name, value in figures.items()), flush=True)
        finally:
            gateway.kill()


async def _warm(port: int) -> None:
    """Wait until the gateway answers."""
    for _ in range(300):
        try:
            await client(port, 0, 1)
        except OSError:
            await asyncio.sleep(0.1)
        else:
            return
    sys.exit("the gateway does not answer")


if __name__ == "__main__":
    main()
