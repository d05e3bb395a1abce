"""Tests with more clients than file descriptors. Each answer is complete, or refused with 503."""

from __future__ import annotations

import asyncio
import resource
import sys
from pathlib import Path

import pytest
from engine_server import EngineServer, events
from live import request
from serving import HELLO, Told, posted, served

from unrender.gateway.gateway import divided, raise_limit

LIMIT = 64
CLIENTS = 120
TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|a|>{% endif %}"
SAID = [
    *(events({"content": "word ", "stop": False}, done=False), 0.3),
    events({"content": "end", "stop": True, "stop_type": "eos"}, done=False),
]
CHAT = "/v1/chat/completions"


async def ask(port: int, stop: asyncio.Event) -> tuple[list[bytes], bytes]:
    """Send requests until an answer arrives. Return the refusals and the answer."""
    refused = []
    while not stop.is_set():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request(CHAT, stream=True))
        answer = await reader.read()
        writer.close()
        if answer[9:12] != b"503":
            return refused, answer
        refused.append(answer)
        await asyncio.sleep(0.2)
    return refused, b""


async def flood(folder: Path) -> tuple[list[tuple[list[bytes], bytes]], list[str]]:
    """Return the answers of a gateway with few descriptors, and its log."""
    config = folder / "gateway.toml"
    folder.joinpath("t.jinja").write_text(TEMPLATE)
    async with EngineServer({"/tokenize": {"tokens": []}, "/props": {}, "/health": {}, "/completion": SAID}) as engine:
        config.write_text(
            f'port = 0\n[[models]]\nbackend = "llama-server"\nurl = "{engine.url}"\ntemplate = "{folder}/t.jinja"\nprobe = false\n'
        )
        server = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "unrender", "serve", "--log", "--config", str(config)),
            stderr=asyncio.subprocess.PIPE,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT)),
        )
        try:
            line = b""
            while b"listening at" not in line:
                line = await server.stderr.readline()
            log = asyncio.create_task(server.stderr.read())
            port = int(line.split(b":")[-1].split(b"/")[0])
            stop = asyncio.Event()
            found = await asyncio.wait_for(asyncio.gather(*(ask(port, stop) for _ in range(CLIENTS))), 120)
        finally:
            server.terminate()
            await server.wait()
        return found, (await log).decode().splitlines()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_more_clients_than_descriptors_are_refused_not_failed(tmp_path: Path) -> None:
    """With 64 descriptors, 120 clients get complete answers or 503, and all of them are served in the end."""
    found, log = asyncio.run(flood(tmp_path))

    refused = [answer for answers, _ in found for answer in answers]
    assert len(refused) > 10
    assert all(b"retry-after: " in answer and b"too_many_streams" in answer for answer in refused)
    assert all(answer[9:12] == b"200" and answer.endswith(b"0\r\n\r\n") and b"[DONE]" in answer for _, answer in found)
    others = [line for line in log if '"surface"' not in line]
    assert len(others) < 10, others
    assert not [line for line in log if "out of system resource" in line or "Traceback" in line]


def test_limit_is_raised_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The soft limit of open files becomes the hard limit."""
    given = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 5000))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: given.append(limits))

    raise_limit()

    assert given == [(5000, 5000)]


def test_each_choice_needs_a_descriptor() -> None:
    """A request for several choices is refused if not all of them fit."""
    application = served(Told("Hi"))
    application.state.gateway.most_jobs = divided(20).jobs

    found = [posted(application, CHAT, json={"messages": HELLO, "n": n}) for n in (9, 10)]

    assert [answer.status_code for answer in found] == [200, 503]
    assert found[1].json()["error"]["code"] == "too_many_streams"
