"""Many at once: streams are kept apart, and clients take turns.

The full size, with processes of their own, is `benchmarks/gateway.py`.
"""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial

import pytest
from live import listening, request
from paced import client, engine, port_of
from serving import Told

from unrender.gateway.answers.turns import Workers
from unrender.gateway.backends.backend import EngineCapabilities
from unrender.gateway.gateway import GatewayLimits, Keys

CHAT = "/v1/chat/completions"


def tool(number, properties):
    """Return a tool whose grammar takes a while: no other has the same, and no two of its properties."""
    ends = [(-(10**15) - number, 10**16 + i) for i in range(properties)]
    schemas = [{"type": "integer", "minimum": low, "maximum": high} for low, high in ends]
    parameters = {"type": "object", "properties": {f"p{number}x{i}": schema for i, schema in enumerate(schemas)}}
    return {"type": "function", "function": {"name": f"f{number}", "parameters": parameters}}


@pytest.mark.slow
def test_small_request_waits_for_one_build_of_another_client():
    """While a client has twelve large grammars built, another's small one waits for the one that is being built, and a turn.

    On a busy machine more may be built until the small request has been read, so the best of five runs counts. Where requests wait in
    one line, the small one comes last in each.
    """
    keys = Keys(models={"large": frozenset("*"), "small": frozenset("*")})

    def asked(key, *tools):
        return request(CHAT, headers=f"authorization: Bearer {key}\r\n", tools=list(tools))

    async def run(first):
        told = Told("Hi", capabilities=EngineCapabilities(dialect="gbnf", lazy=True, seed=False))
        async with listening(told, keys=keys) as gateway:
            await gateway.answer(asked("large", tool(first, 60)))  # What is built first waits for modules as well.
            numbers = range(first + 1, first + 13)
            large = [asyncio.create_task(gateway.answer(asked("large", tool(i, 60)), within=60)) for i in numbers]
            await asyncio.wait(large, return_when=asyncio.FIRST_COMPLETED)
            before = len(told.jobs)
            small = await gateway.answer(asked("small", tool(first + 13, 1)))
            assert all(b"200" in answer[:12] for answer in [small, *await asyncio.gather(*large)])
            # Counted where jobs reach the engine, since answers reach their clients several at a time.
            [place] = [at for at, job in enumerate(told.jobs) if job.turn.request.tool(f"f{first + 13}")]
            return place - before

    waited = []
    while len(waited) < 5 and min(waited, default=12) > 3:
        waited.append(asyncio.run(run(100 * len(waited))))
    assert min(waited) <= 3  # One was built and not yet sent, one was being built, one had its turn.


def test_light_client_does_not_wait_for_heavy_ones():
    """While eight clients that needed much time have work, another one's work runs at once, on the thread that is left to it."""

    async def run():
        workers, held, order = Workers(2, "test"), threading.Event(), []
        now = time.monotonic()
        workers._spent.update(dict.fromkeys(range(8), (60.0, now)))

        def heavy(client):
            held.wait(20)
            order.append(client)

        tasks = [asyncio.create_task(workers.run(client, partial(heavy, client))) for client in range(8)]
        await asyncio.sleep(0)
        try:
            # The heavy work ends only after the light work has.
            await asyncio.wait_for(workers.run("light", partial(order.append, "light")), 20)
        finally:
            held.set()
        await asyncio.gather(*tasks)
        return order

    order = asyncio.run(run())
    assert order[0] == "light"
    assert sorted(order[1:]) == [*range(8)]


def test_waiting_work_that_is_cancelled_leaves_its_thread():
    """Work that is cancelled while it waits never runs, and what waits behind it does."""

    async def run():
        workers, held, done = Workers(1, "test"), threading.Event(), []
        first = asyncio.create_task(workers.run("a", partial(held.wait, 20)))
        second = asyncio.create_task(workers.run("b", partial(done.append, "b")))
        third = asyncio.create_task(workers.run("c", partial(done.append, "c")))
        await asyncio.sleep(0.01)
        second.cancel()
        held.set()
        await asyncio.wait_for(asyncio.gather(first, third), 20)
        return done

    assert asyncio.run(run()) == ["c"]


RATE = 60.0
"""Tokens a second of each stream."""


async def chunk_costs(streams: int, tokens: int) -> float:
    """Return the CPU seconds that a chunk costs, engine, gateway and clients together, without what a request costs."""
    paced = await engine(RATE)
    async with listening(f"http://127.0.0.1:{port_of(paced)}", limits=GatewayLimits(max_streams=streams)) as gateway:
        await carried(gateway.port, streams, 2)
        short, long = await carried(gateway.port, streams, 2), await carried(gateway.port, streams, tokens)
    paced.close()
    return (long - short) / (streams * (tokens - 2))


async def carried(port: int, streams: int, tokens: int) -> float:
    """Return the CPU seconds that so many streams take; each has to hear its own text, whole."""
    begun = time.process_time()
    heard = await asyncio.gather(*(client(port, name, tokens) for name in range(streams)))
    spent = time.process_time() - begun
    assert all(one.whole() for one in heard)
    return spent


@pytest.mark.slow
def test_streams_are_kept_apart_and_a_chunk_costs_the_same():
    """Each of a hundred streams hears its own text, whole, and a chunk costs about what it costs among fifteen."""
    # What is measured moves on a busy machine: it has to hold once. A cost that grew with the streams would be 6.7 times as much.
    assert any(asyncio.run(chunk_costs(100, 40)) < 2.5 * asyncio.run(chunk_costs(15, 80)) for _ in range(3))
