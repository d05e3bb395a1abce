"""Tests of operating a gateway: metrics, logs, and mounting it in other applications."""

from __future__ import annotations

import asyncio
import json
import logging
import socket

import live
import pytest
from fastapi import FastAPI
from live import ASKED, listening, settled
from serving import CALL, HELLO, TOOL, Told, metric, posted, served

from unrender.gateway.backends import EngineCapabilities, EngineError, OutputPiece
from unrender.gateway.gateway import GatewayLimits, Keys
from unrender.openai import Usage

SECRET = "a word that nobody may log"
CHAT = "/v1/chat/completions"


def counted(engine, *requests, **settings):
    """Return the metrics after some chat requests."""
    application = served(engine, **settings)
    for request in requests or ({},):
        posted(application, CHAT, json={"messages": HELLO} | request)
    return application.state.gateway.metrics.text().decode()


def test_requests_tokens_and_times_are_counted():
    """A request is counted with its outcome, its tokens by kind, and its durations."""
    usage = Usage(prompt_tokens=9, completion_tokens=4, cached_tokens=5)

    text = counted(Told(["<think>\nx\n</think>\nHi", OutputPiece("", 0, "stop", usage)]))

    where = {"surface": "chat", "model": "m"}
    expected = {
        ("requests_total", 1): {**where, "outcome": "ok"},
        ("tokens_total", 9): {"model": "m", "kind": "prompt"},
        ("tokens_total", 5): {"model": "m", "kind": "cached"},
        ("request_seconds_count", 1): where,
        ("time_to_first_chunk_seconds_bucket", 1): {**where, "le": "+Inf"},
        ("prompt_seconds_count", 1): where,
        ("streams", 0): {},
    }
    for (name, value), labels in expected.items():
        assert metric(text, f"unrender_{name}", **labels) == value


def test_answers_are_counted_by_how_they_could_be_read():
    """Clean, malformed, truncated and empty answers are counted separately."""
    expected = {
        "clean": Told(CALL),
        "malformed": Told('<tool_call>\n{"name": "get_weather", "arguments": nonsense}\n</tool_call>'),
        "truncated": Told([CALL[:30], OutputPiece("", 0, "length")]),
        "empty": Told(""),
    }

    for reading, engine in expected.items():
        text = counted(engine, {"tools": [TOOL]})
        counts = {one: metric(text, "unrender_answers_total", model="m", reading=one) for one in expected}
        assert {one for one, count in counts.items() if count} == {reading}


OTHER = '{"name": "get_weather", "arguments": {"city": "Paris"}}'


def test_calls_in_another_syntax_are_counted_and_logged_once(caplog):
    """An answer with an unparsed call is counted, and the log names the setting that parses such calls."""
    unread = Told(
        'I call it:\n[TOOL_CALL: get_weather]\n```json\n{"name": "get_weather", "parameters": {"city": "Paris"}}\n```'
    )
    asked = {"tools": [TOOL]}

    text = counted(unread, asked, asked)
    read = counted(unread, asked, repair="offered")
    prose = counted(Told("I could use get_weather for that."), asked)
    among = counted(Told(f"I call it.\n```json\n{OTHER}\n```\nPlease wait."), asked)
    quoted = counted(Told(f"Write `{OTHER}` to call it."), asked)

    values = [metric(it, "unrender_unread_calls_total", model="m") for it in (text, read, prose, among, quoted)]
    assert values == [2, None, None, 1, None]
    told = [record.levelname for record in caplog.records if "`format`" in record.getMessage()]
    assert told == ["WARNING"] * 2  # once for each of the two gateways


def test_log_holds_no_word_of_what_was_said(caplog):
    """The log has one line of JSON per request, without text of the conversation or the answer."""
    caplog.set_level(logging.DEBUG, "unrender.gateway")

    counted(Told(SECRET), {"messages": [{"role": "user", "content": SECRET}]})

    (record,) = [record for record in caplog.records if record.name == "unrender.gateway.requests"]
    assert json.loads(record.getMessage())["outcome"] == "ok"
    assert SECRET not in caplog.text


def test_grammars_are_counted_by_what_became_of_them():
    """Grammars are counted by result: built, cached, refused by the engine, unsupported, or not needed."""
    engine = Told("Hi", capabilities=EngineCapabilities(dialect="structural_tag", seed=False))
    refusing = Told([EngineError("no such grammar", status=400)], capabilities=engine.capabilities)
    nothing = Told("Hi", capabilities=EngineCapabilities(dialect="of its own", seed=False))
    due = {"tools": [TOOL], "tool_choice": "required"}

    def results(engine, *requests):
        text = counted(engine, *requests)
        kinds = ("built", "cached", "relaxed", "unsupported", "refused", "none")
        counts = {kind: metric(text, "unrender_grammar_total", model="m", result=kind) for kind in kinds}
        return {kind: count for kind, count in counts.items() if count}

    assert results(engine, due, due, {}) == {"built": 1, "cached": 1, "none": 1}
    assert results(refusing, due) == {"refused": 1}
    assert results(nothing, due) == {"unsupported": 1}


def test_engines_errors_are_counted_with_those_that_were_sent_again():
    """Each failed job is counted, including retries."""
    for kind, status, transient in (
        ("unreachable", None, True),
        ("busy", 503, True),
        ("refused", 400, False),
        ("failed", 500, False),
        ("broke_off", None, False),
    ):
        text = counted(Told([EngineError("x", status=status, transient=transient)]))

        assert metric(text, "unrender_backend_errors_total", model="m", kind=kind) == 1 + transient


def test_rejections_are_counted_by_their_outcome():
    """Rejected requests are counted by outcome, without text from the client."""
    text = counted(Told("Hi"), {"model": SECRET}, {"n": -1})
    full = counted(Told("Hi"), limits=GatewayLimits(max_streams=0))
    closed = counted(Told("Hi"), keys=Keys(models={"k": frozenset("*")}))

    assert metric(text, "unrender_requests_total", surface="chat", model="", outcome="not_found") == 1
    assert metric(text, "unrender_requests_total", surface="chat", model="", outcome="invalid") == 1
    assert metric(full, "unrender_requests_total", surface="chat", model="m", outcome="busy") == 1
    assert metric(closed, "unrender_requests_total", surface="chat", model="", outcome="unauthenticated") == 1
    assert SECRET not in text


@pytest.mark.slow
def test_cancellations_are_counted():
    """A request counts as cancelled if its client leaves or the gateway shuts down."""

    async def run():
        async with listening(Told(["Hi", 60.0]), shutdown_timeout=0.1) as gateway:
            _, writer = await gateway.send(live.request(CHAT, stream=True))
            await settled(lambda: gateway.application.state.gateway.streams == 1)
            writer.transport.abort()
            await settled(lambda: gateway.application.state.gateway.streams == 0)
            beside = asyncio.create_task(gateway.ask(CHAT))
            await settled(lambda: gateway.application.state.gateway.streams == 1)
            gateway.server.should_exit = True
            await asyncio.gather(beside, return_exceptions=True)
            return gateway.application.state.gateway.metrics.text().decode()

    text = asyncio.run(run())

    assert metric(text, "unrender_requests_total", surface="chat", model="m", outcome="cancelled") == 2


def test_mounts_into_fastapi():
    """All three APIs work under a path of a FastAPI application, and errors keep their form."""
    outer = FastAPI()
    outer.mount("/llm", served(Told("Hi")))
    answers = [posted(outer, f"/llm{path}", json=body) for path, body in ASKED.items()]
    refused = posted(outer, "/llm/v1/messages/count_tokens", content=b"{")

    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert refused.json()["type"] == "error"


@pytest.mark.slow
def test_responses_do_not_wait_for_acknowledgements():
    """A connection that the gateway has accepted has `TCP_NODELAY`."""

    async def run():
        async with listening(Told("Hi")) as gateway:
            _, writer = await gateway.send(b"")
            await settled(lambda: gateway.server.server_state.connections)
            (connection,) = gateway.server.server_state.connections
            option = connection.transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            writer.close()
            return option

    assert asyncio.run(run()) == 1
