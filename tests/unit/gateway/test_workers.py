"""Clients take turns: whoever comes waits for one piece of work of each other client, not for all of it."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import pytest
from live import listening, request
from serving import Told

from unrender.gateway import EngineCapabilities, Keys
from unrender.gateway.answers.workers import Workers

CHAT = "/v1/chat/completions"


def test_work_of_a_client_that_has_gone_is_not_begun():
    """Work that is cancelled while it waits is left out, and what comes after it is done."""
    done, begun, go = [], threading.Event(), threading.Event()

    def first():
        begun.set()
        go.wait(10)

    async def run():
        workers = Workers(1, "test")
        tasks = [asyncio.create_task(workers.run("a", first))]
        await asyncio.to_thread(begun.wait, 10)
        tasks += [asyncio.create_task(workers.run("a", partial(done.append, i))) for i in range(3)]
        await asyncio.sleep(0)
        tasks[2].cancel()
        await asyncio.sleep(0)
        go.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = asyncio.run(run())

    assert done == [0, 2]
    assert isinstance(found[2], asyncio.CancelledError)


def tool(number, properties):
    """Return a tool whose grammar takes a while: no other has the same."""
    schema = {"type": "integer", "minimum": -(10**15) - number, "maximum": 10**16 + number}
    parameters = {"type": "object", "properties": {f"p{number}x{i}": schema for i in range(properties)}}
    return {"type": "function", "function": {"name": f"f{number}", "parameters": parameters}}


@pytest.mark.slow
def test_small_request_waits_for_one_build_of_another_client():
    """While a client has twelve large grammars built, another's small one waits for the one that is being built, and a turn."""
    engine = Told("Hi", capabilities=EngineCapabilities(dialect="gbnf", lazy=True, seed=False))
    keys = Keys(models={"large": frozenset("*"), "small": frozenset("*")})

    def asked(key, *tools):
        return request(CHAT, headers=f"authorization: Bearer {key}\r\n", tools=list(tools))

    async def run():
        async with listening(engine, keys=keys) as gateway:
            await gateway.answer(asked("large", tool(99, 60)))  # What is built first waits for modules as well.
            large = [asyncio.create_task(gateway.answer(asked("large", tool(i, 60)), within=60)) for i in range(12)]
            await asyncio.wait(large, return_when=asyncio.FIRST_COMPLETED)
            before = sum(task.done() for task in large)
            small = await gateway.answer(asked("small", tool(50, 1)))
            after = sum(task.done() for task in large)
            assert all(b"200" in answer[:12] for answer in await asyncio.gather(*large))
            return small, before, after

    small, before, after = asyncio.run(run())

    assert small.startswith(b"HTTP/1.1 200")
    assert after - before <= 3  # One was built and not yet sent, one was being built, one had its turn.
