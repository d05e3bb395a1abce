"""What is counted and logged of requests."""

from __future__ import annotations

import asyncio
import json
import logging

from serving import CALL, HELLO, TOOL, Told, browser, served

from unrender.gateway import EngineError, Piece
from unrender.parser.completions import Usage

SECRET = "a word that nobody may log"


async def answered(engine, **request):
    """Return the metrics after one request."""
    application = served(engine)
    async with browser(application) as client:
        await client.post("/v1/chat/completions", json={"messages": HELLO} | request)
        return (await client.get("/metrics")).text.splitlines()


def test_requests_tokens_and_times_are_counted():
    """A request counts with its outcome, its tokens by kind, and its times."""
    usage = Usage(prompt_tokens=9, completion_tokens=4, cached_tokens=5)

    lines = asyncio.run(answered(Told(["<think>\nx\n</think>\nHi", Piece("", 0, "stop", usage)])))

    assert 'unrender_requests_total{surface="chat",model="m",outcome="ok"} 1' in lines
    assert 'unrender_tokens_total{model="m",kind="prompt"} 9' in lines
    assert 'unrender_tokens_total{model="m",kind="cached"} 5' in lines
    assert 'unrender_request_seconds_count{surface="chat",model="m"} 1' in lines
    assert 'unrender_time_to_first_chunk_seconds_bucket{surface="chat",model="m",le="+Inf"} 1' in lines
    assert 'unrender_prompt_seconds_count{surface="chat",model="m"} 1' in lines
    assert "unrender_streams 0" in lines
    assert all(line.startswith("#") or len(line.rsplit(" ", 1)) == 2 for line in lines)


def test_answers_are_counted_by_how_they_could_be_read():
    """What was clean, malformed, cut off or empty is counted apart: a parser's health at a glance."""
    expected = {
        "clean": Told(CALL),
        "malformed": Told('<tool_call>\n{"name": "get_weather", "arguments": nonsense}\n</tool_call>'),
        "truncated": Told([CALL[:30], Piece("", 0, "length")]),
        "empty": Told(""),
    }

    for reading, engine in expected.items():
        lines = asyncio.run(answered(engine, tools=[TOOL]))
        counted = [line for line in lines if line.startswith("unrender_answers_total")]
        assert counted == [f'unrender_answers_total{{model="m",reading="{reading}"}} 1']


def test_failures_are_counted_by_their_kind():
    """A refused request and a broken engine count under their kinds; a client's words make no label."""
    broken = asyncio.run(answered(Told([EngineError("x")])))
    unknown = asyncio.run(answered(Told("Hi"), model=SECRET))

    assert 'unrender_requests_total{surface="chat",model="m",outcome="engine"} 1' in broken
    assert 'unrender_requests_total{surface="chat",model="",outcome="not_found"} 1' in unknown
    assert SECRET not in "\n".join(unknown)


def test_log_holds_no_word_of_what_was_said(caplog):
    """The log has a line of JSON for each request, and nothing of the conversation or the answer."""
    caplog.set_level(logging.DEBUG, "unrender.gateway")

    asyncio.run(answered(Told(SECRET), messages=[{"role": "user", "content": SECRET}]))

    (record,) = [record for record in caplog.records if record.name == "unrender.gateway.requests"]
    assert json.loads(record.getMessage())["outcome"] == "ok"
    assert SECRET not in caplog.text
