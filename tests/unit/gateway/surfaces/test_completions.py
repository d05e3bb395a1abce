"""Completions, judged by OpenAI's own client with strict validation: a text goes in and comes out as it is."""

from __future__ import annotations

import asyncio
import json

import openai
import pytest
from serving import Told, browser, openai_client, posted, served

from unrender import ChatTemplate, Usage
from unrender.gateway import Model, Piece, Turns, app

TEXT = '  <think>\n{"name": 1}</think> <tool_call> <|end|>\n '


async def both(application, **request):
    """Return the whole completion, which the client has validated, and the chunks of the stream.

    The client's type of a chunk wants a finish reason in each, which OpenAI does not send either.
    """
    request = {"model": "m", "prompt": "Once"} | request
    whole = await openai_client(application).completions.create(**request)
    options = {"stream": True, "stream_options": {"include_usage": True}}
    async with browser(application) as client:
        stream = await client.post("/v1/completions", json={**request, **options})
    *frames, done = stream.text.strip().split("\n\n")
    assert done == "data: [DONE]"
    return whole, [json.loads(frame[6:]) for frame in frames]


def text_of(chunks, index=0):
    return "".join(choice["text"] for chunk in chunks for choice in chunk["choices"] if choice["index"] == index)


def test_text_is_passed_through():
    """Neither prompt nor answer is touched, whatever they hold: no template, no parser."""
    engine = Told([*TEXT, Piece("", 0, "length", Usage(prompt_tokens=1, completion_tokens=9))])

    whole, chunks = asyncio.run(both(served(engine), prompt=" <|user|>Once "))

    assert whole.choices[0].text == text_of(chunks) == TEXT
    assert [job.turn.prompt for job in engine.jobs] == [" <|user|>Once "] * 2
    assert {choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]} == {None, "length"}
    assert whole.choices[0].finish_reason == "length"
    assert whole.usage.model_dump(exclude_none=True) == chunks[-1]["usage"]
    assert whole.usage.completion_tokens == 9


def test_prompt_begins_as_the_models_own_do():
    """Where the template begins its prompts with a token that engines are told not to add, so does a raw prompt, once."""
    source = "{{ bos_token }}{% for message in messages %}{{ message.content }}{% endfor %}"
    engine = Told("Hi")
    turns = Turns(template=ChatTemplate.from_string(source, bos_token="<s>"))
    client = openai_client(app([Model(name="m", turns=turns, backend=engine)]))

    for prompt in ("Once", "<s>Once"):
        asyncio.run(client.completions.create(model="m", prompt=prompt))

    assert [job.turn.prompt for job in engine.jobs] == ["<s>Once"] * 2


def test_parameters_are_heeded():
    """Choices, stop texts, the echoed prompt and log probabilities, whole and streamed."""
    logprobs = ({"token": "ab", "logprob": -1.0, "bytes": None, "top_logprobs": [{"token": "x", "logprob": -2.0}]},)
    engine = Told([Piece("ab", logprobs=logprobs), "cd STOP e"])

    whole, chunks = asyncio.run(both(served(engine), n=2, stop="STOP", echo=True, logprobs=1))

    for choice in whole.choices:
        assert choice.text == text_of(chunks, choice.index) == "Onceabcd "
        assert (choice.logprobs.tokens, choice.logprobs.token_logprobs) == (["ab"], [-1.0])
        assert (choice.logprobs.top_logprobs, choice.logprobs.text_offset) == ([{"x": -2.0}], [0])
        assert choice.finish_reason == "stop"


def test_mistake_and_what_has_no_effect_are_named():
    """Tokens and several prompts are refused; a parameter without effect is named in body and header."""
    for prompt in ([1, 2], ["a", "b"], None, {}):
        with pytest.raises(openai.BadRequestError, match="prompt: expected one text"):
            asyncio.run(openai_client(served(Told("Hi"))).completions.create(model="m", prompt=prompt))

    answer = posted(served(Told("Hi")), "/v1/completions", json={"prompt": "a", "suffix": "b", "best_of": 1})
    assert answer.json()["warnings"] == ["suffix: not honoured"]
    assert answer.headers["x-unrender-warnings"] == "suffix: not honoured"
