"""Tests of bytes on a connection: rows of `corpus/gateway/wire.jsonl`, any chunking, and incomplete heads.

A row has requests, each `sent` over its own connection: raw text, or arguments of `live.request`. `LONG` is as long as a head may be, and `HALF` half
as long. `statuses` are those of each connection. `heads` and `bodies` are patterns of all heads and bodies.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from live import ASKED, heard, listening, request
from serving import Told, corpus, gateway_settings

from unrender.gateway.serve import HEAD_BYTES

CHAT = "/v1/chat/completions"
HEAD = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\n"
BODY = json.dumps(ASKED[CHAT]).encode()


def bytes_of(sent: str | Mapping[str, Any]) -> bytes:
    """Return the bytes of a request."""
    data = sent.encode("latin-1") if isinstance(sent, str) else request(**{"path": CHAT, **sent})
    return data.replace(b"LONG", b"a" * HEAD_BYTES).replace(b"HALF", b"a" * (HEAD_BYTES // 2))


@pytest.mark.slow
@pytest.mark.parametrize("row", corpus("wire"), ids=lambda row: row["says"])
def test_bytes_are_answered(row, caplog):
    """Each connection gets the answers of its row, and bytes that aren't a request never cause a traceback."""
    answers, jobs = heard(*map(bytes_of, row["sent"]), **gateway_settings(row))

    assert [re.findall(r"HTTP/1\.1 (\d+)", answer.decode()) for answer in answers] == row["statuses"]
    assert jobs == row.get("jobs", jobs)
    for answer in answers:
        head, _, body = answer.decode().partition("\r\n\r\n")
        assert re.fullmatch(row.get("heads", "(?s).*"), head)
        assert re.fullmatch(row.get("bodies", "(?s).*"), body)
    assert "Traceback" not in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 0.01])
def test_request_may_come_in_pieces(seconds):
    """A body in chunks and a head that arrives byte by byte are accepted."""
    chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
    data = f"{HEAD}transfer-encoding: chunked\r\nconnection: close\r\n\r\n".encode() + chunks

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
    whole = f"{HEAD}content-length: {len(BODY)}\r\n\r\n".encode() + BODY

    late, silent, after = heard(HEAD.encode(), b"", whole + HEAD.encode())[0]

    assert (late, silent) == (b"", b"")
    assert (after[:12], after.count(b"HTTP/1.1")) == (b"HTTP/1.1 200", 1)
