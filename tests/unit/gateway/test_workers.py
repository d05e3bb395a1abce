"""Tests of concurrency: streams stay separate, and clients take turns.

The full size, with separate processes, is in `benchmarks/gateway.py`.
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
from unrender.gateway.backends import EngineCapabilities
from unrender.gateway.gateway import GatewayLimits, Keys

CHAT = "/v1/chat/completions"


def tool(number, properties):
    """Return a tool with a large grammar, which shares no property with any other tool."""
    ends = [(-(10**15) - number, 10**16 + i) for i in range(properties)]
    schemas = [{"type": "integer", "minimum": low, "maximum": high} for low, high in ends]
    parameters = {"type": "object", "properties": {f"p{number}x{i}": schema for i, schema in enumerate(schemas)}}
    return {"type": "function", "function": {"name": f"f{number}", "parameters": parameters}}


@pytest.mark.slow
def test_small_request_waits_for_one_build_of_another_client():
    """A small request waits for a few grammars at most, even if another client has twelve large ones.

    On a busy machine, more may be built before the small request is read, so the best of five runs counts. In a single queue,
    the small one would always come last.
    """
    keys = Keys(models={"large": frozenset("*"), "small": frozenset("*")})

    def asked(key, *tools):
        return request(CHAT, headers=f"authorization: Bearer {key}\r\n", tools=list(tools))

    async def run(first):
        told = Told("Hi", capabilities=EngineCapabilities(dialect="gbnf", lazy=True, seed=False))
        async with listening(told, keys=keys) as gateway:
            await gateway.answer(asked("large", tool(first, 60)))  # The first build also waits for imports.
            numbers = range(first + 1, first + 13)
            large = [asyncio.create_task(gateway.answer(asked("large", tool(i, 60)), within=60)) for i in numbers]
            await asyncio.wait(large, return_when=asyncio.FIRST_COMPLETED)
            before = len(told.jobs)
            small = await gateway.answer(asked("small", tool(first + 13, 1)))
            assert all(b"200" in answer[:12] for answer in [small, *await asyncio.gather(*large)])
            # Jobs are counted at the engine, because several answers may reach their clients at the same time.
            [place] = [at for at, job in enumerate(told.jobs) if job.turn.request.tool(f"f{first + 13}")]
            return place - before

    waited = []
    while len(waited) < 5 and min(waited, default=12) > 3:
        waited.append(asyncio.run(run(100 * len(waited))))
    assert min(waited) <= 3  # One that was built but not sent, one in progress, and one that had its turn.


def test_light_client_does_not_wait_for_heavy_ones():
    """While eight expensive clients have work, another client's work runs at once, on the reserved thread."""

    async def run():
        workers, held, order = Workers(2, "test"), threading.Event(), []
        now = time.monotonic()
        for heavy_one in range(8):
            workers._spent.put(heavy_one, (60.0, now), weight=1)

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
    """Work that is cancelled while it waits never runs, and the work after it does."""

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
"""Tokens per second of each stream."""


async def chunk_costs(streams: int, tokens: int) -> float:
    """Return the CPU seconds per chunk of engine, gateway and clients, without the cost of a request."""
    paced = await engine(RATE)
    async with listening(f"http://127.0.0.1:{port_of(paced)}", limits=GatewayLimits(max_streams=streams)) as gateway:
        await carried(gateway.port, streams, 2)
        short, long = await carried(gateway.port, streams, 2), await carried(gateway.port, streams, tokens)
    paced.close()
    return (long - short) / (streams * (tokens - 2))


async def carried(port: int, streams: int, tokens: int) -> float:
    """Return the CPU seconds for a number of streams, and check that each one gets its own text."""
    begun = time.process_time()
    heard = await asyncio.gather(*(client(port, name, tokens) for name in range(streams)))
    spent = time.process_time() - begun
    assert all(one.whole() for one in heard)
    return spent


@pytest.mark.slow
def test_streams_are_kept_apart_and_a_chunk_costs_the_same():
    """Each of a hundred streams gets its own text, and a chunk costs about as much as among fifteen."""
    # Measurements vary on a busy machine, so one success is enough. A cost that grew with the streams would be 6.7 times as much.
    assert any(asyncio.run(chunk_costs(100, 40)) < 2.5 * asyncio.run(chunk_costs(15, 80)) for _ in range(3))
