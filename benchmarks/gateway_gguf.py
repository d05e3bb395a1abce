"""A random model in a real llama.cpp: its own chat endpoint, compared with the gateway in front of its raw endpoint.

python benchmarks/gateway_gguf.py [--requests 20] [--tokens 300]

It needs `xllamacpp`, which contains llama-server's own code. The model is tiny, so the comparison is about the other
work: prompt, grammar, sampling, parsing, frames. CPU time is that of the engine's process, plus the gateway's if there
is one.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from argparse import SUPPRESS
from pathlib import Path
from typing import Any

from reporting import arguments

ROOT = Path(__file__).resolve().parent.parent
SPECIAL = ("<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<tool_call>", "</tool_call>")
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
PLAIN = {"temperature": 1, "top_p": 1, "top_k": 0, "min_p": 0, "messages": [{"role": "user", "content": "Hello"}]}
CASES: dict[str, dict[str, Any]] = {"text": {}, "tools": {"tools": [TOOL]}}


def measure(requests: int = 20, tokens: int = 300) -> None:
    """Print a line for each case and endpoint, or the reason why it wasn't measured."""
    try:
        importlib.import_module("xllamacpp")
    except ImportError:
        print("gguf: xllamacpp is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--engine", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as engine:
            assert engine.stdout is not None
            address = engine.stdout.readline().strip()
            port = int(address.rpartition(":")[2]) + 1
            serve = [sys.executable, "-m", "unrender", "serve", address, "--port", str(port)]
            with subprocess.Popen(serve, stderr=subprocess.DEVNULL) as gateway:
                try:
                    _compared(address, f"http://127.0.0.1:{port}", engine.pid, gateway.pid, requests, tokens)
                finally:
                    gateway.kill()
                    engine.kill()


def _compared(own: str, ours: str, engine: int, gateway: int, requests: int, tokens: int) -> None:
    _wait(ours)
    for name, more in CASES.items():
        figures = {"llama-server": [0.0] * 4, "unrender": [0.0] * 4}
        for seed in range(-2, requests):
            for endpoint, address in (("llama-server", own), ("unrender", ours)):
                said = _asked(address, PLAIN | more | {"seed": seed + 2, "max_tokens": tokens}, (engine, gateway))
                if seed >= 0:  # The first requests warm up.
                    figures[endpoint] = [sum(pair) for pair in zip(figures[endpoint], said, strict=True)]
        for endpoint, (chunks, first, spent, failed) in figures.items():
            line = f"first_ms {1000 * first / requests:.3g}  cpu_us_per_chunk {1e6 * spent / max(chunks, 1):.4g}"
            print(f"gguf {name}: {endpoint}  chunks {chunks:.0f}  {line}  failed {failed:.0f}", flush=True)


def _asked(address: str, body: dict[str, Any], pids: tuple[int, ...]) -> tuple[float, float, float, float]:
    """Return a stream's chunks, the seconds to the first one, the CPU time, and 1 if it ended with an error."""
    data = json.dumps(body | {"stream": True}).encode()
    headers = {"content-type": "application/json"}
    begun, spent = time.monotonic(), sum(map(_cpu, pids))
    lines: list[bytes] = []
    first = 0.0
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{address}/v1/chat/completions", data, headers)) as answer:
            for line in answer:
                if line.startswith(b"data: {"):
                    first = first or time.monotonic() - begun
                    lines.append(line)
    except urllib.error.HTTPError as error:
        lines = [error.read()]
    broken = not lines or b'"error"' in lines[-1]
    return len(lines), first, sum(map(_cpu, pids)) - spent, float(broken)


def _cpu(pid: int) -> float:
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def _wait(address: str) -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(f"{address}/ready")
        except OSError:
            time.sleep(0.1)
        else:
            return
    sys.exit("the gateway does not answer")


def _engine(folder: str) -> None:
    """Run the engine until the process is stopped."""
    sys.path.insert(0, str(ROOT / "tests"))
    from random_gguf import write_gguf  # noqa: PLC0415 - the tests' own

    from unrender.gateway.backends.llama_server import start  # noqa: PLC0415

    path = Path(folder) / "random.gguf"
    template = (ROOT / "src" / "unrender" / "gateway" / "sampler.jinja").read_text(encoding="utf-8")
    write_gguf(path, template, SPECIAL, ("<think>", "</think>"), eos="<|end|>")
    url, kept = start(str(path), threads=1)
    print(url, flush=True)
    while kept:
        time.sleep(3600)


if __name__ == "__main__":
    given = arguments(__doc__, requests=20, tokens=300, engine={"help": SUPPRESS})
    if given.engine:
        _engine(given.engine)
    else:
        measure(given.requests, given.tokens)
