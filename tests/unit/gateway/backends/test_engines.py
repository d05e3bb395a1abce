"""Each engine on a real socket: what it is asked, what is made of its answers, and what happens when it breaks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from engine_server import EngineServer, events
from serving import HELLO, TOOL, browser, openai_client, template

from unrender import Usage
from unrender.gateway import Backend, EngineError, EngineGrammar, Job, Model, Turns, app
from unrender.gateway.backends.completions import PLAIN, VLLM, Completions
from unrender.gateway.backends.connection import Connection
from unrender.gateway.backends.llama_server import LlamaServer
from unrender.gateway.backends.ollama import Ollama
from unrender.gateway.backends.sglang import SGLang

TEXTS = ("Hé", "llo ", "😀")
USAGE = Usage(prompt_tokens=7, completion_tokens=3, cached_tokens=2)
COUNTS = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}
LAST = {"content": "", "stop": True, "stop_type": "eos", "tokens_evaluated": 7, "tokens_predicted": 3}


def sglang(text: str, tokens: int, finish: Any = None) -> dict[str, Any]:
    meta = {"completion_tokens": tokens, "prompt_tokens": 7, "cached_tokens": 2, "finish_reason": finish}
    return {"text": text, "meta_info": meta}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of engine: how it is made, its path, and `TEXTS` in its own form."""

    make: Callable[[Connection], Backend]
    path: str
    answer: bytes
    others: dict[str, Any]
    counts_cached: bool = True


KINDS = {
    "llama-server": Kind(
        LlamaServer,
        "/completion",
        events(
            *({"content": text, "tokens": [1], "stop": False} for text in TEXTS),
            LAST | {"timings": {"cache_n": 2}},
            done=False,
        ),
        {"/tokenize": {"tokens": []}},
    ),
    "vllm": Kind(
        lambda connection: Completions(connection, VLLM),
        "/v1/completions",
        events(
            *({"choices": [{"text": text, "token_ids": [1], "finish_reason": None}]} for text in TEXTS),
            {"choices": [{"text": "", "token_ids": [], "finish_reason": "stop"}]},
            {"choices": [], "usage": COUNTS},
        ),
        {"/v1/models": {"data": [{"id": "its-name"}]}},
    ),
    "sglang": Kind(
        SGLang,
        "/generate",
        events(
            *(sglang("".join(TEXTS[: i + 1])[:-1] + "\ufffd", i + 1) for i in range(3)),
            sglang("".join(TEXTS), 3, {"type": "stop", "matched": 2}),
        ),
        {"/get_server_info": {}},
    ),
    "ollama": Kind(
        lambda connection: Ollama(connection, model="its-name"),
        "/api/generate",
        b"".join(json.dumps(item).encode() + b"\n" for item in (
            *({"response": text, "done": False} for text in TEXTS),
            {"response": "", "done": True, "done_reason": "stop", "prompt_eval_count": 7, "eval_count": 3},
        )),
        {},
        counts_cached=False,
    ),
}  # fmt: skip


TURN = template().prepare(HELLO, tools=[TOOL])


def job(**more: Any) -> Job:
    return Job(turn=TURN, request_id="r1", headers={"traceparent": "t"}, **more)


async def generated(kind: Kind, said: Any = None, *, work: Job | None = None, **server: Any):
    """Return the engine, and the pieces or the error that came of a job."""
    said = [kind.answer] if said is None else said
    pieces: list[Any] = []
    async with EngineServer({**kind.others, kind.path: said}, **server) as engine:
        backend = kind.make(Connection(engine.url, key="secret", idle=5))
        try:
            async for piece in backend.generate(work or job()):
                pieces.append(piece)  # noqa: PERF401 - what came before an error counts
        except EngineError as error:
            pieces.append(error)
        await backend.close()
    return engine, pieces


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("size", [2, 10_000])
def test_answer_is_whole(kind, size):
    """The pieces add up to the text, and the engine's counts arrive, however the network cuts the bytes."""
    cut = [kind.answer[at : at + size] for at in range(0, len(kind.answer), size)]

    _, pieces = asyncio.run(generated(kind, cut))

    assert "".join(piece.text for piece in pieces) == "".join(TEXTS)
    assert sum(piece.tokens for piece in pieces) == 3
    assert [piece.finish for piece in pieces if piece.finish] == ["stop"]
    (usage,) = [piece.usage for piece in pieces if piece.usage]
    assert (usage.prompt_tokens, usage.completion_tokens) == (7, 3)
    assert usage.cached_tokens == 2 or not kind.counts_cached


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_answer_that_is_cut_is_an_error(kind):
    """Cut anywhere, even where the connection ends in good order, the answer is not taken for a whole one."""
    last_word = kind.answer.rindex(b"[DONE]" if kind.path == "/v1/completions" else b"}")
    cuts = {*range(0, last_word, 37), *range(last_word - 15, last_word + 1)}

    async def run():
        for end in cuts:
            _, pieces = await generated(kind, [kind.answer[:end]])
            *before, error = pieces
            assert isinstance(error, EngineError)
            assert "".join(TEXTS).startswith("".join(piece.text for piece in before))

    asyncio.run(run())


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(("status", "transient"), [(500, False), (503, True), (400, False)])
def test_refusal_is_an_error_with_the_engines_words(kind, status, transient):
    """A status that is not a success is an error with the engine's own words; some may pass."""

    async def run():
        async with EngineServer({kind.path: {"error": {"message": "too long"}}}, status=status) as engine:
            backend = kind.make(Connection(engine.url))
            backend._bos, backend._model, backend._incremental = "", "its-name", False  # nothing else is asked
            with pytest.raises(EngineError, match="too long") as caught:
                await anext(backend.generate(job()))
            await backend.close()
            return caught.value

    error = asyncio.run(run())
    assert (error.status, error.transient) == (status, transient)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_engine_that_is_not_there_is_an_error_that_may_pass(kind):
    """Without an engine the error says so, and the same job may be sent again."""

    async def run():
        backend = kind.make(Connection("http://127.0.0.1:9"))
        assert "cannot be reached" in await backend.ready()
        with pytest.raises(EngineError, match="cannot be reached") as caught:
            await anext(backend.generate(job()))
        await backend.close()
        return caught.value.transient

    assert asyncio.run(run())


def asked(name: str, **more: Any) -> dict[str, Any]:
    """Return what an engine is asked for a job."""
    engine, _ = asyncio.run(generated(KINDS[name], work=job(**more)))
    (body, headers), *_ = [(body, headers) for path, body, headers in engine.asked if path == KINDS[name].path]
    assert headers["authorization"] == "Bearer secret"
    assert headers["traceparent"] == "t"
    assert isinstance(body, dict)
    return body


SAMPLING = {"temperature": 0.5, "top_k": 4.0, "repetition_penalty": 1.1}


def test_llama_server_is_asked():
    """Defaults are spelled out, tokens preserved, and a lazy grammar has its triggers."""
    turn = TURN
    grammar = EngineGrammar(dialect="gbnf", text="root ::= x", triggers=turn.triggers)

    body = asked("llama-server", sampling=SAMPLING, seed=-1, limit=5, grammar=grammar, logprobs=0)

    assert body["prompt"] == turn.prompt
    assert set(turn.preserved_tokens) == set(body["preserved_tokens"])
    sent = {
        name: body[name] for name in ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "n_predict", "seed")
    }
    assert sent == {
        "temperature": 0.5, "top_k": 4.0, "top_p": 1.0, "min_p": 0.0, "repeat_penalty": 1.1, "n_predict": 5, "seed": 2**32 - 1
    }  # fmt: skip
    assert (body["grammar"], body["grammar_lazy"], body["n_probs"]) == ("root ::= x", True, 1)
    assert body["grammar_triggers"] == [{"type": 2, "value": turn.triggers[0].value}]


def test_llama_server_gets_no_second_bos():
    """Where the engine writes the first token itself, the template's own is left out."""
    kind = KINDS["llama-server"]
    others = {"/tokenize": {"tokens": [{"id": 1, "piece": "<|user|>"}]}}

    engine, _ = asyncio.run(generated(Kind(kind.make, kind.path, kind.answer, others)))

    assert (
        engine.asked[-1][1]["prompt"] == job().turn.prompt.removeprefix("<|user|>")
        or job().turn.prompt[:8] != "<|user|>"
    )


def test_vllm_is_asked():
    """Special tokens stay, none is added, there is no silent limit, and the grammar is a structural tag."""
    body = asked("vllm", sampling=SAMPLING, grammar=EngineGrammar(dialect="structural_tag", text="{}"), seed=3)

    assert body["model"] == "its-name"
    assert body["max_tokens"] == 4096  # null would be 16
    assert (body["add_special_tokens"], body["skip_special_tokens"], body["spaces_between_special_tokens"]) == (
        False,
    ) * 3
    assert body["structured_outputs"] == {"structural_tag": "{}"}
    assert (body["temperature"], body["top_k"], body["seed"]) == (0.5, 4.0, 3)


@pytest.mark.parametrize(("limit", "sent"), [(None, 700), (5000, 700), (5, 5)])
def test_vllm_is_asked_for_no_more_than_fits(limit, sent):
    """Without a limit, or with one that does not fit, what fits after the prompt is asked for."""
    kind = KINDS["vllm"]
    answers = {
        "/v1/models": {"data": [{"id": "m", "max_model_len": 1000}]},
        "/tokenize": {"count": 300},
        kind.path: kind.answer,
    }

    async def run():
        async with EngineServer(answers) as engine:
            backend = Completions(Connection(engine.url), VLLM)
            body = await backend._body(job(limit=limit))
            await backend.close()
            return body

    assert asyncio.run(run())["max_tokens"] == sent


def test_sglang_is_asked():
    """Special tokens stay, there is no silent limit, and the grammar is a structural tag."""
    body = asked("sglang", sampling=SAMPLING, grammar=EngineGrammar(dialect="structural_tag", text="{}"), seed=3)

    parameters = body["sampling_params"]
    assert parameters["max_new_tokens"] is None
    assert parameters["skip_special_tokens"] is False
    assert (parameters["structural_tag"], parameters["sampling_seed"], parameters["top_k"]) == ("{}", 3, 4.0)


def sglang_scored(*texts: str) -> dict[str, Any]:
    """Return what SGLang says of tokens: theirs, and two alternatives to each."""
    rows = [[-0.5, 7, text] for text in texts]
    return {"output_token_logprobs": rows, "output_top_logprobs": [[row, [-1.5, 8, "x"]] for row in rows]}


@pytest.mark.parametrize("incremental", [False, True])
def test_sglang_scores_each_token_once(incremental):
    """Whether it says all again or only what is new; a token that holds half a character waits for the other half."""
    kind = KINDS["sglang"]
    frames = [sglang("a", 1), sglang("a\ufffd", 2), sglang("aé", 3), sglang("aé", 4, {"type": "stop", "matched": 2})]
    scores = [["a"], ["a", "\ufffd"], ["a", "\ufffd", "\ufffd"], ["a", "\ufffd", "\ufffd", ""]]
    if incremental:
        frames = [frame | {"text": text} for frame, text in zip(frames, ("a", "", "é", ""), strict=True)]
        scores = [now[before:] for before, now in enumerate(scores)]
    for frame, texts in zip(frames, scores, strict=True):
        frame["meta_info"] |= sglang_scored(*texts)
    others = {"/get_server_info": {"incremental_streaming_output": incremental}}

    engine, pieces = asyncio.run(generated(Kind(kind.make, kind.path, events(*frames), others), work=job(logprobs=1)))

    body = next(body for path, body, _ in engine.asked if path == kind.path)
    assert (body["return_logprob"], body["top_logprobs_num"], body["return_text_in_logprobs"]) == (True, 1, True)
    told = [(piece.text, [token["token"] for token in piece.logprobs]) for piece in pieces]
    assert [item for item in told if item[0]] == [("a", ["a"]), ("é", ["\ufffd", "\ufffd"])]
    first = {"token": "a", "logprob": -0.5, "bytes": [97]}
    assert pieces[0].logprobs == (first | {"top_logprobs": [first]},)


def test_ollama_is_asked():
    """The prompt is raw, and defaults are spelled out."""
    body = asked("ollama", sampling=SAMPLING, seed=3, limit=9)

    assert (body["raw"], body["model"]) == (True, "its-name")
    options = body["options"]
    assert (options["num_predict"], options["repeat_penalty"], options["top_p"], options["seed"]) == (9, 1.1, 1.0, 3)


def test_incremental_sglang_is_read():
    """A server that sends only what is new says so, and is read so."""
    kind = KINDS["sglang"]
    answer = events(*(sglang(text, i + 1) for i, text in enumerate(TEXTS)), sglang("", 3, {"type": "length"}))
    others = {"/get_server_info": {"incremental_streaming_output": True}}

    _, pieces = asyncio.run(generated(Kind(kind.make, kind.path, answer, others)))

    assert "".join(piece.text for piece in pieces) == "".join(TEXTS)
    assert pieces[-1].finish == "length"


def test_template_comes_from_llama_server():
    """llama-server tells its template and its tokens."""

    async def run():
        props = {"chat_template": "{{ bos_token }}x", "bos_token": "<s>", "eos_token": "</s>"}
        async with EngineServer({"/props": props}) as engine:
            backend = LlamaServer(Connection(engine.url))
            loaded = await backend.templates()
            await backend.close()
            return loaded

    loaded = asyncio.run(run())
    assert (loaded.default, loaded.bos_token, loaded.eos_token) == ("{{ bos_token }}x", "<s>", "</s>")


def test_tokens_are_counted():
    """Engines that count are asked; the others say that they do not."""

    async def run():
        answers = {"/tokenize": {"tokens": [1, 2, 3], "count": 4}, "/v1/models": {"data": [{"id": "m"}]}}
        async with EngineServer(answers) as engine:
            backends = [kind.make(Connection(engine.url)) for kind in KINDS.values()]
            counts = [
                await backend.count("text") for backend in [*backends, Completions(Connection(engine.url), PLAIN)]
            ]
            await asyncio.gather(*(backend.close() for backend in backends))
            return counts

    assert asyncio.run(run()) == [3, 4, 4, None, None]


def test_log_probabilities_take_one_form():
    """llama-server's and vLLM's log probabilities come out in the form of chat completions."""
    llama, vllm = KINDS["llama-server"], KINDS["vllm"]
    token = {"id": 1, "token": "Hi", "logprob": -0.5, "bytes": [72, 105]}
    other = {"id": 2, "token": "Ho", "logprob": -1.5, "bytes": [72, 111]}
    first = {"content": "Hi", "stop": False, "completion_probabilities": [token | {"top_logprobs": [token, other]}]}
    answers = (
        (llama, events(first, LAST, done=False)),
        (vllm, events({"choices": [{"text": "Hi", "finish_reason": "stop", "logprobs": {
            "tokens": ["Hi"], "token_logprobs": [-0.5], "top_logprobs": [{"Hi": -0.5, "Ho": -1.5}]}}]})),
    )  # fmt: skip

    for kind, answer in answers:
        _, pieces = asyncio.run(generated(Kind(kind.make, kind.path, answer, kind.others), work=job(logprobs=2)))
        (found,) = [logprob for piece in pieces for logprob in piece.logprobs]
        assert (found["token"], found["logprob"], found["bytes"]) == ("Hi", -0.5, [72, 105])
        assert [item["token"] for item in found["top_logprobs"]] == ["Hi", "Ho"]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_client_gets_the_engines_answer(kind):
    """Through the gateway, OpenAI's client gets the engine's text and counts, and a broken engine is a 502."""

    async def run():
        async with EngineServer({**kind.others, kind.path: [kind.answer]}) as engine:
            backend = kind.make(Connection(engine.url))
            application = app([Model(name="m", turns=Turns(template=template()), backend=backend)])
            client = openai_client(application)
            whole = await client.chat.completions.create(model="m", messages=HELLO, tools=[TOOL])  # type: ignore[list-item]
            engine.answers = {**kind.others, kind.path: [kind.answer[:30]]}
            async with browser(application) as plain:
                broken = await plain.post("/v1/chat/completions", json={"messages": HELLO})
            await backend.close()
            return whole, broken

    whole, broken = asyncio.run(run())
    assert whole.choices[0].message.content == "".join(TEXTS)
    assert whole.usage.prompt_tokens == 7
    assert broken.status_code == 502
    assert "127.0.0.1" not in broken.text
