"""vLLM's own front end with a paced engine, which `gateway.py --vllm PYTHON` starts.

python benchmarks/gateway_vllm.py FOLDER RATE --port PORT

It runs with the Python of the task `real-servers`. Its app, renderer, detokenizer, tool parser (`hermes`) and the
sockets between the two processes are vLLM's own. Only the process with the weights is a fake, which writes one token
per stream at a time, `RATE` per second. A busy engine puts the tokens of many streams into one message per step, so
tokens that are due within one step's time are sent together here, too. The vocabulary is the bytes, and the words
`@00000;` to `@49999;`, so that one token can contain all data of the test. The first word of an answer is its stream's
name, and the others are milliseconds of the clock.
"""

from __future__ import annotations

import heapq
import importlib
import math
import os
import re
import sys
import time
from functools import cached_property
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from paced import ASKED, Heard

WORD = re.compile(r"@(\d{5});")
_WORDS = 50_000
_BYTES = 256
"""The id of the first word."""
_STEP = 0.02
"""Duration of an engine step with many streams, in seconds."""
_ADD, _ABORT, _UTILITY = b"\x00", b"\x01", b"\x03"
_LIMIT = 1
"""The finish reason `length`, as a number in vLLM."""


class Worded(Heard):
    """The words that a client has received."""

    def came(self) -> list[tuple[float, str]]:
        """Return the arrival time and the number of each token."""
        return [(now, word) for now, line in self.lines for word in WORD.findall(line.decode())]

    def late(self) -> list[float]:
        """Return the delay of each token except the first, in seconds."""
        return [(1000 * now - int(word)) % _WORDS / 1000 for now, word in self.came()[1:]]

    def whole(self) -> bool:
        """Return whether all tokens arrived, without tokens of other streams or extra characters."""
        text = self.text()
        said = [int(word) for word in WORD.findall(text)]
        return self.done and not WORD.sub("", text) and len(said) == self.tokens and said[0] == self.name


def main(folder: str, rate: str, *options: str) -> None:
    """Run the server until the process is stopped."""
    here = Path(folder)
    ended, kept = os.pipe()
    if not os.fork():
        # After two forks, it isn't a child of the server, whose CPU time would include it.
        if not os.fork():
            os.close(kept)
            _core(here, float(rate), ended)
        os._exit(0)
    os.wait()
    _write(here / "vllm")
    serve: Any = importlib.import_module("real_vllm").serve
    addresses = {"input_address": f"ipc://{here}/asked", "output_address": f"ipc://{here}/said"}

    def client(**made: Any) -> Any:
        # As for one of several front ends, which don't start the engine themselves.
        own = importlib.import_module("vllm.v1.engine.core_client").AsyncMPClient
        return own(**{**made, "client_addresses": addresses})

    tools = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")
    serve(here / "vllm", client, "--disable-uvicorn-access-log", *tools, *options)


def _write(folder: Path) -> None:
    """Write a model's configuration and its tokenizer."""
    words = [f"@{number:05};" for number in range(_WORDS)]
    tokenizer = importlib.import_module("byte_tokenizer").byte_tokenizer(
        ("<tool_call>", "</tool_call>"), eos="<|end|>", words=words
    )
    small = {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 64}
    config = importlib.import_module("transformers").LlamaConfig(vocab_size=len(tokenizer), **small)
    config.architectures = ["LlamaForCausalLM"]
    config.max_position_embeddings = 1 << 15
    for part in (config, tokenizer):
        part.save_pretrained(folder)


def _core(folder: Path, rate: float, ended: int) -> None:
    """Run the fake engine until the front end exits."""
    zmq, packed = importlib.import_module("zmq"), importlib.import_module("msgspec").msgpack
    context = zmq.Context()
    asked, said = context.socket(zmq.DEALER), context.socket(zmq.PUSH)
    asked.identity = bytes(2)  # the engine of rank 0
    asked.connect(f"ipc://{folder}/asked")
    said.connect(f"ipc://{folder}/said")
    asked.send(b"")  # ready
    poller = zmq.Poller()
    for one in (asked, ended):
        poller.register(one, zmq.POLLIN)
    paced = _Paced(folder / "vllm", rate)
    while True:
        ready = dict(poller.poll(math.ceil(1000 * max(0.0, paced.next() - time.monotonic()))))
        if ended in ready:
            return
        if asked in ready:
            kind, told, *_ = asked.recv_multipart()
            answer = paced.told(kind, packed.decode(told))
        else:
            answer = paced.step()
        if answer:
            said.send(packed.encode(answer))


class _Paced:
    """The streams of an engine. Lists use the field order of vLLM's `EngineCoreRequest` and `EngineCoreOutputs`."""

    def __init__(self, folder: Path, rate: float) -> None:
        self._folder, self._every = folder, 1 / rate
        self._left: dict[str, int] = {}
        self._due: list[tuple[float, str, int | None]] = []
        self._free = 0.0

    @cached_property
    def _tokenizer(self) -> Any:
        return importlib.import_module("tokenizers").Tokenizer.from_file(str(self._folder / "tokenizer.json"))

    def next(self) -> float:
        """Return the time of the next output."""
        return max(self._due[0][0], self._free) if self._due else time.monotonic() + 1

    def told(self, kind: bytes, what: Any) -> Any:
        """Handle a message; return the immediate reply, if any."""
        if kind == _ADD:
            asked = ASKED.search(self._tokenizer.decode(what[1]).encode())
            assert asked, "this prompt is not one of ours"
            self._left[what[0]] = int(asked[2])
            heapq.heappush(self._due, (time.monotonic() + self._every, what[0], int(asked[1])))
        elif kind == _ABORT:
            for stream in what:
                self._left.pop(stream, None)
        elif kind == _UTILITY:
            result = ["generate"] if what[2] == "get_supported_tasks" else None
            return [0, [], None, 0.0, [what[1], None, [None, result]]]
        return None

    def step(self) -> Any:
        """Return a token for each stream that is due."""
        now, outputs = time.monotonic(), []
        while now >= self._free and self._due and self._due[0][0] <= now:
            due, stream, name = heapq.heappop(self._due)
            if stream not in self._left:
                continue
            left = self._left[stream] = self._left[stream] - 1
            token = _BYTES + (int(1000 * now) % _WORDS if name is None else name)
            outputs.append([stream, [token], None, None, None, None if left else _LIMIT])
            if left:
                heapq.heappush(self._due, (due + self._every, stream, None))
            else:
                del self._left[stream]
        if not outputs:
            return None
        self._free = now + _STEP
        return [0, outputs]


if __name__ == "__main__":
    main(*sys.argv[1:])
