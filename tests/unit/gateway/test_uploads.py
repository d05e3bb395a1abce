"""Request bodies share a limit, and one of them always makes progress."""

from __future__ import annotations

import asyncio

import pytest
from live import heard, request

from unrender.gateway.failure import Failure, FailureKind
from unrender.gateway.gateway import GatewayLimits
from unrender.gateway.uploads import Uploads

PART = b" " * 1000


class Sender:
    """A client that sends one part per call, and counts the parts."""

    def __init__(self, parts: int, *, last: bytes = b"{}", hangs: bool = False) -> None:
        self.parts, self.last, self.hangs = parts, last, hangs
        self.taken = 0

    async def __call__(self) -> dict[str, object]:
        """Return the next part. If the client hangs, the last part never comes."""
        await asyncio.sleep(0)
        if self.taken == self.parts:
            if self.hangs:
                await asyncio.Event().wait()
            return {"type": "http.request", "body": self.last, "more_body": False}
        self.taken += 1
        return {"type": "http.request", "body": PART, "more_body": True}


def test_bodies_share_a_budget_and_all_arrive():
    """The oldest of forty bodies is read while the others wait, so memory is bounded. All bodies arrive in the end."""

    async def run():
        uploads = Uploads(most=100_000, budget=50_000, seconds=60)
        senders, most = [Sender(90) for _ in range(40)], 0
        reading = [asyncio.create_task(uploads.read(sender, {})) for sender in senders]
        while not all(task.done() for task in reading):
            await asyncio.sleep(0)
            most = max(most, sum(uploads._held.values()))
        return most, await asyncio.gather(*reading)

    most, found = asyncio.run(run())

    assert found == [{}] * 40
    assert most <= 50_000 + 90_000 + 40 * len(PART)


def test_small_body_does_not_wait_for_large_ones():
    """While a slow body fills the budget, a body that arrives at once is read."""

    async def run():
        uploads = Uploads(most=100_000, budget=50_000, seconds=60)
        slow = [asyncio.create_task(uploads.read(Sender(60, hangs=True), {})) for _ in range(3)]
        await asyncio.sleep(0.05)
        try:
            return await asyncio.wait_for(uploads.read(Sender(0, last=b'{"a": 1}'), {}), 5)
        finally:
            for task in slow:
                task.cancel()

    assert asyncio.run(run()) == {"a": 1}


@pytest.mark.parametrize(
    ("senders", "kinds"), [(1, [FailureKind.TOO_SLOW]), (2, [FailureKind.TOO_SLOW, FailureKind.BUSY])]
)
def test_slow_bodies_end(senders, kinds):
    """A body that doesn't arrive in time gets 408, or 503 if it waited for others."""

    async def run():
        uploads = Uploads(most=100_000, budget=50_000, seconds=0.3)
        reading = [uploads.read(Sender(60, hangs=True), {}) for _ in range(senders)]
        return await asyncio.gather(*reading, return_exceptions=True)

    found = asyncio.run(run())
    assert all(isinstance(one, Failure) for one in found)
    assert [one.kind for one in found] == kinds


@pytest.mark.slow
def test_uploads_are_answered_one_after_the_other():
    """Large bodies that are sent at the same time wait for each other, and all are answered."""
    sent = request("/v1/chat/completions", messages=[{"role": "user", "content": "a" * 400_000}])

    answers, _ = heard(*[sent] * 8, limits=GatewayLimits(upload_bytes=100_000))

    assert [answer[9:12] for answer in answers] == [b"200"] * 8
