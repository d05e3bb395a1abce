"""Tests of llama.cpp in this process. The model is random, but the real engine generates and masks."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest
from random_gguf import write_gguf
from serving import HELLO, RED, SHOWING, browser, openai_client

from unrender.gateway import app
from unrender.gateway.answers.turns import ModelSettings, TurnFactory
from unrender.gateway.backends import Job
from unrender.gateway.config import read
from unrender.gateway.failure import Failure

pytestmark = pytest.mark.engine

CITIES = ["Paris", "Rome"]
CITY = {"enum": CITIES}
SCHEMA = {"type": "object", "properties": {"city": CITY}, "required": ["city"], "additionalProperties": False}
TOOL: Any = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}
CONTROL = ("<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<tool_call>", "</tool_call>")
OWN = ("<think>", "</think>")


def source() -> str:
    return files("unrender.gateway").joinpath("sampler.jinja").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def gguf(tmp_path_factory):
    """Return a file with a random model. Its call markers are control tokens, which an engine strips by default."""
    path = tmp_path_factory.mktemp("gguf") / "random.gguf"
    write_gguf(path, source(), CONTROL, OWN, eos=CONTROL[0])
    return path


def served(**settings):
    """Return the model of these settings."""
    return read({"models": [{"name": "m", "variables": {"enable_thinking": False}} | settings]}).models[0]


@pytest.fixture(scope="module")
def model(gguf):
    """Return the model with one thread, because several threads busy-wait for each other."""
    return served(backend="gguf", path=str(gguf), threads=1)


def asked(model, *questions):
    """Return the whole completions, or the choices of streamed ones, as the client has validated them."""

    async def completions():
        client: Any = openai_client(app([model]))
        found = []
        for question in questions:
            answer = await client.chat.completions.create(
                **{"model": "m", "messages": HELLO, "max_tokens": 250} | question
            )
            found.append([chunk.choices[0] async for chunk in answer] if question.get("stream") else answer)
        return found

    return released(model, completions())


def released(model, work):
    """Return the result of some work, and close the connections, which belong to one event loop. A model in this process stays loaded."""

    async def run():
        found = await work
        if hasattr(model.backend, "_connection"):
            await model.backend.close()
        return found

    return asyncio.run(run())


def ended(model, **request):
    """Return the first choice that ends before the token limit, because a random model may write whitespace for long."""
    for seed in range(6):
        (choice,) = asked(model, {"seed": seed, **request})[0].choices
        if choice.finish_reason != "length":
            return choice
    return pytest.fail("no answer came to its end")


def test_image_for_a_model_without_eyes_is_a_400(model):
    """llama.cpp accepts an image next to a prompt, and reports that this model doesn't support images."""
    image = {"type": "image_url", "image_url": {"url": RED}}
    request = {"messages": [{"role": "user", "content": [{"type": "text", "text": "Red?"}, image]}]}

    async def answered():
        async with browser(app([replace(model, turns=TurnFactory(template=SHOWING))])) as client:
            return await client.post("/v1/chat/completions", json=request)

    answer = released(model, answered())
    assert answer.status_code == 400
    assert "model does not support multimodal requests" in answer.json()["error"]["message"]


def test_required_call_is_made(model):
    """Even a random model makes a required call that follows the tool's schema."""
    (call,) = ended(model, tools=[TOOL], tool_choice="required", parallel_tool_calls=False).message.tool_calls

    assert json.loads(call.function.arguments)["city"] in CITIES


def test_schema_is_kept(model):
    """The response format is enforced from the first token."""
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA, "strict": True}}

    assert json.loads(ended(model, response_format=form).message.content)["city"] in CITIES


def test_engine_is_tried(model):
    """The probe finds that the engine enforces a grammar. The template writes no first token that could be duplicated."""
    assert released(model, model.probe())
    assert (model.found.grammar, model.found.adds_bos) == (True, None)


@pytest.mark.slow
def test_free_answer_is_constrained_from_the_first_marker_on(model):
    """The trigger starts the lazy grammar, so every call that the model begins is a call of the tool."""
    answers = asked(model, *({"tools": [TOOL], "seed": seed} for seed in range(12)))

    called = [answer.choices[0] for answer in answers if answer.choices[0].finish_reason == "tool_calls"]
    assert called
    for call in (call for choice in called for call in choice.message.tool_calls):
        assert json.loads(call.function.arguments)["city"] in CITIES


def test_same_seed_gives_the_same_answer(model):
    """The same seed gives the same answer. With temperature 0, no seed is needed. The engine counts tokens."""
    for more in ({"seed": 3}, {"temperature": 0}):
        first, second = asked(model, *({"max_tokens": 12, **more} for _ in range(2)))
        assert first.choices[0].message.content == second.choices[0].message.content
        assert first.usage.completion_tokens == second.usage.completion_tokens
        assert 0 < first.usage.completion_tokens <= 12
        assert first.usage.prompt_tokens > 5


def test_stream_adds_up_and_has_log_probabilities(model):
    """A stream and a whole answer are equal, and tokens of the content have alternatives."""
    question = {"max_tokens": 20, "seed": 5, "logprobs": True, "top_logprobs": 2}
    chunks, whole = asked(model, {"stream": True, **question}, question)

    tokens = whole.choices[0].logprobs.content
    assert "".join(choice.delta.content or "" for choice in chunks) == whole.choices[0].message.content
    streamed = [token for choice in chunks if choice.logprobs for token in choice.logprobs.content]
    assert [token.token for token in tokens] == [token.token for token in streamed]
    assert tokens
    assert all(token.logprob < 0 and len(token.top_logprobs) == 2 for token in tokens)


def test_stop_text_ends_the_answer(model):
    """A stop string of the client ends the content, which doesn't contain it."""
    question = {"seed": 2, "max_tokens": 60}
    whole = asked(model, question)[0].choices[0].message.content
    stop = next(character for character in whole[3:] if character.isascii() and character.isprintable())

    assert asked(model, question | {"stop": stop})[0].choices[0].message.content == whole.partition(stop)[0]


def test_client_that_goes_frees_the_engine(model):
    """The model stops when the client leaves, and is free for the next answer."""
    turn = model.turns.template.prepare(HELLO)

    async def first(number: int):
        async with aclosing(model.backend.generate(Job(turn=turn, request_id=str(number), seed=1))) as pieces:
            return await anext(pieces)

    async def six():
        # An answer that fills the context would take minutes.
        return [await asyncio.wait_for(first(number), 20) for number in range(6)]

    assert len(released(model, six())) == 6


def test_tokens_are_counted(model):
    """A marker is one token, as in the engine."""
    assert released(model, model.backend.count("ab<tool_call>")) == 3


def test_file_that_is_no_model_is_named(tmp_path):
    """A file that isn't a model is an error that names it."""
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"GGUF nonsense")

    with pytest.raises(Failure, match=r"bad\.gguf"):
        served(backend="gguf", path=str(path))


def test_a_client_gets_the_ids_that_were_sampled(model, gguf):
    """A loop that has only an OpenAI client: each prompt begins with the ids of the last prompt and answer, and they are the engine's."""
    growing = replace(model, turns=replace(model.turns, settings=ModelSettings(extend="required", thoughts="all")))
    messages, previous, row, answers = list(HELLO), {}, [], []
    request = {
        "tools": [TOOL],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "logprobs": True,
        "extra_body": {"return_token_ids": True},
    }

    async def loop():
        client: Any = openai_client(app([growing]))
        for _ in range(3):
            for seed in range(6):
                completion = await client.chat.completions.create(
                    model="m", messages=messages, max_tokens=250, seed=seed, metadata=previous, **request
                )
                (choice,) = completion.choices
                if choice.finish_reason != "length":
                    break
            assert completion.prompt_token_ids[: len(row)] == row
            assert len(choice.logprobs.content) == len(choice.token_ids) == completion.usage.completion_tokens
            row[:] = completion.prompt_token_ids + choice.token_ids
            answers.append(choice.token_ids)
            (call,) = choice.message.tool_calls
            messages.append(choice.message.model_dump(exclude_none=True))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": "<|end|> sunny"})
            previous.update(previous_completion_id=completion.id)
        return await growing.backend._query("/detokenize", {"tokens": row})

    whole = released(model, loop())["content"]
    assert whole.count("<tool_call>") == 3
    assert all(any(row[at : at + len(ids)] == ids for at in range(len(row))) for ids in answers)
