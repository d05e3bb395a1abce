"""A fake engine on a loopback socket: it returns scripted HTTP answers, and notices when its client disconnects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, Self

from unrender.gateway.backends import Backend, EngineError, Job
from unrender.gateway.backends.completions import VLLM, Completions
from unrender.gateway.backends.connection import Connection
from unrender.gateway.backends.llama_server import LlamaServer, Ollama
from unrender.gateway.backends.sglang import SGLang

Said = Sequence[bytes | float]
"""Parts of a response: bytes, and pauses in seconds."""


class EngineServer:
    """Answers each path with its scripted value.

    A mapping is sent as JSON, under its `status` if it has one. A function gets the request body, and may return None to
    close the connection at once. A stream ends by closing the connection abruptly.
    """

    def __init__(self, answers: Mapping[str, Any], *, status: int = 200) -> None:
        self.answers = answers
        self.status = status
        self.asked: list[tuple[str, Any, dict[str, str]]] = []
        """Path, body and headers of each request."""
        self.said = 0
        """Items that were sent."""
        self.open = 0
        """Open connections."""
        self.gone = asyncio.Event()
        """Set when the client has disconnected during an answer."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=4096)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            path, body, headers = await read_request(reader)
            self.asked.append((path, body, headers))
            answer = self.answers.get(path, {"error": {"message": f"no {path} here"}})
            answer = answer(body) if callable(answer) else answer
            if answer is None:
                return
            status = self.status if path in self.answers else 404
            status = answer.get("status", status) if isinstance(answer, Mapping) else status
            said = [json.dumps(answer).encode()] if isinstance(answer, Mapping) else answer
            writer.write(f"HTTP/1.1 {status} X\r\nconnection: close\r\n\r\n".encode())
            await self._say(said, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def _say(self, said: Said, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for item in said:
            if isinstance(item, bytes):
                writer.write(item)
                await writer.drain()
                self.said += 1
                continue
            try:
                await asyncio.wait_for(reader.read(1), item)
            except TimeoutError:
                continue
            self.gone.set()
            return


async def read_request(reader: asyncio.StreamReader) -> tuple[str, Any, dict[str, str]]:
    """Return the path, the body and the headers of the next request."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return head[0].split()[1], json.loads(body) if body else None, headers


def events(*items: Any, done: bool = True) -> bytes:
    """Return a body of server-sent events."""
    frames = [f"data: {json.dumps(item, ensure_ascii=False)}\n\n" for item in items]
    return "".join([*frames, "data: [DONE]\n\n" if done else ""]).encode()


async def pieces_of(backend: Backend, job: Job) -> list[Any]:
    """Return the pieces of a job's answer, and the error that ended them."""
    found: list[Any] = []
    try:
        async for piece in backend.generate(job):
            found.append(piece)  # noqa: PERF401 - what came before an error counts
    except EngineError as error:
        found.append(error)
    return found


def with_engine(
    make: Callable[..., Backend], answers: Mapping[str, Any], act: Any, *, idle_timeout: float = 5, **server: Any
) -> Any:
    """Call `act` with a backend and an engine that gives these answers, and return its result."""

    async def run() -> Any:
        async with EngineServer(answers, **server) as engine:
            backend = make(engine.url, idle_timeout=idle_timeout)
            try:
                return await act(backend, engine)
            finally:
                await backend.close()

    return asyncio.run(run())


class Scripted(Connection):
    """A fake connection that streams these parts, and returns this JSON from other paths."""

    def __init__(self, parts: Sequence[bytes] = (), others: Mapping[str, Any] | None = None) -> None:
        super().__init__("http://engine")
        self.parts = parts
        self.others = others or {}

    @asynccontextmanager
    async def _request(self, path: str, *_: Any, **__: Any) -> AsyncGenerator[Any, None]:
        parts = iter(self.parts)

        async def readany() -> bytes:
            return next(parts, b"")

        async def read() -> bytes:
            return json.dumps(self.others.get(path, {})).encode()

        content = SimpleNamespace(readany=readany, total_bytes=0)
        yield SimpleNamespace(content=content, connection=None, close=lambda: None, read=read)


_MAKERS: dict[str, Callable[[Connection], Backend]] = {
    "llama-server": LlamaServer,
    "vllm": VLLM,
    "openai": lambda connection: Completions(connection, model="its-name"),
    "sglang": SGLang,
    "ollama": lambda connection: Ollama(connection, model="its-name"),
}


def _engine(kind: str, at: str | Connection, **how: Any) -> Backend:
    return _MAKERS[kind](Connection(at, **how) if isinstance(at, str) else at)


MAKERS = {kind: partial(_engine, kind) for kind in _MAKERS}
"""Constructors of each kind of engine, for an address or a connection."""


def character_ids(text: str, special: Mapping[str, int]) -> list[int]:
    """Return the ids of a text. Each special token and each other character has one id."""
    ids = []
    while text:
        token = next((token for token in special if text.startswith(token)), text[0])
        ids.append(special.get(token) or ord(token))
        text = text[len(token) :]
    return ids
