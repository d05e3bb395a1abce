"""Several engines of one model: who gets a request, what another takes over, and what the client learns when none is there."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

import pytest
from engine_server import EngineServer, events
from live import free_port, listening, settled

from unrender.gateway.backends import connection
from unrender.gateway.backends.connection import Connection
from unrender.gateway.backends.llama_server import LlamaServer

pytestmark = pytest.mark.slow
CHAT = "/v1/chat/completions"
OTHERS = {"/tokenize": {"tokens": []}, "/props": {}, "/health": {}}
WORD = events({"content": "Hi", "tokens": [1], "stop": False}, done=False)
END = events({"content": "", "stop": True, "stop_type": "eos"}, done=False)
WHOLE = [WORD, END]


class Closed:
    """An address at which nobody listens."""

    def __init__(self) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"


@asynccontextmanager
async def before(*said, **more):
    """A gateway that listens before engines that say this; None is an engine that is not there."""
    async with AsyncExitStack() as stack:
        engines = [
            Closed() if one is None else await stack.enter_async_context(EngineServer({**OTHERS, "/completion": one}))
            for one in said
        ]
        backend = LlamaServer(Connection(*(engine.url for engine in engines), idle=2.0))
        yield await stack.enter_async_context(listening(backend, **more)), *engines


def jobs(engine):
    """Return how many jobs an engine was sent."""
    return sum(path == "/completion" for path, _, _ in engine.asked)


def test_engine_with_the_fewest_answers_on_their_way_is_asked():
    """Jobs that come at a time are shared alike; one after the other, all go to the first, which knows their beginning."""

    async def run():
        async with before([WORD, 0.2, END], [WORD, 0.2, END]) as (gateway, one, two):
            at_once = await asyncio.gather(*(gateway.ask(CHAT) for _ in range(4)))
            shared = jobs(one), jobs(two)
            one.answers = two.answers = {**OTHERS, "/completion": WHOLE}
            for _ in range(2):
                await gateway.ask(CHAT)
            return at_once, shared, (jobs(one), jobs(two))

    at_once, shared, later = asyncio.run(run())
    assert [status for status, _ in at_once] == [200] * 4
    assert (shared, later) == ((2, 2), (4, 2))


@pytest.mark.parametrize(
    "dead",
    [None, [], [0.01], {"error": {"code": 503, "message": "Loading model"}}],
    ids=["not there", "ends at once", "ends before its first byte", "busy"],
)
def test_engine_that_dies_before_its_first_byte_is_replaced(dead):
    """Another engine answers in its place, and the client notices nothing, streamed or not."""

    async def run():
        async with before(dead, WHOLE) as (gateway, one, _):
            if isinstance(dead, dict):
                one.status = 503
            first = await gateway.ask(CHAT, stream=True)
            return first, await gateway.ask(CHAT)

    for status, body in asyncio.run(run()):
        assert status == 200
        assert b"Hi" in body
        assert b"error" not in body


def test_engine_that_is_replaced_counts():
    """What went wrong at an engine is told, although another one takes its job at once."""

    async def run():
        async with EngineServer({"/completion": WHOLE}) as engine:
            several, errors = Connection(Closed().url, engine.url), []
            async with aclosing(several.lines("/completion", {}, {}, errors)) as lines:
                said = [line async for read in lines for line in read]
            await several.close()
            return said, errors

    said, errors = asyncio.run(run())
    assert (len(said), errors) == (2, ["unreachable"])


def test_engine_that_dies_later_ends_its_stream_alone():
    """What came is delivered and the error follows, since nobody can go on; the next request goes elsewhere."""

    async def run():
        async with before([WORD, 0.05], WHOLE) as (gateway, one, two):
            broken = await gateway.ask(CHAT, stream=True)
            await one.__aexit__()
            return broken, jobs(two), await gateway.ask(CHAT)

    (status, body), elsewhere, (other, _) = asyncio.run(run())
    assert (status, elsewhere, other) == (200, 0, 200)
    assert body.index(b"Hi") < body.index(b"broke off")


def test_prompt_that_ends_engines_does_not_get_to_all_of_them():
    """What has reached an engine is sent as often as a job may be, so one bad request does not end every engine."""

    async def run():
        async with before([], [], [], []) as (gateway, *engines):
            return await gateway.ask(CHAT), sum(map(jobs, engines))

    (status, body), sent = asyncio.run(run())
    assert (status, sent) == (502, 2)
    assert b"broke off before its last word" in body


def test_none_there_is_a_503():
    """Where no engine is there, the client is told so, with a status that it tries again at."""

    async def run():
        async with before(None, None) as (gateway, *_):
            answer = await gateway.answer(b"GET /ready HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            return answer, await gateway.ask(CHAT, stream=True), await gateway.ask(CHAT)

    ready, *asked = asyncio.run(run())
    assert ready.startswith(b"HTTP/1.1 503")
    for status, body in asked:
        assert status == 503
        assert b"none of the 2 engines can answer: the engine cannot be reached" in body
        assert b"127.0.0.1" not in body


def test_engine_with_bad_health_is_drained_and_comes_back(monkeypatch):
    """One whose health is bad gets no new requests and ends what it has begun; when it is good again, so do requests."""
    monkeypatch.setattr(connection, "_EVERY", 0.02)

    async def run():
        async with before([WORD, 0.4, END], WHOLE) as (gateway, one, two):
            (model,) = gateway.application.state.gateway.models
            begun = asyncio.create_task(gateway.ask(CHAT))
            await settled(lambda: jobs(one))
            one.answers = {"/completion": one.answers["/completion"]}  # no health: 404
            await settled(lambda: model.backend.missing)
            said = await gateway.answer(b"GET /ready HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            for _ in range(3):
                await gateway.ask(CHAT)
            drained, first = (jobs(one), jobs(two)), await begun
            one.answers = {**OTHERS, "/completion": WHOLE}
            await settled(lambda: not model.backend.missing)
            await gateway.ask(CHAT)
            return said, drained, first, jobs(one)

    said, drained, (status, body), after = asyncio.run(run())
    assert said.startswith(b"HTTP/1.1 200")
    assert b"1 of its 2 engines cannot answer" in said
    assert (drained, status, after) == ((1, 3), 200, 2)
    assert b"Hi" in body
