"""Tests of bytes on a connection: any chunking, incomplete heads, and invalid bytes."""

from __future__ import annotations

import asyncio
import json

import pytest
from live import ASKED, heard, listening, request
from serving import Told

from unrender.gateway.gateway import Keys

CHAT = "/v1/chat/completions"
HEAD = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\n"
BODY = json.dumps(ASKED[CHAT]).encode()
CHUNKED = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)


COUNTED = f"content-length: {len(BODY)}\r\n"
CODED = "transfer-encoding: chunked\r\n"


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 0.01])
def test_request_may_come_in_pieces(seconds):
    """A body in chunks and a head that arrives byte by byte are accepted."""
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
    """A connection is closed if a head doesn't arrive in time, for the first request or a later one."""
    monkeypatch.setattr("unrender.gateway.serve.HEAD_SECONDS", 0.3)
    whole = f"{HEAD}{COUNTED}\r\n".encode() + BODY

    late, silent, after = heard(HEAD.encode(), b"", whole + HEAD.encode())[0]

    assert (late, silent) == (b"", b"")
    assert (after[:12], after.count(b"HTTP/1.1")) == (b"HTTP/1.1 200", 1)


@pytest.mark.slow
def test_bytes_that_are_no_request_end_their_connection_alone(caplog):
    """Bytes that aren't HTTP get status 400 or a closed connection, but never a traceback."""
    good = f"{HEAD}{COUNTED}\r\n".encode() + BODY
    wrong = (b"\x16\x03\x01\r\n\r\n", f"{HEAD}{CODED}\r\nnone\r\n".encode(), b"GET /" + b"a" * 100_000)

    answers, jobs = heard(*wrong, *(good + data for data in wrong))

    assert {answer[:12] for answer in answers[:3]} == {b"HTTP/1.1 400"}
    assert {answer[:12] for answer in answers[3:]} == {b"HTTP/1.1 200"}
    assert jobs == 3
    assert "Traceback" not in caplog.text


UPGRADE = "connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n"


@pytest.mark.slow
@pytest.mark.parametrize("wish", ["", UPGRADE])
def test_requests_one_after_another_are_apart(wish):
    """Two requests sent at once get separate answers. A client that prefers HTTP/2 gets HTTP/1.1."""
    (answer,), jobs = heard(f"{HEAD}{COUNTED}{wish}\r\n".encode() + BODY + request(CHAT))

    assert (answer.count(b"HTTP/1.1 200"), jobs) == (2, 2)


@pytest.mark.slow
@pytest.mark.parametrize("streamed", [True, False])
def test_old_client_hears_no_sizes_of_chunks(streamed):
    """HTTP/1.0 has no chunks, so a stream ends with its connection, and any other answer has its length."""
    (answer,), _ = heard(request(CHAT, stream=streamed).replace(b"HTTP/1.1", b"HTTP/1.0"))

    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    assert (b"content-length: %d" % len(body) in head) is not streamed
    assert body[:1] == (b"d" if streamed else b"{")
    assert body.endswith(b"data: [DONE]\n\n" if streamed else b"}")


@pytest.mark.slow
def test_no_header_is_made_of_a_clients_words():
    """Line breaks in names, values and paths never reach a header, raw or escaped."""
    forged = "x\r\nx-forged: 1"
    requests = [
        request(CHAT, model=forged),
        request(CHAT, **{forged: 1}),
        request(CHAT, headers="x-request-id: a%0d%0ax-forged: 1\r\n"),
        request(CHAT, tools=[{"type": forged}]),
        b"GET /v1/models/x%0d%0ax-forged:%201 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    ]

    answers, _ = heard(*requests)

    for answer in answers:
        head, _, _ = answer.partition(b"\r\n\r\n")
        assert not any(line.startswith(b"x-forged") for line in head.split(b"\r\n"))


@pytest.mark.slow
def test_key_that_comes_twice_opens_no_more_than_one():
    """Of two keys, only one counts, both for access and for the model."""
    keys = Keys(models={"good": frozenset({"m"}), "other": frozenset({"x"})})
    both = (
        "authorization: Bearer good\r\nauthorization: Bearer other\r\n",
        "authorization: Bearer other\r\nx-api-key: good\r\n",
    )

    answers, jobs = heard(*(request(CHAT, headers=headers) for headers in both), keys=keys)

    assert all(answer.startswith(b"HTTP/1.1 404") for answer in answers)
    assert jobs == 0
