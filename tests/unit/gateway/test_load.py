"""Many streams at once: nothing is lost or swapped, and a chunk costs the same however many streams there are.

The full size, with processes of their own, is `benchmarks/gateway.py`.
"""

from __future__ import annotations

import asyncio
import time

import pytest
from live import listening
from paced import client, engine, port_of

from unrender.gateway import GatewayLimits

RATE = 60.0
"""Tokens a second of each stream."""


async def chunk_costs(streams: int, tokens: int) -> float:
    """Return the CPU seconds that a chunk costs, engine, gateway and clients together, without what a request costs."""
    paced = await engine(RATE)
    async with listening(f"http://127.0.0.1:{port_of(paced)}", limits=GatewayLimits(streams=streams)) as gateway:
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
