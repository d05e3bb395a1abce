"""Where requests end: any chunking gives the same, and bytes that mean to be read in two ways are refused."""

from __future__ import annotations

import asyncio
import json
import re
from itertools import pairwise

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live import ASKED, listening, request
from serving import Told, corpus

from unrender.gateway import Keys
from unrender.gateway.http.framing import Framing
from unrender.limits import MAX_BLOCK, MAX_LISTED

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
TWO_WAYS = {row["name"]: row["sent"].encode("latin-1") for row in corpus("two_ways")}
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
def test_upgrade_is_not_made_and_costs_no_request():
    """A client that would rather speak HTTP/2 is answered in HTTP/1.1, and so is what it asks next, in the same go."""
    wish = f"{HEAD}{COUNTED}connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n\r\n"

    (answer,), jobs = heard(wish.encode() + BODY + request(CHAT))

    assert (answer.count(b"HTTP/1.1 200"), jobs) == (2, 2)


@pytest.mark.slow
@pytest.mark.parametrize("streamed", [True, False])
def test_old_client_hears_no_sizes_of_chunks(streamed):
    """HTTP/1.0 knows no chunks: a stream ends with its connection, and any other answer has its length."""
    (answer,), _ = heard(request(CHAT, stream=streamed).replace(b"HTTP/1.1", b"HTTP/1.0"))

    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    assert (b"content-length: %d" % len(body) in head) is not streamed
    assert body[:1] == (b"d" if streamed else b"{")
    assert body.endswith(b"data: [DONE]\n\n" if streamed else b"}")


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


VALUES = st.text("ab,;= \t\x80é", max_size=6).map(lambda text: text.strip(" \t"))
BODIES = st.binary(max_size=40)


@st.composite
def requests(draw):
    """Return a request that has one reading."""
    method = draw(st.sampled_from(["GET", "POST", "DELETE"]))
    lines = [f"{method} /{draw(st.sampled_from(['', 'v1/models', 'a?b=%20']))} HTTP/1.1", "host: x:80"]
    lines += [f"x-{name}: {value}" for name, value in draw(st.dictionaries(st.sampled_from("abc"), VALUES)).items()]
    chunks = draw(st.lists(BODIES.filter(bool), max_size=3))
    whole = b"".join(chunks)
    if draw(st.booleans()):
        body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
        lines.append("Transfer-Encoding: chunked")
    else:
        body = whole
        lines += [f"content-length: {len(body)}"] if body else []
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body, whole


def pieces(data, cuts):
    """Return the data cut at these places."""
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[begin:end] for begin, end in pairwise(places)]


def read_by_h11(data):
    """Return the bodies of the requests in the data, as h11 reads them."""
    found, connection = [], h11.Connection(h11.SERVER)
    connection.receive_data(data)
    while True:
        match connection.next_event():
            case h11.Request():
                found.append(b"")
            case h11.Data(data=part):
                found[-1] += bytes(part)
            case h11.EndOfMessage():
                connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
                connection.send(h11.EndOfMessage())
                connection.start_next_cycle()
            case _:
                return found


@given(st.lists(requests(), min_size=1, max_size=3), st.lists(st.integers(0), max_size=5))
def test_requests_are_taken_whole_however_they_come(sent, cuts):
    """Requests with one reading are taken to the last byte at any chunking, and h11 finds the same bodies."""
    data = b"".join(request for request, _ in sent)
    framing = Framing()

    taken = b"".join(framing.take(piece) for piece in pieces(data, cuts))

    assert (taken, framing.refused, framing.empty) == (data, None, True)
    assert read_by_h11(taken) == [body for _, body in sent]


@given(
    requests(), st.integers(0), st.sampled_from([b"", b" ", b"\r", b"\n", b"\x00", b":", b"5", b"\r\n"]), st.integers(0)
)
@settings(max_examples=300)
def test_what_is_taken_is_what_another_parser_reads(request, at, put, cut):
    """Of bytes that were changed anywhere, what is taken is read by h11 without an error; any chunking refuses alike."""
    data = request[0]
    at %= len(data)
    data = data[:at] + put + data[at + 1 :]
    whole, parts = Framing(), Framing()

    taken = whole.take(data)
    cut_up = b"".join(parts.take(piece) for piece in pieces(data, [cut]))

    assert (whole.refused is None) == (parts.refused is None)
    assert whole.refused is None or taken == cut_up
    read_by_h11(taken)


def test_large_heads_are_refused():
    """A head has a bound, in bytes and in headers; both are told apart from what is wrong."""
    long, many = Framing(), Framing()

    long.take(b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"a" * MAX_BLOCK)
    many.take(b"GET / HTTP/1.1\r\nhost: x\r\n" + b"x: a\r\n" * MAX_LISTED + b"\r\n")

    assert long.refused is not None
    assert many.refused is not None
    assert long.refused.status == many.refused.status == 431
