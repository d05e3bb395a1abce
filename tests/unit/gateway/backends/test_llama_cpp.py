"""A real llama.cpp, with a random model: its tokens, grammars, triggers and cancellation are not ours."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from importlib.resources import files
from typing import Any

import pytest
from random_gguf import write_gguf
from serving import HELLO, browser, openai_client

from unrender.gateway import Job, Model, app
from unrender.gateway.backends.connection import Connection
from unrender.gateway.config import read
from unrender.gateway.failure import Failure

pytestmark = pytest.mark.engine
pytest.importorskip("xllamacpp")

CITIES = ["Paris", "Rome"]
CITY = {"enum": CITIES}
SCHEMA = {"type": "object", "properties": {"city": CITY}, "required": ["city"], "additionalProperties": False}
TOOL: Any = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}
CONTROL = ("<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<tool_call>", "</tool_call>")
OWN = ("<think>", "</think>")


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Model:
    """Return a random model whose markers of calls are control tokens, which an engine strips unless it is told otherwise."""
    path = tmp_path_factory.mktemp("gguf") / "random.gguf"
    source = files("unrender.gateway").joinpath("sampler.jinja").read_text(encoding="utf-8")
    write_gguf(path, source, CONTROL, OWN, eos="<|end|>")
    # One thread, since more of them spin while they wait for each other, which a busy machine makes long.
    engine = {"backend": "gguf", "path": str(path), "threads": 1}
    settings = {**engine, "name": "m", "variables": {"enable_thinking": False}}
    return read({"models": [settings]}).models[0]


def completed(model: Model, **request: Any) -> Any:
    """Return the whole completion, as the client has validated it."""

    async def run():
        client: Any = openai_client(app([model]))
        answer = await client.chat.completions.create(**{"model": "m", "messages": HELLO, "max_tokens": 250} | request)
        await model.backend.close()
        return answer

    return asyncio.run(run())


def test_required_call_is_made(model):
    """A required call is made in the tool's schema, by a model that knows nothing."""
    for seed in range(3):
        (choice,) = completed(model, tools=[TOOL], tool_choice="required", parallel_tool_calls=False, seed=seed).choices
        if choice.finish_reason == "length":  # Layout may go on for long.
            continue
        (call,) = choice.message.tool_calls
        assert json.loads(call.function.arguments)["city"] in CITIES
        break
    else:
        pytest.fail("no answer came to its end")


@pytest.mark.slow
def test_free_answer_is_constrained_from_the_first_marker_on(model):
    """The lazy grammar wakes at our trigger: what begins as a call of its own accord becomes a call of the tool."""
    answers = [completed(model, tools=[TOOL], seed=seed).choices[0] for seed in range(12)]

    called = [choice for choice in answers if choice.finish_reason == "tool_calls"]
    assert called
    for choice in called:
        for call in choice.message.tool_calls:
            assert json.loads(call.function.arguments)["city"] in CITIES


def test_schema_is_kept(model):
    """A response format is kept from the first token on."""
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA, "strict": True}}

    answers = [completed(model, response_format=form, seed=seed).choices[0] for seed in range(3)]

    ended = [choice.message.content for choice in answers if choice.finish_reason == "stop"]
    assert ended
    assert all(json.loads(content)["city"] in CITIES for content in ended)


def test_usage_and_log_probabilities_are_the_engines(model):
    """The engine's counts arrive, and each token of the content has its log probability and its alternatives."""
    answer = completed(model, logprobs=True, top_logprobs=2, seed=1, max_tokens=20)

    tokens = answer.choices[0].logprobs.content
    assert answer.usage.completion_tokens <= 20
    assert answer.usage.prompt_tokens > 5
    assert tokens
    assert all(token.logprob < 0 and len(token.top_logprobs) == 2 for token in tokens)


def test_stop_text_ends_the_answer(model):
    """A stop text of the client's ends the content before it."""
    whole = completed(model, seed=2, max_tokens=60).choices[0].message.content
    stop = next(character for character in whole[3:] if character.isascii() and character.isprintable())

    stopped = completed(model, seed=2, max_tokens=60, stop=stop).choices[0].message.content

    assert stopped == whole.partition(stop)[0]


def test_client_that_goes_frees_the_slot(model):
    """When nobody wants the rest, llama.cpp stops generating it."""

    async def run():
        connection = Connection(model.backend._connection.url)
        async with browser(app([model])) as client:
            task = asyncio.create_task(
                client.post("/v1/chat/completions", json={"messages": HELLO, "seed": 5, "stop": "\0"})
            )
            await asyncio.sleep(0.05)
            task.cancel()
        for _ in range(50):
            slots = await connection.json("GET", "/slots")
            if not any(slot["is_processing"] for slot in slots):
                break
            await asyncio.sleep(0.05)
        await asyncio.gather(connection.close(), model.backend.close())
        return slots

    assert not any(slot["is_processing"] for slot in asyncio.run(run()))


def test_jobs_follow_each_other(model):
    """A connection that llama.cpp has closed without a word costs no job."""

    async def run():
        turn = model.turns.template.prepare(HELLO)
        for number in range(4):
            async with aclosing(model.backend.generate(Job(turn=turn, request_id=str(number), limit=2))) as pieces:
                assert [piece.finish async for piece in pieces][-1]
        await model.backend.close()

    asyncio.run(run())


def test_engine_is_tried(model):
    """Tried, llama.cpp holds to a grammar and lets markers through; the template writes no first token to be doubled."""

    async def run():
        assert await model.probe()
        await model.backend.close()

    asyncio.run(run())

    assert (model.found.grammar, model.found.doubled) == (True, None)
    assert model.found.markers is not False  # A random model may spell a marker in ordinary tokens.


def test_tokens_are_counted(model):
    """A marker is one token, as the engine sees it."""

    async def run():
        counted = await model.backend.count("ab<tool_call>")
        await model.backend.close()
        return counted

    assert asyncio.run(run()) == 3


def test_file_that_is_no_model_is_named(tmp_path):
    """A file that is not a model is an error that names it."""
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"GGUF nonsense")

    with pytest.raises(Failure, match=r"bad\.gguf"):
        read({"models": [{"backend": "gguf", "path": str(path)}]})
