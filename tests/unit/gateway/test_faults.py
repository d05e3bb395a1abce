"""Tests of network faults on either side: the error is right, nothing leaks, and other streams aren't affected."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import socket
import time
from contextlib import asynccontextmanager

import pytest
from cases import thinned
from engine_server import MAKERS, EngineServer, Scripted, events
from live import ASKED, listening, request, settled
from serving import Told, posted, served

from unrender.gateway.gateway import GatewayLimits

PATHS = list(ASKED)
TEXT = "Hé ✓!"
SAID = events(
    *({"content": character, "tokens": [1], "stop": False} for character in TEXT),
    {"content": "", "stop": True, "stop_type": "eos", "tokens_predicted": 9, "tokens_evaluated": 3},
    done=False,
)
ENGINE = {"/tokenize": {"tokens": []}, "/props": {}, "/health": {}}
ENDS = {"/v1/chat/completions": b"[DONE]", "/v1/responses": b"response.failed", "/v1/messages": b"event: error"}
"""Last event of a stream with an error."""


def refused(port):
    """Return True if nobody listens at a port."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED


@asynccontextmanager
async def between(said, **settings):
    """Run a gateway in front of an engine that sends `said`."""
    async with EngineServer({**ENGINE, "/completion": said}) as engine, listening(engine.url, **settings) as gateway:
        yield gateway, engine


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
@thinned(7)
def test_stream_that_is_cut_at_any_byte_ends_with_an_error(path, step):
    """Wherever the engine's stream breaks off, the client gets the text so far and an error, but never half a character or the engine's address."""
    connection = Scripted()
    application = served(MAKERS["llama-server"](connection))
    for end in range(0, len(SAID) - 2, step):
        connection.parts = [SAID[at : min(at + 40, end)] for at in range(0, end, 40)]
        answer = posted(application, path, json={**ASKED[path], "stream": True})
        begun = b"}" in SAID[:end]
        assert answer.status_code == (200 if begun else 502)
        assert (ENDS[path] if begun else b"error") in answer.content
        assert "\ufffd" not in answer.text
        assert "http://engine" not in answer.text


@pytest.mark.few(6)
@pytest.mark.slow
@pytest.mark.parametrize("more", [[30.0], [b"data: {nonsense}\n\n"], [b'data: {"error": "x"}\n\n'], []])
@pytest.mark.parametrize("path", PATHS)
def test_engine_that_fails_later_ends_the_stream(path, more):
    """The text before the fault is delivered, then an error in the API's form. Another stream isn't affected."""

    async def run():
        async with between([SAID[:130], 0.02, *more], idle_timeout=0.6) as (gateway, engine):
            broken = asyncio.create_task(gateway.ask(path, stream=True))
            await settled(lambda: "/completion" in str(engine.asked))
            engine.answers = {**ENGINE, "/completion": [SAID[:100], 0.05, SAID[100:]]}
            whole = asyncio.create_task(gateway.ask(path))
            return await broken, await whole

    (status, body), (other, said) = asyncio.run(run())
    assert status == other == 200
    assert body.index(b"H") < body.index(ENDS[path])
    assert TEXT in json.dumps(json.loads(said), ensure_ascii=False)


@pytest.mark.slow
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("path", PATHS)
def test_client_that_goes_cancels_the_engines_request(path, stream):
    """If a client closes its connection, the engine's request ends within 100 ms, in every API, streamed or not."""

    async def run():
        async with between([SAID[:200], 30.0, b"never"]) as (gateway, engine):
            _, writer = await gateway.send(request(path, stream=stream))
            await settled(lambda: gateway.application.state.gateway.streams and "/completion" in str(engine.asked))
            await asyncio.sleep(0.05)
            begun = time.process_time()
            writer.transport.abort()
            # Client, gateway and engine share this loop, which never sleeps here. So CPU time is all the time that they had.
            while not engine.gone.is_set():
                assert time.process_time() - begun <= 0.1
                await asyncio.sleep(0)

    asyncio.run(run())


@pytest.mark.slow
def test_slow_reader_fills_no_memory():
    """A client that doesn't read stops the engine as soon as the sockets between them are full."""
    word = b'data: {"content": "' + b"word " * 2000 + b'", "tokens": [1], "stop": false}\n\n'

    async def run():
        async with between([word] * 5000) as (gateway, engine):
            _, writer = await gateway.send(request(PATHS[0], stream=True))
            await settled(lambda: engine.said)
            sent, before = engine.said, 0
            while sent != before:
                before = sent
                await asyncio.sleep(0.3)
                sent = engine.said
            writer.transport.abort()
            return sent

    assert 0 < asyncio.run(run()) * len(word) < 30_000_000


@pytest.mark.slow
def test_answers_end_when_the_shutdown_timeout_is_over(caplog):
    """After a signal, answers continue and new connections are refused. After the timeout, streams end with an error, and the engine's
    work ends.
    """

    async def run():
        engine = Told(["Hello", 60.0, "never"])
        async with listening(engine, shutdown_timeout=1.5) as gateway:
            streams = [asyncio.create_task(gateway.ask(path, stream=True)) for path in PATHS]
            await settled(lambda: len(engine.jobs) == 3)
            gateway.server.should_exit = True
            await settled(lambda: refused(gateway.port))
            assert engine.closed == 0
            ends = await asyncio.gather(*streams, return_exceptions=True)
            return engine.closed, ends

    with caplog.at_level(logging.INFO):
        closed, ends = asyncio.run(run())
    assert closed == 3
    for path, (status, body) in zip(PATHS, ends, strict=True):
        assert status == 200
        assert b"Hello" in body
        assert ENDS[path] in body
        assert b"the gateway is shutting down" in body
        assert body.endswith(b"0\r\n\r\n")
    assert "Traceback" not in caplog.text
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) <= 1


@pytest.mark.slow
def test_silent_engine_is_waited_for_with_pings():
    """While the engine is silent, comments keep the stream open, before the first piece and after it."""
    application = served(Told([0.4, "Hello", 0.4, " you"]), limits=GatewayLimits(keepalive_interval=0.03))
    text = posted(application, PATHS[0], json={**ASKED[PATHS[0]], "stream": True}).text

    before, _, after = text.partition("Hello")
    assert before.count(": ping") >= 2
    assert after.count(": ping") >= 2
    assert text.endswith("data: [DONE]\n\n")
