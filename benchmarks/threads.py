"""How many threads a model in this process should have: tokens a second alone, and beside a busy process.

python benchmarks/threads.py [FILE.gguf] [--rounds 5] [--tokens 20]

Strategy: a gateway for each way, all with the same model, by default the example one. They are asked in turns, so that whatever else
the machine does meets all of them alike; each figure is the median of the rounds, prompt included. A busy process is one that counts.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path

from unrender.gateway.example import example_model

CORES = str(os.cpu_count())
PASSIVE = {"OMP_WAIT_POLICY": "passive"}
WAYS = {
    "default": ((), {}),
    f"{CORES} threads": (("--threads", CORES), {}),
    f"{CORES} threads, passive": (("--threads", CORES), PASSIVE),
}
BUSY = (0, 1)
QUESTION = {"messages": [{"role": "user", "content": "Tell a long story of a dog."}], "temperature": 0, "stream": True}


def main() -> None:
    """Print a line for each way."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("file", nargs="?", type=Path)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--tokens", type=int, default=20)
    given = arguments.parse_args()
    with ExitStack() as stack:
        ports = {name: _gateway(given.file or example_model(), name, stack) for name in WAYS}
        found: dict[tuple[str, int], list[float]] = {}
        for busy in BUSY:
            others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
            try:
                for _ in range(given.rounds):
                    for name, port in ports.items():
                        found.setdefault((name, busy), []).append(_rate(port, given.tokens))
            finally:
                for other in others:
                    other.kill()
    for name in WAYS:
        rates = [statistics.median(found[name, busy]) for busy in BUSY]
        print(f"{name:24} tokens_per_second  alone {rates[0]:5.1f}  beside a busy process {rates[1]:5.1f}")


def _gateway(path: Path, name: str, stack: ExitStack) -> int:
    """Return the port of a gateway that runs until the stack ends."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = int(unused.getsockname()[1])
    options, own = WAYS[name]
    command = [sys.executable, "-m", "unrender", "serve", "--gguf", str(path), "--port", str(port), *options]
    gateway = stack.enter_context(subprocess.Popen(command, stderr=subprocess.DEVNULL, env={**os.environ, **own}))
    stack.callback(gateway.kill)
    while gateway.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/ready")
            return port
        except OSError:
            time.sleep(0.1)
    sys.exit("threads: the gateway ended")


def _rate(port: int, tokens: int) -> float:
    """Return the tokens a second of an answer, from the request on."""
    body = json.dumps({**QUESTION, "model": "any", "max_tokens": tokens}).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions", body, {"content-type": "application/json"}
    )
    start = time.monotonic()
    with urllib.request.urlopen(request) as answer:
        answer.read()
    return tokens / (time.monotonic() - start)


if __name__ == "__main__":
    main()
