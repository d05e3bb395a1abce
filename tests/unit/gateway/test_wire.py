"""Bytes that mean to be read in two ways: requests inside of requests, headers inside of values."""

from __future__ import annotations

import asyncio
import json

import pytest
from live import ASKED, listening, request
from serving import Told

from unrender.gateway import Keys

CHAT = "/v1/chat/completions"
HEAD = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\n"
BODY = json.dumps(ASKED[CHAT]).encode()
HIDDEN = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"
CHUNKED = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)


def heard(*sent, **settings):
    """Return what comes back for bytes, each over a connection of its own, and how many jobs the engine got."""
    engine = Told("Hi")

    async def run():
        async with listening(engine, **settings) as gateway:
            return [await gateway.answer(data) for data in sent]

    return asyncio.run(run()), len(engine.jobs)


@pytest.mark.slow
@pytest.mark.parametrize(
    "data",
    [
        f"{HEAD}content-length: 6\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n0\r\n\r\n".encode()
        + HIDDEN,
        f"{HEAD}content-length: {len(BODY)}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode() + BODY + HIDDEN,
        f"{HEAD}transfer-encoding: chunked, identity\r\nconnection: close\r\n\r\n".encode() + CHUNKED,
        f"{HEAD}transfer-encoding: xchunked\r\nconnection: close\r\n\r\n".encode() + CHUNKED,
        f"{HEAD}content-length: +{len(BODY)}\r\nconnection: close\r\n\r\n".encode() + BODY,
        f"{HEAD}content-length : {len(BODY)}\r\nconnection: close\r\n\r\n".encode() + BODY,
        f"{HEAD}x: 1\r\n content-length: {len(BODY)}\r\nconnection: close\r\n\r\n".encode() + BODY,
        f"{HEAD}content-length: {len(BODY)}\r\nx: a\x00b\r\nconnection: close\r\n\r\n".encode() + BODY,
        f"{HEAD}transfer-encoding: chunked\r\nconnection: close\r\n\r\n-1\r\n".encode() + BODY,
    ],
    ids=["both", "two lengths", "coding", "unknown coding", "sign", "space", "folded", "NUL", "negative chunk"],
)
def test_request_that_reads_in_two_ways_reaches_no_engine(data):
    """What two servers could cut differently is a 400, or no answer, and the connection ends: nothing is smuggled."""
    (answer,), jobs = heard(data)

    assert jobs == 0
    assert answer.count(b"HTTP/1.1 ") <= 1
    assert answer[:12] in (b"", b"HTTP/1.1 400", b"HTTP/1.1 501")


@pytest.mark.slow
def test_requests_one_after_another_are_apart():
    """Two requests in one go are two answers, each its own, in order."""
    two = f"{HEAD}content-length: {len(BODY)}\r\n\r\n".encode() + BODY + request(CHAT)

    (answer,), jobs = heard(two)

    assert (answer.count(b"HTTP/1.1 200"), jobs) == (2, 2)


@pytest.mark.slow
def test_no_header_is_made_of_a_clients_words():
    """Line ends in names, values and paths come back in no header, raw or escaped."""
    forged = "x\r\nx-forged: 1"
    requests = [
        request(CHAT, model=forged),
        request(CHAT, **{forged: 1}),
        request(CHAT, headers="x-request-id: a%0d%0ax-forged: 1\r\n"),
        request(CHAT, tools=[{"type": forged}]),
        b"GET /v1/models/x%0d%0ax-forged:%201 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
    ]

    answers, _ = heard(*requests)

    for answer in answers:
        head, _, _ = answer.partition(b"\r\n\r\n")
        assert not any(line.startswith(b"x-forged") for line in head.split(b"\r\n"))


@pytest.mark.slow
def test_key_that_comes_twice_opens_no_more_than_one():
    """Of two keys one counts, for the check of the key and of the model alike."""
    keys = Keys(models={"good": frozenset({"m"}), "other": frozenset({"x"})})
    both = (
        "authorization: Bearer good\r\nauthorization: Bearer other\r\n",
        "authorization: Bearer other\r\nx-api-key: good\r\n",
    )

    answers, jobs = heard(*(request(CHAT, headers=headers) for headers in both), keys=keys)

    assert all(answer.startswith(b"HTTP/1.1 404") for answer in answers)
    assert jobs == 0
