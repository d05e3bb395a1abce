"""A paced engine without a model, and clients that record what they receive, for load tests of a server between them.

The engine speaks llama-server's `/completion` and OpenAI's `/v1/chat/completions`. A prompt names its stream and the
number of tokens. Each token contains its stream, its number and its time, so that any lost, swapped or late token is
detected.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

TOKEN = re.compile(r"<(\d+)\.(\d+)@([\d.]+)> ")
ASKED = re.compile(rb"stream (\d+) tokens (\d+)")
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


async def engine(rate: float) -> asyncio.Server:
    """Serve streams of `rate` tokens a second on a free port."""

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await _stream(reader, writer, rate):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    return await asyncio.start_server(served, "127.0.0.1", 0, backlog=4096)


def port_of(server: asyncio.Server) -> int:
    """Return the port of a server."""
    return int(server.sockets[0].getsockname()[1])


async def _stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rate: float) -> bool:
    """Answer one request; return whether the connection stays open for another, as with real engines."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = _LENGTH.search(head)
    body = await reader.readexactly(int(length[1])) if length else b""
    asked, chat = ASKED.search(body), b"/chat/completions" in head.split(b"\r\n")[0]
    kept = b"connection: close" not in head.lower()
    kind = b"text/event-stream" if asked else b"application/json"
    rest = b"transfer-encoding: chunked\r\n\r\n" if kept else b"connection: close\r\n\r\n"
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: " + kind + b"\r\n" + rest)

    def say(data: bytes) -> None:
        writer.write(b"%x\r\n%b\r\n" % (len(data), data) if kept else data)

    if asked is None:
        say(b'{"tokens": []}')
    else:
        await _tokens(asked[1].decode(), int(asked[2]), rate, chat, say, writer)
    writer.write(b"0\r\n\r\n" if kept else b"")
    await writer.drain()
    return kept


async def _tokens(
    name: str, tokens: int, rate: float, chat: bool, say: Callable[[bytes], None], writer: asyncio.StreamWriter
) -> None:
    """Send the tokens of a stream at its pace."""
    due = time.monotonic()
    for number in range(tokens):
        due += 1 / rate
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        text = f"<{name}.{number}@{time.monotonic():.4f}> "
        say(_event(_chunk({"content": text}) if chat else {"content": text, "tokens": [1], "stop": False}))
        await writer.drain()
    last = {"content": "", "stop": True, "stop_type": "eos", "tokens_predicted": tokens, "tokens_evaluated": 1}
    say(_event(_chunk({}, "stop") if chat else last) + (b"data: [DONE]\n\n" if chat else b""))


def _chunk(delta: object, reason: str | None = None) -> object:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def _event(item: object) -> bytes:
    return b"data: " + json.dumps(item).encode() + b"\n\n"


@dataclass(slots=True)
class Heard:
    """The lines that one client received, each with its time."""

    name: int
    tokens: int
    asked: float = 0.0
    lines: list[tuple[float, bytes]] = field(default_factory=list)
    done: bool = False

    def came(self) -> list[tuple[float, str]]:
        """Return the arrival time and the sending time of each token. A server may put several into one line."""
        return [(now, token[2]) for now, line in self.lines for token in TOKEN.findall(line.decode())]

    def late(self) -> list[float]:
        """Return the delay of each token in seconds."""
        return [now - float(written) for now, written in self.came()]

    def whole(self) -> bool:
        """Return whether all tokens arrived in order, without tokens of other streams or extra characters."""
        text = self.text()
        said = [(int(stream), int(number)) for stream, number, _ in TOKEN.findall(text)]
        return self.done and not TOKEN.sub("", text) and said == [(self.name, i) for i in range(self.tokens)]

    def text(self) -> str:
        """Return the complete text."""
        choices = [choice for _, line in self.lines for choice in json.loads(line[6:])["choices"]]
        return "".join(choice["delta"].get("content") or "" for choice in choices)


async def client(
    port: int, name: int, tokens: int, *, path: str = "/v1/chat/completions", kind: type[Heard] = Heard
) -> Heard:
    """Request a stream and return the received lines."""
    heard = kind(name, tokens, time.monotonic())
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    messages = [{"role": "user", "content": f"stream {name} tokens {tokens}"}]
    body = json.dumps({"model": "m", "stream": True, "tools": [_TOOL], "messages": messages}).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    async for line in reader:
        if b"[DONE]" in line:
            heard.done = True
            break
        if line.startswith(b"data: {") and b'"choices"' in line:
            heard.lines.append((time.monotonic(), line))
    writer.close()
    return heard
