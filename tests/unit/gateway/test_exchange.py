"""Tests of one request in the gateway: failures, cancellation, and keeping a stream open."""

from __future__ import annotations

import json

import pytest
import serving
from live import ASKED
from serving import CALL, HELLO, TOOL, WEATHER, Told, corpus, posted, served

from unrender.gateway.backends import EngineError, OutputPiece
from unrender.gateway.gateway import GatewayLimits, Keys


def asked(application, path="/v1/chat/completions", headers=None, **request):
    return posted(application, path, json={"messages": HELLO} | request, headers=headers)


@pytest.mark.slow
def test_silent_engine_is_waited_for_with_pings():
    """While the engine is silent, comments keep the stream open, before the first piece and after it."""
    text = asked(
        served(Told([0.4, "Hello", 0.4, " you"]), limits=GatewayLimits(keepalive_interval=0.03)), stream=True
    ).text

    before, _, after = text.partition("Hello")
    assert before.count(": ping") >= 2
    assert after.count(": ping") >= 2
    assert text.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("stream", [True, False])
def test_engine_that_fails_first_gives_a_status(stream):
    """An engine that fails before the first piece gives a status and an error in the API's form, streamed or not."""
    for status, found in ((None, 502), (400, 400), (429, 429), (503, 503), (500, 502)):
        answer = asked(served(Told([EngineError("its words", status=status)])), stream=stream)

        assert answer.status_code == found
        assert "its words" in answer.json()["error"]["message"]


@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit_error"), (503, "overloaded_error")])
def test_busy_engine_says_when_to_come_again(status, kind):
    """The engine's `retry-after` reaches the client."""
    answer = asked(served(Told([EngineError("its words", status=status, retry_after="30")])))

    assert (answer.status_code, answer.headers["retry-after"]) == (status, "30")
    assert answer.json()["error"]["type"] == kind


@pytest.mark.slow
def test_transient_failure_is_tried_again_only_before_the_first_piece():
    """A transient failure is retried once, unless the answer has begun."""
    refused = Told([EngineError("refused", transient=True)])
    begun = Told(["Hello", EngineError("reset", transient=True)])

    asked(served(refused))
    asked(served(begun))

    assert (len(refused.jobs), len(begun.jobs)) == (2, 1)


def test_failing_choice_ends_all():
    """If one of several choices fails, the answer fails, and all jobs end."""
    engine = Told(["Hello", EngineError("cut off")])

    answer = asked(served(engine), n=3)

    assert answer.status_code == 502
    assert engine.closed == len(engine.jobs)


def test_limits_hold():
    """Too many streams, slow answers and large bodies are refused, each with its status."""
    full = served(Told("Hi"), limits=GatewayLimits(max_streams=0))
    slow = served(Told([5.0]), limits=GatewayLimits(answer_timeout=0.05))
    small = served(Told("Hi"), limits=GatewayLimits(max_body_bytes=10))

    busy = asked(full)
    assert (busy.status_code, busy.headers["retry-after"]) == (503, "1")
    assert asked(slow).status_code == 504
    assert asked(small).status_code == 413


def test_keys_open_models():
    """A request needs a key for its model, as a bearer token or in `x-api-key`."""
    application = served(Told("Hi"), keys=Keys(models={"good": frozenset({"m"}), "other": frozenset({"x"})}))

    def status(**headers):
        return asked(application, headers={k.replace("_", "-"): v for k, v in headers.items()}).status_code

    assert status(authorization="Bearer good") == status(x_api_key="good") == 200
    assert status() == status(authorization="Bearer bad") == status(x_api_key="") == 401
    assert status(authorization="Bearer other") == 404


def test_request_ids_and_traces_are_handed_on():
    """The client's request id is returned, or replaced if it isn't a valid header. The trace reaches the engine."""
    engine = Told("Hi")
    application = served(engine)

    kept = asked(application, headers={"x-request-id": "abc-1", "traceparent": "00-1-2-01"})
    made = asked(application, headers={"x-request-id": "a b"})

    assert kept.headers["x-request-id"] == "abc-1"
    assert made.headers["x-request-id"].startswith("req-")
    assert engine.jobs[0].headers == {"traceparent": "00-1-2-01"}


FLAT = {"type": "function", **WEATHER}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object", "required": ["n"]}}}


@pytest.mark.parametrize(
    ("request_", "wrong", "right", "said"),
    [
        ({"tools": [TOOL], "tool_choice": "required"}, "No.", CALL, "tool_choice: the model made no call"),
        ({"response_format": SCHEMA}, "No.", '{"n": 1}', "response_format: the content is not JSON"),
        ({"response_format": SCHEMA}, '{"m": 1}', '{"n": 1}', "response_format: the content doesn't match the schema"),
    ],
)
def test_promise_that_no_grammar_holds_is_judged(request_, wrong, right, said):
    """Without grammars, answers are validated. An invalid one causes a warning, after a retry if it is neither streamed nor seeded."""
    name = said.partition(":")[0]
    asked_for = f"{name}: not enforced, since the engine uses no grammar"
    for stream, jobs in ((False, 2), (True, 1)):
        engine, good = Told(wrong), Told(right)
        answer = asked(served(engine), stream=stream, **request_)
        fine = asked(served(good), stream=stream, **request_)

        assert (len(engine.jobs), len(good.jobs)) == (jobs, 1)
        assert said in answer.text
        assert said not in fine.text
        assert answer.headers["x-unrender-warnings"] == asked_for
    seeded = Told(wrong)
    asked(served(seeded), seed=1, **request_)
    assert len(seeded.jobs) == 1


LACKS = {
    "/v1/responses": {"input": "Hello", "tools": [FLAT], "tool_choice": "required"},
    "/v1/messages": {"max_tokens": 9, "tools": [{"name": "f", "input_schema": {}}], "tool_choice": {"type": "any"}},
}


@pytest.mark.parametrize("path", LACKS)
@pytest.mark.parametrize("stream", [False, True])
def test_lack_is_named_by_every_surface(path, stream):
    """Each API reports that a required call is missing, streamed or not."""
    assert "the model made no call" in asked(served(Told("No.")), path, stream=stream, **LACKS[path]).text


def test_answer_that_was_cut_off_is_not_judged():
    """An answer that the limit cut off isn't validated."""
    engine = Told(["No.", OutputPiece("", 0, "length")])

    answer = asked(served(engine), tools=[TOOL], tool_choice="required")

    assert len(engine.jobs) == 1
    assert "made no call" not in answer.text


@pytest.mark.parametrize("more", [{}, {"stream": True, "stream_options": {"include_usage": True}}, {"n": 2}])
def test_stop_text_of_ours_leaves_the_usage_right(more):
    """If a stop string ends the answer before the engine sends its usage, the usage is still correct."""
    engine = Told(["one ", "two ", "STOP ", "never"])
    answer = asked(served(engine), stop="STOP", **more)
    prompt = engine.jobs[0].turn.prompt

    frames = [line[6:] for line in answer.text.splitlines() if line.startswith('data: {"')] or [answer.text]
    usage = json.loads(frames[-1])["usage"]
    assert usage["prompt_tokens"] == len(prompt.split()) > 0
    assert usage["completion_tokens"] == 3 * more.get("n", 1)


def test_usage_that_an_engine_does_not_say_is_counted():
    """The prompt's tokens are counted if an engine sends no usage."""
    usage = asked(served(Told(["one ", "two "]))).json()["usage"]

    assert (usage["prompt_tokens"] > 0, usage["completion_tokens"]) == (True, 2)


class Uncounting(Told):
    """An engine that fails to count tokens."""

    async def count(self, text):
        raise EngineError("the engine cannot be reached", transient=True)


def test_engine_that_cannot_count_gives_an_estimate():
    """If the engine fails to count tokens, they are estimated, and marked as an estimate."""
    engine = Uncounting("Hi")

    found = asked(served(engine), "/v1/messages/count_tokens")
    stopped = asked(served(engine), stop="i")

    assert (found.status_code, found.json()["estimated"]) == (200, True)
    assert stopped.json()["usage"]["prompt_tokens"] == found.json()["input_tokens"]


@pytest.mark.parametrize("value", [b"a\x01b", b"\xff", b"a\tb", b"x" * 600])
def test_header_that_no_header_may_hold_is_not_handed_on(value):
    """Invalid headers aren't forwarded to the engine, and the request is answered."""
    engine = Told("Hi")

    answer = asked(served(engine), headers=[("traceparent", value), ("tracestate", b"a=b")])

    assert (answer.status_code, engine.jobs[0].headers) == (200, {"tracestate": "a=b"})


@pytest.mark.parametrize("row", corpus("too_long"), ids=lambda row: row["words"][:40])
def test_prompt_that_is_too_long_is_told_in_the_vendors_words(row):
    """Errors about the context have the code and message that make agents shorten a conversation."""
    error = EngineError(row["words"], status=row["status"])
    application, begun = served(Told([error])), served(Told(["Hi", error]))

    chat, messages, responses = (
        asked(application),
        asked(application, "/v1/messages", max_tokens=5),
        asked(application, "/v1/responses", input="x"),
    )
    stream = asked(begun, "/v1/responses", input="x", stream=True)

    found = [answer.json()["error"] for answer in (chat, responses)]
    last = json.loads(stream.text.strip().rpartition("data: ")[2])["response"]["error"]["code"]
    words = [one["message"] for one in (*found, messages.json()["error"])]
    assert [text.startswith("prompt is too long") for text in words] == [row["long"]] * 3
    assert (last == "context_length_exceeded") == row["long"]
    if row["long"]:
        assert {answer.status_code for answer in (chat, messages, responses)} == {400}
        assert {one["code"] for one in found} == {"context_length_exceeded"}
        assert [one["param"] for one in found] == ["messages", "input"]
    else:
        assert {one["code"] for one in found} == {None}


def test_alias_is_the_models_name_in_the_answer():
    """An answer has the name that the client requested. If only "*" matches, it has the model's own name."""
    application = served(Told("Hi"), aliases=("n", "*"))

    for path, body in ASKED.items():
        assert [asked(application, path, **body, model=name).json()["model"] for name in "mno"] == ["m", "n", "m"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("POST", path) for path in (*ASKED, "/v1/messages/count_tokens")),
        *(("GET", path) for path in ("/v1/models", "/v1/models/x", "/v1/nothing", "/v1/messages/x", "/v1/responses")),
    ],
)
def test_every_answer_names_its_request(method, path):
    """Answers and errors of every path contain the request id, under the names that each vendor's clients read."""
    application = served(Told("Hi"))
    given, own = (
        serving.asked(application, method, path, json={}, headers=headers) for headers in ({"x-request-id": "mine"}, {})
    )

    assert given.headers["request-id"] == given.headers["x-request-id"] == "mine"
    assert own.headers["request-id"].startswith("req-")
    assert ("type" in own.json()) == ("/messages" in path)


@pytest.mark.parametrize(
    ("origins", "allowed"), [(["http://a"], "http://a"), (["*"], "*"), (["http://b"], None), ([], None)]
)
def test_pages_of_other_origins_are_let_in_by_a_setting(origins, allowed):
    """Pages of the allowed origins may read answers, and the headers that clients need."""
    application = served(Told("Hi"), origins=origins)

    path, origin = "/v1/chat/completions", {"origin": "http://a"}
    asks = origin | {"access-control-request-method": "POST"}
    asks |= {"access-control-request-headers": "authorization, x-stainless-os"}
    preflight = serving.asked(application, "OPTIONS", path, headers=asks)
    answer = asked(application, headers=origin, stream=True)

    assert preflight.headers.get("access-control-allow-origin") == allowed
    assert answer.headers.get("access-control-allow-origin") == allowed
    assert preflight.status_code == (200 if allowed else 400 if origins else 405)
    assert ("request-id" in answer.headers.get("access-control-expose-headers", "")) == bool(origins)
