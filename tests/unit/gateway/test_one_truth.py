"""A stream adds up to the whole answer, and answers are accepted as history. Tests use real SDKs, all APIs and broken answers.

The SDKs raise their own errors.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import cycle
from typing import Any, get_args

import anthropic
import openai
import pytest
from live import ASKED
from serving import CALL, HELLO, TOOL, Told, anthropic_of, chunked, corpus, openai_of, posted, served, template, written
from streams import added_up, comparable, said
from three_apis import APIS, both, calls_in, continued, so_far

from unrender.gateway.answers.turns import CallDelivery
from unrender.gateway.backends import EngineCapabilities, OutputPiece
from unrender.gateway.gateway import GatewayLimits

CHAT = "/v1/chat/completions"
FORMATS = (
    *("json-tags", "tag-json", "tagged-key", "tagged-raw", "python-calls", "channels", "forced-open", "json-array"),
    *("bracket-id", "name-line", "answer-wrapped", "message-parts", ""),
)
CUT = CALL.partition("ris")[0]
BREAKS = {row["break"]: row["text"] for row in corpus("breaks")}
CUT_OFF = {BREAKS[name] for name in BREAKS if name.startswith("cut ")} | {BREAKS["no closer"]}
"""Texts whose last call has no end."""
each_break = pytest.mark.parametrize("text", BREAKS.values(), ids=BREAKS)
each_release = pytest.mark.parametrize("calls", get_args(CallDelivery), ids=str)
each_reason = pytest.mark.parametrize("reason", ["stop", "length"])


def gateway(text: str, calls: CallDelivery, reason: str, name: str = "", *, obeys: bool = False) -> Any:
    """Return a gateway whose engine sends the text in pieces of five characters."""
    engine = Told(
        [*chunked(text, 5), OutputPiece("", 0, reason)], capabilities=EngineCapabilities(seed=False, obeys=obeys)
    )
    return served(engine, name, tool_calls=calls)


each_api = pytest.mark.parametrize("api", APIS)


def answers(turn: Any, seed: int) -> Iterator[str]:
    """Yield a correct answer, and answers that are truncated, corrupted and shuffled."""
    dice = random.Random(seed)
    text = turn.sample(seed)
    first, last = sorted((dice.randrange(len(text) + 1), dice.randrange(len(text) + 1)))
    yield text
    yield text[:first]
    yield text[:first] + dice.choice(("}", '"', "<", "</think>", "\n\ndata: x\n\n", "\0")) + text[first:]
    yield text[:first] + text[last:] + text[first:last]


@pytest.mark.few(13)
@pytest.mark.slow
@each_api
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_says_the_same(name: str, api: str) -> None:
    """In every format, for correct and broken text, the stream, the whole answer and the parsed message are equal."""
    turn = template(name).prepare(HELLO, tools=[TOOL])
    for seed in range(2):
        for text in answers(turn, seed):
            streamed, whole = both(api, gateway(text, "complete", "stop", name))
            parser = turn.parser()
            parser.feed(text)
            parser.finish("stop")

            # The SDK drops warnings in Anthropic's stream, such as that of a call that violates its schema.
            if api == "messages":
                streamed, whole = ({**answer, "warnings": None} for answer in (streamed, whole))
            assert comparable(streamed) == comparable(whole)
            expected = [so_far(call.arguments_json) for call in parser.message.tool_calls]
            assert [values for _, values, _ in calls_in(api, whole)] == expected


@pytest.fixture
def few_calls(monkeypatch: pytest.MonkeyPatch) -> int:
    """Lower the limit of calls in an answer, so that tests are fast."""
    monkeypatch.setattr("unrender.gateway.answers.choice.MAX_ITEMS", 3)
    return 3


@each_api
def test_an_answer_ends_after_so_many_calls(api: str, few_calls: int) -> None:
    """If a model repeats a call without end, the answer ends at the maximum number of calls, all of them complete."""
    ended = {"chat": ("finish_reason", "tool_calls"), "responses": ("status", "completed")}
    name, word = ended.get(api, ("stop_reason", "tool_use"))
    engine = Told(lambda _: cycle((CUT, CALL.removeprefix(CUT) + "\n")))

    for answer in both(api, served(engine)):
        assert [whole for _, _, whole in calls_in(api, answer)] == [True] * few_calls
        assert answer[name] == word
    assert (len(engine.jobs), engine.closed) == (2, 2)


@pytest.mark.parametrize(
    ("name", "size"), [*((name, 5) for name in FORMATS if name != "forced-open"), ("json-tags", 999), ("", 999)]
)
def test_every_format_ends_after_so_many_calls(name: str, size: int, few_calls: int) -> None:
    """In every format, calls beyond the limit are dropped, however the engine splits its text."""
    text = written(name, [("get_weather", {"city": "Paris"}, "a" * 9)] * 2 * few_calls)
    streamed, whole = both("chat", served(Told(chunked(text, size)), name, tool_calls="streamed"))

    assert comparable(streamed) == comparable(whole)
    assert [values for _, values, _ in calls_in("chat", whole)] == [{"city": "Paris"}] * few_calls
    assert whole["finish_reason"] == "tool_calls"


@pytest.mark.few(30)
@each_reason
@each_release
@each_api
@each_break
def test_stream_and_whole_are_the_same(text: str, api: str, calls: CallDelivery, reason: str) -> None:
    """However calls are released, the answer that an SDK builds from the stream equals the whole answer."""
    streamed, whole = both(api, gateway(text, calls, reason))

    assert comparable(streamed) == comparable(whole)


@pytest.mark.few(24)
@each_reason
@each_api
@each_break
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_no_agent_gets_a_broken_call(text: str, api: str, stream, reason: str) -> None:
    """By default, clients get only complete calls. A broken call is sent as text, but a call cut off at the limit is dropped."""
    application = gateway(text, "auto", reason)
    answer = APIS[api](application, HELLO, stream=stream)

    found = calls_in(api, answer)
    assert all(whole and values == {"city": "Paris"} for _, values, whole in found)
    said = json.dumps(answer, ensure_ascii=False)
    told = text.rpartition("<tool_call>")[0] if reason == "length" and text in CUT_OFF else text
    assert said.count("Rome") == told.count("Rome")
    assert said.count("Paris") == told.count("Paris")


@pytest.mark.few(20)
@each_release
@each_api
@each_break
def test_what_was_said_is_accepted_as_history(text: str, api: str, calls: CallDelivery) -> None:
    """Any answer is accepted in the next turn, with results for all its calls."""
    for stream in (True, False):
        application = gateway(text, calls, "stop")
        answer = APIS[api](application, HELLO, stream=stream)
        news = [*continued(api, answer, "wet"), {"role": "user", "content": "And now?"}]
        again = APIS[api](application, [*HELLO, *news], stream=stream)
        assert [call[1:] for call in calls_in(api, again)] == [call[1:] for call in calls_in(api, answer)]


@each_api
def test_a_guaranteed_call_streams_as_it_is_written(api: str) -> None:
    """If the engine enforces grammars, a call streams before it is complete. At the limit, it is marked as incomplete."""
    streamed, whole = both(api, gateway(CUT, "auto", "length", obeys=True))

    assert comparable(streamed) == comparable(whole)
    ((_, values, whole_call),) = calls_in(api, whole)
    assert (values, whole_call) == ({}, False)
    assert "incomplete" in json.dumps(whole) or api != "responses"
    assert "truncated" in json.dumps(whole) or api != "chat"


def sampled(**request: Any) -> Any:
    """Return the answer of the sampler."""
    return posted(served(), CHAT, json={**ASKED[CHAT], **request})


def test_several_choices_are_kept_apart() -> None:
    """Each of n choices has its own text, streamed or not, and the usage adds up over all choices."""
    whole = sampled(n=3, seed=7).json()
    singles = [sampled(seed=7 + index).json() for index in range(3)]

    alone = [choice for single in singles for choice in said(CHAT, single)]
    assert said(CHAT, whole) == added_up(CHAT, sampled(n=3, seed=7, stream=True).text) == alone
    assert whole["usage"]["completion_tokens"] == sum(single["usage"]["completion_tokens"] for single in singles)


def test_clients_raise_their_own_errors() -> None:
    """The clients raise their own exceptions for an unknown model, too many stop strings, and a full gateway."""
    hi, full = (served(Told("Hi"), limits=limits) for limits in (GatewayLimits(), GatewayLimits(max_streams=0)))
    chat = openai_of(hi).chat.completions

    with pytest.raises(openai.NotFoundError, match="expected one of"):
        chat.create(model="other", messages=HELLO)
    with pytest.raises(openai.BadRequestError, match=r"stop: expected at most \d+ items"):
        chat.create(model="m", messages=HELLO, stop=["a"] * 10_000)
    with pytest.raises(anthropic.APIStatusError, match="overloaded_error") as caught:
        anthropic_of(full).messages.create(model="m", max_tokens=5, messages=HELLO)
    assert caught.value.status_code == 529
