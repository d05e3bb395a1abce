"""Measure an in-process model by number of threads: tokens per second alone, and next to a busy process.

python benchmarks/threads.py [FILE.gguf] [--rounds 5] [--tokens 20]

Strategy: there is a gateway for each configuration, all with the same model, by default the example model. Requests
alternate between them, so that other load affects all of them equally. Each figure is the median of the rounds and
includes the prompt. The busy process runs a counting loop.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from contextlib import ExitStack

from reporting import arguments
from served import Server, ask, gateway

from unrender.gateway.example import example_model

CORES = str(os.cpu_count())
PASSIVE = {"OMP_WAIT_POLICY": "passive"}
WAYS = {
    "default": ((), {}),
    f"{CORES} threads": (("--threads", CORES), {}),
    f"{CORES} threads, passive": (("--threads", CORES), PASSIVE),
}
BUSY = (0, 1)
QUESTION = {"messages": [{"role": "user", "content": "Tell a long story of a dog."}], "temperature": 0}


def main() -> None:
    """Print a line for each configuration."""
    given = arguments(__doc__, "file", rounds=5, tokens=20)
    with ExitStack() as stack:
        path = given.file or example_model()
        servers = {name: gateway(stack, path, *options, own=own) for name, (options, own) in WAYS.items()}
        found: dict[tuple[str, int], list[float]] = {}
        for busy in BUSY:
            others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
            try:
                for _ in range(given.rounds):
                    for name, server in servers.items():
                        found.setdefault((name, busy), []).append(_rate(server, given.tokens))
            finally:
                for other in others:
                    other.kill()
    for name in WAYS:
        rates = [statistics.median(found[name, busy]) for busy in BUSY]
        print(f"{name:24} tokens_per_second  alone {rates[0]:5.1f}  beside a busy process {rates[1]:5.1f}")


def _rate(server: Server, tokens: int) -> float:
    """Return the tokens per second of an answer, starting with the request."""
    return tokens / ask(server, {**QUESTION, "max_tokens": tokens}).seconds


if __name__ == "__main__":
    main()
