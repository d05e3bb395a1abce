"""Bytes that mean to be read in two ways: requests inside of requests, headers inside of values."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from live import ASKED, listening, request
from serving import Told

from unrender.gateway import Keys

CHAT = "/v1/chat/completions"
HEAD = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\n"
BODY = json.dumps(ASKED[CHAT]).encode()
HIDDEN = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"
STATUS = re.compile(rb"HTTP/1\.\d \d{3}")
CHUNKED = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)


def heard(*sent, **settings):
    """Return what comes back for bytes, each over a connection of its own, and how many jobs the engine got."""
    engine = Told("Hi")

    async def run():
        async with listening(engine, **settings) as gateway:
            return [await gateway.answer(data) for data in sent]

    return asyncio.run(run()), len(engine.jobs)


COUNTED = f"content-length: {len(BODY)}\r\n"
CODED = "transfer-encoding: chunked\r\n"
TWO_WAYS = {
    "both": f"{HEAD}content-length: 6\r\n{CODED}\r\n".encode() + b"0\r\n\r\n",
    "both, the other first": f"{HEAD}{CODED}content-length: 6\r\n\r\n".encode() + b"0\r\n\r\n",
    "two lengths": f"{HEAD}{COUNTED}content-length: 0\r\n\r\n".encode() + BODY,
    "one length twice": f"{HEAD}{COUNTED}{COUNTED}\r\n".encode() + BODY,
    "a list of lengths": f"{HEAD}content-length: {len(BODY)}, {len(BODY)}\r\n\r\n".encode() + BODY,
    "sign": f"{HEAD}content-length: +{len(BODY)}\r\n\r\n".encode() + BODY,
    "underscore": f"{HEAD}content-length: {len(BODY)}_0\r\n\r\n".encode() + BODY,
    "no length": f"{HEAD}content-length:\r\n\r\n".encode(),
    "huge length": f"{HEAD}content-length: {'9' * 40}\r\n\r\n".encode(),
    "name with underscore": f"{HEAD}content_length: {len(BODY)}\r\n\r\n".encode(),
    "length for one hop": f"{HEAD}connection: content-length\r\n{COUNTED}\r\n".encode() + BODY,
    "coding": f"{HEAD}transfer-encoding: chunked, identity\r\n\r\n".encode() + CHUNKED,
    "unknown coding": f"{HEAD}transfer-encoding: xchunked\r\n\r\n".encode() + CHUNKED,
    "identity": f"{HEAD}transfer-encoding: identity\r\n{COUNTED}\r\n".encode() + BODY,
    "chunked twice": f"{HEAD}{CODED}{CODED}\r\n".encode() + CHUNKED,
    "vertical tab": f"{HEAD}transfer-encoding: \x0bchunked\r\n\r\n".encode() + CHUNKED,
    "old and chunked": b"POST /v1/chat/completions HTTP/1.0\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" + CHUNKED,
    "space before the colon": f"{HEAD}content-length : {len(BODY)}\r\n\r\n".encode() + BODY,
    "folded": f"{HEAD}x: 1\r\n content-length: {len(BODY)}\r\n\r\n".encode() + BODY,
    "folded at once": f"POST {CHAT} HTTP/1.1\r\n x: 1\r\nhost: x\r\n\r\n".encode(),
    "folded value": f"{HEAD}transfer-encoding:\r\n chunked\r\n\r\n".encode() + CHUNKED,
    "NUL": f"{HEAD}{COUNTED}x: a\x00b\r\n\r\n".encode() + BODY,
    "control character": f"{HEAD}{COUNTED}x: a\x01b\r\n\r\n".encode() + BODY,
    "bare CR": f"{HEAD}{COUNTED}x: a\rtransfer-encoding: chunked\r\n\r\n".encode() + BODY,
    "bare LF": f"{HEAD}x: a\ncontent-length: {len(BODY)}\r\n\r\n".encode() + BODY,
    "bare LF all over": HIDDEN.replace(b"\r\n", b"\n"),
    "no name": f"{HEAD}: {len(BODY)}\r\n\r\n".encode() + BODY,
    "no colon": f"{HEAD}content-length\r\n\r\n".encode() + BODY,
    "empty line first": b"\r\n" + HIDDEN,
    "no host": f"POST {CHAT} HTTP/1.1\r\n{COUNTED}\r\n".encode() + BODY,
    "two hosts": f"{HEAD}host: y\r\n{COUNTED}\r\n".encode() + BODY,
    "host with a path": f"POST {CHAT} HTTP/1.1\r\nhost: x/v1 y\r\n{COUNTED}\r\n".encode() + BODY,
    "absolute target": f"POST http://y{CHAT} HTTP/1.1\r\nhost: x\r\n{COUNTED}\r\n".encode() + BODY,
    "authority": b"CONNECT x:80 HTTP/1.1\r\nhost: x:80\r\n\r\n" + HIDDEN,
    "connect": b"CONNECT /v1 HTTP/1.1\r\nhost: x\r\n\r\n" + HIDDEN,
    "asterisk": f"POST * HTTP/1.1\r\nhost: x\r\n{COUNTED}\r\n".encode() + BODY,
    "fragment": f"POST {CHAT}#x HTTP/1.1\r\nhost: x\r\n{COUNTED}\r\n".encode() + BODY,
    "two spaces": f"POST  {CHAT} HTTP/1.1\r\nhost: x\r\n{COUNTED}\r\n".encode() + BODY,
    "tab": f"POST\t{CHAT} HTTP/1.1\r\nhost: x\r\n{COUNTED}\r\n".encode() + BODY,
    "no version": f"POST {CHAT}\r\nhost: x\r\n{COUNTED}\r\n".encode() + BODY,
    "version 0.9": f"POST {CHAT} HTTP/0.9\r\nhost: x\r\n{COUNTED}\r\n".encode() + BODY,
    "version 2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "expectation": f"{HEAD}{COUNTED}expect: 100-continue, x\r\n\r\n".encode() + BODY,
    "negative chunk": f"{HEAD}{CODED}\r\n-1\r\n".encode() + BODY,
    "chunk in 0x": f"{HEAD}{CODED}\r\n0x10\r\n".encode() + BODY,
    "space before a chunk's size": f"{HEAD}{CODED}\r\n 5\r\n".encode() + BODY,
    "space after a chunk's size": f"{HEAD}{CODED}\r\n5 \r\n".encode() + BODY,
    "chunk extension": f"{HEAD}{CODED}\r\n{len(BODY):x};x\n={CHAT}\r\n".encode() + BODY + b"\r\n0\r\n\r\n",
    "plain chunk extension": f"{HEAD}{CODED}\r\n{len(BODY):x};a=b\r\n".encode() + BODY + b"\r\n0\r\n\r\n",
    "chunk's size too long": f"{HEAD}{CODED}\r\n{len(BODY):020x}\r\n".encode() + BODY + b"\r\n0\r\n\r\n",
    "chunk longer than its size": f"{HEAD}{CODED}\r\n2\r\n".encode() + BODY + b"\r\n0\r\n\r\n",
    "bare LF after a chunk": f"{HEAD}{CODED}\r\n{len(BODY):x}\r\n".encode() + BODY + b"\n0\r\n\r\n",
    "bare LF after a chunk's size": f"{HEAD}{CODED}\r\n{len(BODY):x}\n".encode() + BODY + b"\r\n0\r\n\r\n",
    "trailer": f"{HEAD}{CODED}\r\n".encode() + CHUNKED[:-2] + b"content-length: 5\r\n\r\n",
}
"""Bytes that another server may cut differently, on a connection that is to stay open."""


@pytest.mark.slow
def test_request_that_reads_in_two_ways_gets_one_refusal():
    """What two servers could cut differently is one 400 or 501, and the connection ends: what comes after it is not read."""
    answers, jobs = heard(*(data + HIDDEN for data in TWO_WAYS.values()))

    for name, answer in zip(TWO_WAYS, answers, strict=True):
        assert len(STATUS.findall(answer)) == 1, (name, answer)
        assert answer[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 501"), (name, answer)
    assert jobs == 0


@pytest.mark.slow
def test_what_was_asked_before_a_wrong_request_is_answered():
    """A whole request is answered although the bytes after it are wrong; those get no answer, and the connection ends."""
    good = f"{HEAD}{COUNTED}\r\n".encode() + BODY

    answers, jobs = heard(*(good + data + HIDDEN for data in TWO_WAYS.values() if data[:1].isalpha()))

    assert {(answer[:12], answer.count(b"HTTP/1.1 200")) for answer in answers} == {(b"HTTP/1.1 200", 1)}
    assert jobs == len(answers)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 0.01])
def test_request_may_come_in_pieces(seconds):
    """A body in chunks, and a head that comes byte by byte, are read as what they are."""
    data = f"{HEAD}{CODED}connection: close\r\n\r\n".encode() + CHUNKED

    async def run():
        engine = Told("Hi")
        async with listening(engine) as gateway:
            reader, writer = await gateway.send(b"")
            for at in range(len(data)):
                writer.write(data[at : at + 1])
                if at % 7 == 0:
                    await asyncio.sleep(seconds)
            answer = await asyncio.wait_for(reader.read(), 10)
            writer.close()
            return answer, len(engine.jobs)

    answer, jobs = asyncio.run(run())

    assert (answer[:12], jobs) == (b"HTTP/1.1 200", 1)


@pytest.mark.slow
def test_half_a_head_is_not_waited_for(monkeypatch):
    """A head that does not come to its end in time is a 408; a connection over which nothing comes is closed."""
    monkeypatch.setattr("unrender.gateway.http.door.HEAD_SECONDS", 0.3)

    late, silent = heard(HEAD.encode(), b"")[0]

    assert late[:12] == b"HTTP/1.1 408"
    assert silent == b""


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
