"""Tests of vLLM with token ids. The server answers `/tokenize` and `/inference/v1/generate` as vLLM's code does."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from engine_server import MAKERS, EngineServer, character_ids, events, pieces_of, with_engine
from serving import HELLO, TOOL, template

from unrender.gateway.answers.choice import ChoiceState
from unrender.gateway.backends import EngineError, EngineGrammar, Job
from unrender.gateway.backends.prompt_ids import PromptIds

PATH = "/inference/v1/generate"
TURN = template().prepare(HELLO, tools=[TOOL])
STOP = next(iter(TURN.stop))
SPECIAL = {text: 200_000 + at for at, text in enumerate(dict.fromkeys([*TURN.preserved_tokens, *TURN.stop]))}
SAMPLED = ((150_000, "It "), (150_001, "rains."), (SPECIAL[STOP], STOP))
"""Tokens that the tokenizer below never returns, because it has one token for each character."""
SCHEMA = {
    "paths": {PATH: {}, "/tokenize": {}},
    "components": {"schemas": {"GenerateRequest": {"properties": {"token_ids": {}, "output_mode": {}}}}},
}


def encoded(text: str) -> list[int]:
    return character_ids(text, SPECIAL)


async def tokenize(text: str, *, start: bool = False) -> list[int]:
    return encoded(text)


def tokenized(body: Any) -> dict[str, Any]:
    assert body["add_special_tokens"] is False
    ids = encoded(body["prompt"])
    return {"count": len(ids), "max_model_len": 9000, "tokens": ids}


def frame(id: int, text: str, finish: str | None = None) -> dict[str, Any]:
    scores = [
        {"token": text, "logprob": -0.5, "bytes": [*text.encode()]},
        {"token": "x", "logprob": -1.5, "bytes": [120]},
    ]
    content = [{**scores[0], "top_logprobs": scores}]
    choice = {"index": 0, "text": text, "token_ids": [id], "finish_reason": finish, "logprobs": {"content": content}}
    return {"request_id": "generate-tokens-1", "output_mode": "text", "choices": [choice]}


def answered(sampled: Any = SAMPLED) -> bytes:
    """Return a stream as vLLM sends it."""
    *others, last = sampled
    frames = [*(frame(id, text) for id, text in others), frame(last[0], last[1], "stop")]
    return events(*frames, {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": len(sampled)}})


def vllm(**others: Any) -> dict[str, Any]:
    models = {"data": [{"id": "m", "max_model_len": 9000}]}
    return {"/openapi.json": SCHEMA, "/v1/models": models, "/tokenize": tokenized, PATH: [answered()], **others}


async def generated(backend: Any, turn: Any, **more: Any) -> list[Any]:
    return await pieces_of(backend, Job(turn=turn, request_id="r1", **more))


run = partial(with_engine, MAKERS["vllm"])


def requests(*turns: Any, **others: Any) -> list[Any]:
    """Return the requests for turns, and the pieces."""

    async def act(backend: Any, server: EngineServer) -> list[Any]:
        for turn in turns:
            await generated(backend, turn)
        return sent(server)

    return run(vllm(**others), act)  # type: ignore[no-any-return]


def sent(server: EngineServer) -> list[Any]:
    return [body for path, body, _ in server.asked if path == PATH]


def test_ids_go_in_and_come_out():
    """The request has the prompt's ids, grammar and sampling. The answer has texts, ids, log probabilities and usage."""

    async def act(backend, server):
        grammar = EngineGrammar(dialect="structural_tag", text="{}")
        pieces = await generated(backend, TURN, grammar=grammar, logprobs=1, limit=9, seed=3, sampling={"top_k": 5})
        return pieces, sent(server)

    pieces, (body,) = run(vllm(), act)

    assert body["token_ids"] == encoded(TURN.prompt)
    assert (body["model"], body["stream"], body["output_mode"], body["reasoning_ended"]) == ("m", True, "text", True)
    sampling = body["sampling_params"]
    assert sampling["structured_outputs"] == {"structural_tag": "{}"}
    assert (sampling["max_tokens"], sampling["seed"], sampling["logprobs"], sampling["top_k"]) == (9, 3, 1, 5)
    assert "content_parts" not in body
    assert [(piece.ids, piece.text) for piece in pieces if piece.ids] == [((id,), text) for id, text in SAMPLED]
    assert pieces[0].prompt_ids == tuple(encoded(TURN.prompt))
    assert [piece.finish for piece in pieces if piece.finish] == ["stop"]
    assert pieces[0].logprobs[0]["top_logprobs"] == [{"token": "It ", "logprob": -0.5, "bytes": [73, 116, 32]}]
    assert pieces[-1].usage.prompt_tokens == 7


def test_next_prompt_extends_the_sampled_ids():
    """The next prompt's ids begin with those of the last prompt and its answer, and the rest is encoded."""
    text = "".join(text for _, text in SAMPLED)
    following = TURN.next(text, [{"role": "user", "content": "And tomorrow?"}])

    first, second = requests(TURN, following)

    before = [*first["token_ids"], *(id for id, _ in SAMPLED)]
    assert second["token_ids"] == [*before, *encoded("".join(piece.text for piece in following.appended))]


def test_token_that_says_more_than_its_text_is_not_continued():
    """At a stop string, vLLM cuts the text but not the token, so the next prompt is encoded as a whole."""
    torn = (*SAMPLED[:2], (150_002, STOP))
    following = TURN.next("".join(text for _, text in torn), [{"role": "user", "content": "And tomorrow?"}])

    *_, second = requests(TURN, following, **{PATH: [answered(torn)]})

    assert second["token_ids"] == encoded(following.prompt)


OLDER = {
    "no schema": None,
    "no path": {"paths": {"/tokenize": {}}, "components": {"schemas": {}}},
    "ids alone": SCHEMA | {"components": {"schemas": {"GenerateRequest": {"properties": {"token_ids": {}}}}}},
    "no object": [],
}


@pytest.mark.parametrize("schema", OLDER.values(), ids=OLDER)
def test_server_without_it_completes_text(schema):
    """A server without the path, or one that returns only ids, is checked once, and then gets text."""
    text = events({"choices": [{"text": "Hi", "token_ids": [5], "finish_reason": "stop"}]})
    answers = vllm(**{"/v1/completions": [text]})
    answers |= {"/openapi.json": schema if schema != [] else [b"[]"]}
    if schema is None:
        del answers["/openapi.json"]

    async def act(backend, server):
        pieces = [*await generated(backend, TURN), *await generated(backend, TURN)]
        return pieces, [path for path, *_ in server.asked]

    pieces, paths = run(answers, act)

    assert "".join(piece.text for piece in pieces) == "HiHi"
    assert (paths.count("/openapi.json"), paths.count("/v1/completions"), paths.count(PATH)) == (1, 2, 0)


def test_leaving_closes_the_connection():
    """Abandoning an answer closes the connection, so that vLLM stops generating."""
    first = events(frame(150_000, "It "), done=False)

    async def act(backend, server):
        async with aclosing(backend.generate(Job(turn=TURN, request_id="r1"))) as pieces:
            assert (await anext(pieces)).text == "It "
        await asyncio.wait_for(server.gone.wait(), 5)

    run(vllm(**{PATH: [first, 5.0]}), act)


def test_prompt_that_does_not_fit_is_not_sent():
    """The ids give the length of the prompt, so a prompt that doesn't fit is refused before it is sent."""

    async def act(backend, server):
        return await generated(backend, TURN), sent(server)

    (error,), bodies = run(vllm(**{"/v1/models": {"data": [{"id": "m", "max_model_len": 5}]}}), act)

    assert "maximum context length is 5 tokens" in error.message
    assert bodies == []


@pytest.mark.parametrize("tokens", [None, "ids", [1, "2"], [-1], [True], [2**32]])
def test_tokens_that_are_none_are_an_error(tokens):
    """An answer of the tokenizer that isn't a list of ids is an engine error."""
    (error,) = run(vllm(**{"/tokenize": {"tokens": tokens}}), lambda backend, _: generated(backend, TURN))

    assert "expected a list of token ids" in error.message


def test_ids_are_kept_within_their_bound():
    """The oldest ids are dropped first."""
    text = "Fine."
    following = TURN.next(text, [{"role": "user", "content": "And?"}])

    async def act(most):
        ids = PromptIds(tokenize, most=most)
        await ids.keep(TURN, [7], text, [8])
        for at in range(4):
            await ids.keep(replace(TURN, prompt=f"other {at}"), [1], text, [2])
        return (await ids.of(following))[:2]

    assert asyncio.run(act(10)) == [7, 8]
    assert asyncio.run(act(9)) == encoded(following.prompt)[:2]


@pytest.mark.parametrize(("stop", "last", "kept"), [("END.", 9, False), ("END.", SPECIAL[STOP], True), (STOP, 9, True)])
def test_ids_of_a_stripped_stop_are_not_reused(stop, last, kept):
    """If an engine strips a stop string of several tokens from the text, the ids contain more than the text."""
    turn = replace(TURN, format=replace(TURN.format, turn=replace(TURN.format.turn, end=stop, ends=())))

    async def act():
        ids = PromptIds(tokenize, strips_stop=True)
        await ids.keep(turn, [7], "Fine.", [8, last])
        return bool(ids._kept)

    assert turn.stop == (stop,)
    assert asyncio.run(act()) is kept


JSON = '\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n'
CALL = [(SPECIAL["<tool_call>"], "<tool_call>"), (1, JSON), (SPECIAL["</tool_call>"], "</tool_call>")]
SPELLED = [(3, "<tool"), (4, "_call>"), (1, JSON), (5, "</tool_call>")]
TEXT = "".join(text for _, text in SPELLED)
ANSWERS = {"spelled": (SPELLED, TEXT, 0), "meant": (CALL, "", 1), "both": ([*SPELLED, *CALL], TEXT, 1)}


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize(("tokens", "content", "calls"), ANSWERS.values(), ids=ANSWERS)
def test_only_special_tokens_are_markers(tokens, content, calls, size):
    """A marker that is spelled in ordinary tokens is content, however many tokens an event has."""
    message = _message([tokens[at : at + size] for at in range(0, len(tokens), size)])

    assert (message.content.strip(), len(message.tool_calls)) == (content, calls)


def test_markers_of_a_grammar_may_have_ordinary_tokens():
    """Grammars consist of text, so a constrained model may spell a marker in ordinary tokens. Its call counts."""
    message = _message([[token] for token in SPELLED], grammar=EngineGrammar(dialect="structural_tag", text="{}"))

    assert (message.content, [call.arguments for call in message.tool_calls]) == ("", [{"city": "Rome"}])


def _message(parts: Any, **more: Any) -> Any:
    frames = [frame(part[0][0], "".join(text for _, text in part)) for part in parts]
    for one, part in zip(frames, parts, strict=True):
        one["choices"][0]["token_ids"] = [id for id, _ in part]
    end = frame(SPECIAL[STOP], STOP, "stop")

    async def act(backend, _):
        choice = ChoiceState(TURN)
        for piece in await generated(backend, TURN, **more):
            choice.feed(piece)
        choice.finish()
        return choice.outcome.message

    return run(vllm(**{PATH: [events(*frames, end)]}), act)


def test_server_that_has_lost_the_path_is_checked_again():
    """If an engine restarts without the path, one request fails, and the next is sent as text."""
    text = events({"choices": [{"text": "Hi", "token_ids": [5], "finish_reason": "stop"}]})
    answers = vllm(**{"/v1/completions": [text]})

    async def act(backend, server):
        await generated(backend, TURN)
        del server.answers[PATH]
        server.answers["/openapi.json"] = {"paths": {}}
        (error,) = await generated(backend, TURN)
        assert isinstance(error, EngineError)
        return await generated(backend, TURN)

    assert "".join(piece.text for piece in run(answers, act)) == "Hi"
