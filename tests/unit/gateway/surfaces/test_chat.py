"""Tests of Chat Completions and Completions with OpenAI's own client and strict validation."""

from __future__ import annotations

import json

import openai
import pytest
import serving
from serving import CALL, HELLO, TOOL, Told, chunked, corpus, openai_of, posted, served

from unrender.gateway.backends import OutputPiece, Sampler

ANSWER = f"<think>\nRain?\n</think>\nI'll look.\n{CALL}<|end|>"


def said(message):
    """Return the content, reasoning and calls of a message, without the ids, which are random."""
    calls = [(call.function.name, call.function.arguments) for call in message.tool_calls or ()]
    return message.content or "", getattr(message, "reasoning_content", None) or "", calls


def both(application, **request):
    """Return the whole completion, and the one that the stream adds up to."""
    completions = openai_of(application).chat.completions
    return serving.both(completions, streamed={"stream_options": {"include_usage": True}}, messages=HELLO, **request)


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_answer_is_read(size):
    """Reasoning, content and calls are separated, however the engine splits its text. The content has no call syntax."""
    engine = Told(chunked(ANSWER, size))

    whole, streamed = both(served(engine), tools=[TOOL])

    expected = ("I'll look.", "Rain?", [("get_weather", '{"city": "Paris"}')])
    assert said(whole.choices[0].message) == said(streamed.choices[0].message) == expected
    assert whole.choices[0].finish_reason == streamed.choices[0].finish_reason == "tool_calls"
    assert whole.usage == streamed.usage


def test_half_a_character_goes_through():
    """A lone surrogate, which UTF-8 can't encode, is escaped in streams and whole answers."""
    for stream in (True, False):
        answer = posted(served(Told("a\ud800b")), "/v1/chat/completions", json={"messages": HELLO, "stream": stream})
        assert (answer.status_code, "a\\ud800b" in answer.text) == (200, True)


def test_several_choices_are_kept_apart():
    """Each of n choices has its own text, streamed or not, and the usage adds up over all choices."""
    application = served(Sampler())

    whole, streamed = both(application, n=3, seed=7)
    singles = [both(application, seed=7 + index)[0] for index in range(3)]

    alone = [said(single.choices[0].message) for single in singles]
    assert [said(choice.message) for choice in whole.choices] == alone
    assert [said(choice.message) for choice in streamed.choices] == alone
    assert whole.usage.completion_tokens == sum(single.usage.completion_tokens for single in singles)


def test_choice_is_enforced():
    """A required, a named and an allowed tool are called."""
    other = {"type": "function", "function": {"name": "other", "parameters": {"type": "object", "properties": {}}}}
    named = {"type": "function", "function": {"name": "other"}}
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named]}}

    def called(choice):
        whole, _ = both(served(Sampler()), tools=[TOOL, other], tool_choice=choice, seed=1)
        return {call.function.name for call in whole.choices[0].message.tool_calls}

    assert called("required") <= {"get_weather", "other"}
    assert called(named) == called(allowed) == {"other"}


def test_stop_text_ends_the_content():
    """A stop string ends the content, even across pieces, but not the reasoning. The engine then stops."""
    engine = Told(chunked("<think>\nno STOP here\n</think>\nOne STOP two" + " more" * 50, 3))

    whole, streamed = both(served(engine), stop="STOP")

    assert said(whole.choices[0].message) == said(streamed.choices[0].message) == ("One ", "no STOP here", [])
    assert whole.choices[0].finish_reason == "stop"
    assert engine.closed == 2


def test_truncated_call_is_no_call():
    """A call that the limit cuts off is dropped, and the finish reason is `length`."""
    engine = Told([CALL[:40], OutputPiece("", 0, "length")])

    whole = openai_of(served(engine)).chat.completions.create(model="m", messages=HELLO, tools=[TOOL])

    assert whole.choices[0].message.tool_calls is None
    assert whole.choices[0].finish_reason == "length"
    with pytest.raises(openai.LengthFinishReasonError):
        both(served(engine), tools=[TOOL])


def test_logprobs_are_those_of_the_content():
    """Only tokens of the content have log probabilities, streamed or not."""
    tokens = ["<think>", "\n", "Rain", "?", "\n", "</think>", "\n", "It ", "rains", ".", "<|end|>"]
    pieces = [
        OutputPiece(t, logprobs=({"token": t, "logprob": -1.0, "bytes": None, "top_logprobs": []},)) for t in tokens
    ]
    engine = Told(pieces)

    whole, streamed = both(served(engine), logprobs=True)

    for completion in (whole, streamed):
        assert [item.token for item in completion.choices[0].logprobs.content] == ["It ", "rains", "."]


def test_logprobs_that_come_before_their_text_wait_for_it():
    """Log probabilities of half characters, or of text that an engine holds back, are sent with their text."""
    said = [("", ["\ufffd"]), ("é", ["\ufffd"]), ("", ["It"]), ("I", [" is"]), ("t is", []), ("<|end|>", ["<|end|>"])]
    pieces = [
        OutputPiece(
            text,
            logprobs=tuple(
                {"token": token, "logprob": -1, "bytes": [*token.encode()], "top_logprobs": []} for token in tokens
            ),
        )
        for text, tokens in said
    ]

    for completion in both(served(Told(pieces)), logprobs=True):
        (choice,) = completion.choices
        assert choice.message.content == "éIt is"
        assert [item.token for item in choice.logprobs.content] == ["\ufffd", "\ufffd", "It", " is"]
        # The halves have no bytes of their own here. A client joins the bytes of all tokens.
        assert b"".join(bytes(item.bytes) for item in choice.logprobs.content).decode() == "éIt is"


def test_what_has_no_effect_is_named():
    """Ignored parameters are named in a header and in the body, streamed or not."""
    request = {"messages": HELLO, "top_k": 3, "logit_bias": {"1": 2}, "store": False, "tools": [{"type": "web_search"}]}

    answer, stream = (
        posted(served(Told("Hi")), "/v1/chat/completions", json=request | {"stream": stream})
        for stream in (False, True)
    )

    named = ["tools[0] (web_search): not honoured", "logit_bias: not honoured", "top_k: not honoured"]
    assert answer.json()["warnings"] == named
    assert answer.headers["x-unrender-warnings"] == stream.headers["x-unrender-warnings"] == "; ".join(named)
    assert json.loads(stream.text.split("\n")[0].removeprefix("data: "))["warnings"] == named


@pytest.mark.parametrize("row", corpus("refusals"), ids=lambda row: row["path"])
def test_mistake_is_named(row):
    """A mistake in a request is a 4xx in the API's own form, and names the field if possible."""
    answer = posted(served(Told("Hi")), row["path"], json=row["body"])

    assert answer.status_code == row["status"]
    assert answer.json()["error"].items() >= row["error"].items()
    assert ("type" in answer.json()) == (row["path"] == "/v1/messages")


def test_openai_client_raises_its_own_errors():
    """OpenAI's client raises its own exception for the error."""
    with pytest.raises(openai.NotFoundError, match="expected one of"):
        openai_of(served()).chat.completions.create(model="other", messages=HELLO)


def test_list_of_too_many_stops_is_told_as_such():
    """The error for a long list of stop strings names its limit. It isn't the error that a list is no text."""
    with pytest.raises(openai.BadRequestError, match=r"stop: expected at most \d+ items"):
        openai_of(served(Told("Hi"))).chat.completions.create(model="m", messages=HELLO, stop=["a"] * 10_000)
