"""Start servers of one model for benchmarks, and send them requests: the gateway, and llama.cpp's own chat endpoint.

Strategy: all servers run llama.cpp's engine code with the same file and number of threads. A request is streamed and
timed from outside, by its first and last output.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

SERVE = (sys.executable, "-m", "unrender", "serve", "--port", "{port}")
Output = IO[bytes] | int | None
"""The output of a process: a file, `DEVNULL`, or that of this process."""


class Server(NamedTuple):
    """A server process with a port."""

    port: int
    process: subprocess.Popen[bytes]

    def get(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the response to a request, which is sent with POST if it has a body. Raises `HTTPError` for an error status."""
        headers = {"content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        return urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers))

    def post(self, body: Mapping[str, Any]) -> Any:
        """Return the response of Chat Completions. Raises `HTTPError` if the server rejects the request."""
        return self.get("/v1/chat/completions", body)


@dataclass(slots=True)
class Said:
    """A streamed answer with its times."""

    message: dict[str, Any] = field(default_factory=lambda: {"content": "", "tool_calls": []})
    tokens: int = 0
    first: float = 0.0
    """Seconds from the request to the first token."""
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Tokens a second after the first token; 0 for an answer of one token."""
        return (self.tokens - 1) / (self.seconds - self.first) if self.tokens > 1 else 0.0

    @property
    def calls(self) -> list[tuple[str, str]]:
        """The names and arguments of calls, as text."""
        return [(call["function"]["name"], call["function"]["arguments"]) for call in self.message["tool_calls"]]


def gateway(stack: ExitStack, path: Path, *options: str, own: Mapping[str, str] | None = None) -> Server:
    """Return a gateway with the model in its process, until the stack closes. `own` are environment variables."""
    return started(stack, [*SERVE, "--gguf", str(path), *options], "/ready", own)


def configured(stack: ExitStack, settings: str, ready: str = "/ready", output: Output = subprocess.DEVNULL) -> Server:
    """Return a gateway with these TOML settings, until the stack closes."""
    file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "gateway.toml"
    file.write_text(settings, encoding="utf-8")
    return started(stack, [*SERVE, "--config", str(file)], ready, output=output)


def llama_cpp(stack: ExitStack, path: Path, template: str = "") -> Server:
    """Return llama.cpp's own server and chat endpoint, until the stack closes. `template` replaces the file's."""
    return started(stack, [sys.executable, __file__, str(path), "{port}", template], "/health")


def unused_port() -> int:
    """Return a free port."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def started(
    stack: ExitStack,
    command: Sequence[str],
    ready: str = "",
    own: Mapping[str, str] | None = None,
    output: Output = subprocess.DEVNULL,
) -> Server:
    """Return the server that a command starts, until the stack closes. `{port}` in the command is its port.

    If there is a path, it waits until the server answers there. Exits with an error message if the server ends.
    """
    port = unused_port()
    words = [word.replace("{port}", str(port)) for word in command]
    process = stack.enter_context(
        subprocess.Popen(words, stdout=output, stderr=output, env={**os.environ, **(own or {})})
    )
    stack.callback(process.kill)
    server = Server(port, process)
    while process.poll() is None:
        try:
            if ready:
                server.get(ready)
            return server
        except OSError:
            time.sleep(0.1)
    sys.exit(f"{words[:4]}: the server ended")


def ask(server: Server, body: Mapping[str, Any], show: Callable[[Mapping[str, Any]], object] = bool) -> Said:
    """Return the streamed answer of Chat Completions. `show` gets each delta. Raises `OSError` if the server rejects the request."""
    more = {"model": "any", "stream": True, "stream_options": {"include_usage": True}}
    said, start = Said(), time.monotonic()
    with server.post({**more, **body}) as answer:
        for chunk in frames(answer):
            if "error" in chunk:
                break
            said.first = said.first or time.monotonic() - start
            show(_add(said, chunk))
    said.seconds = time.monotonic() - start
    return said


def frames(answer: Iterable[bytes]) -> Iterator[Any]:
    """Yield the JSON data of a stream."""
    return (json.loads(line[6:]) for line in answer if line.startswith(b"data: {"))


def _add(said: Said, chunk: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add a chunk to the answer, and return its delta."""
    if usage := chunk.get("usage"):
        said.tokens = usage["completion_tokens"]
    delta: Mapping[str, Any] = chunk["choices"][0]["delta"] if chunk["choices"] else {}
    said.message["content"] += delta.get("content") or ""
    calls = said.message["tool_calls"]
    for part in delta.get("tool_calls") or ():
        while len(calls) <= part["index"]:
            calls.append({"id": part["id"], "type": "function", "function": {"name": "", "arguments": ""}})
        for name, text in (part.get("function") or {}).items():
            calls[part["index"]]["function"][name] += text or ""
    return delta


def _threads(pid: int) -> list[Path]:
    """Return the threads of a process and of its child processes; none if the system doesn't list them."""
    own = [*Path(f"/proc/{pid}/task").glob("*")]
    children = [int(child) for thread in own for child in (thread / "children").read_text().split()]
    return own + [thread for child in children for thread in _threads(child)]


def cpu(pid: int) -> float:
    """Return the processor seconds of a process and its children so far, in all threads."""
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in _threads(pid)) / 1e9


def memory(pid: int) -> int:
    """Return the bytes of memory of a process and its children."""
    processes = {thread.parent.parent for thread in _threads(pid)}
    return sum(int((one / "statm").read_text().split()[1]) for one in processes) * os.sysconf("SC_PAGE_SIZE")


def _llama_server(path: str, port: str, template: str) -> None:
    """Run llama.cpp's server until the process is stopped."""
    from unrender.gateway.backends import free_cores  # noqa: PLC0415 - only here
    from unrender.gateway.backends.llama_server import SLOTS, llama_cpp  # noqa: PLC0415 - only here

    xllamacpp = llama_cpp()
    parameters = xllamacpp.CommonParams()
    parameters.model.path, parameters.port, parameters.n_ctx, parameters.n_parallel = path, int(port), 0, SLOTS
    if threads := free_cores():
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.chat_template, parameters.warmup = template, False
    kept = xllamacpp.Server(parameters)
    while kept:
        time.sleep(3600)


if __name__ == "__main__":
    _llama_server(*sys.argv[1:])
