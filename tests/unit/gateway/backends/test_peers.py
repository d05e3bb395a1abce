"""Requests to vLLM and SGLang, validated by their own request classes.

These tests run only if the engines are installed (`python3 scripts/run.py plugins`).
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
from typing import Any

import pytest
import torchless_vision
from engine_server import MAKERS, Scripted, events
from engines import installed
from serving import HELLO, RED, SHOWING, TOOL, template

from unrender.gateway.backends import EngineGrammar, Job

pytestmark = [
    pytest.mark.engine,
    pytest.mark.filterwarnings("ignore"),
]
SAMPLING = {
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": 5,
    "min_p": 0.1,
    "presence_penalty": 0.5,
    "frequency_penalty": 0.5,
    "repetition_penalty": 1.1,
}


MODELS = {"/v1/models": {"data": [{"id": "m"}]}}


def sent(kind, job, others=None):
    """Return the request that an engine of this kind gets for a job. `others` are the engine's other answers."""
    return asyncio.run(MAKERS[kind](Scripted([], others))._body(job))


def jobs():
    """Return a minimal job, and one with all options."""
    turn = template().prepare(HELLO, tools=[TOOL], tool_choice="required")
    grammar = EngineGrammar(dialect="structural_tag", text=turn.constraint("xgrammar").grammar)
    full: dict[str, Any] = {"grammar": grammar, "limit": 9, "sampling": SAMPLING, "seed": 3, "logprobs": 2}
    return [Job(turn=turn, request_id="r"), Job(turn=turn, request_id="r", **full)]


def shown():
    """Return a job with an image and all options, and the image."""
    parts = [{"type": "text", "text": "Red?"}, {"type": "image_url", "image_url": {"url": RED}}]
    return dataclasses.replace(jobs()[1], turn=SHOWING.prepare([{"role": "user", "content": parts}])), RED


@pytest.mark.skipif(not installed("vllm"), reason="vllm is needed")
def test_vllm_takes_images_beside_tokens():
    """Every field of a request is in vLLM's request class for tokens, with the right value. Its events are parsed like completions."""
    protocol = importlib.import_module("vllm.entrypoints.scale_out.token_in_token_out.protocol")
    scores = importlib.import_module("vllm.entrypoints.openai.chat_completion.protocol")
    job, image = shown()
    others = {**MODELS, "/tokenize": {"tokens": [1, 2], "count": 2}}
    body = sent("vllm", dataclasses.replace(job, prompt_ids=[1, 2]), others)
    request = protocol.GenerateRequest.model_validate(body)

    assert set(body) <= set(protocol.GenerateRequest.model_fields)
    assert (request.token_ids, request.output_mode, request.stream) == ([1, 2], "text", True)
    assert [(part["type"], part["url"]) for part in request.content_parts] == [("image_url", image)]
    sampled = request.sampling_params
    assert set(body["sampling_params"]) <= {*type(sampled).__struct_fields__}
    assert {name: getattr(sampled, name) for name in job.sampling} == job.sampling
    assert (sampled.max_tokens, sampled.seed, sampled.logprobs) == (job.limit, job.seed, job.logprobs)
    assert (sampled.skip_special_tokens, sampled.stop) == (False, list(job.turn.stop))
    assert sampled.structured_outputs.structural_tag == job.grammar.text

    top = [scores.ChatCompletionLogProb(token="Red", logprob=-0.5, bytes=[82, 101, 100])]
    content = [scores.ChatCompletionLogProbsContent(token="Red", logprob=-0.5, bytes=[82, 101, 100], top_logprobs=top)]
    choice = protocol.GenerateTextStreamChoice(
        index=0,
        text="Red",
        token_ids=[7],
        finish_reason="stop",
        logprobs=scores.ChatCompletionLogProbs(content=content),
    )
    said = protocol.GenerateTextStreamResponse(choices=[choice]).model_dump()

    async def run():
        return [piece async for piece in MAKERS["vllm"](Scripted([events(said)], others)).generate(job)]

    (piece,) = asyncio.run(run())
    assert (piece.text, piece.tokens, piece.finish) == ("Red", 1, "stop")
    assert [token["token"] for token in piece.logprobs] == ["Red"]
    assert piece.logprobs[0]["top_logprobs"][0]["logprob"] == -0.5


@pytest.mark.skipif(not installed("sglang"), reason="sglang is needed")
def test_sglang_takes_images_beside_a_text():
    """SGLang's request class accepts the images as those of a single prompt."""
    torchless_vision.install()
    job, image = shown()
    request = importlib.import_module("sglang.srt.managers.io_struct").GenerateReqInput(**sent("sglang", job))
    request.normalize_batch_and_arguments()

    assert request.is_single
    assert request.image_data == [image]
    assert request.contains_mm_input()


@pytest.mark.skipif(not installed("vllm"), reason="vllm is needed")
def test_vllm_understands_every_field():
    """Every field of a request is in vLLM's request class, with the right value."""
    request_class = importlib.import_module("vllm.entrypoints.openai.completion.protocol").CompletionRequest
    for job in jobs():
        body = sent("vllm", job, MODELS)
        request = request_class.model_validate(body)

        assert set(body) <= set(request_class.model_fields)
        assert (request.add_special_tokens, request.skip_special_tokens) == (False, False)
        assert (request.max_tokens, request.seed, request.logprobs) == (job.limit or 4096, job.seed, job.logprobs)
        assert {name: getattr(request, name) for name in job.sampling} == job.sampling
        if job.grammar is not None:
            assert request.structured_outputs.structural_tag == job.grammar.text


@pytest.mark.skipif(not installed("sglang"), reason="sglang is needed")
def test_sglang_understands_every_field():
    """Every field of a request is in SGLang's request class or its sampling parameters, with the right value."""
    torchless_vision.install()
    request_class = importlib.import_module("sglang.srt.managers.io_struct").GenerateReqInput
    sampling_class = importlib.import_module("sglang.srt.sampling.sampling_params").SamplingParams
    for job in jobs():
        body = sent("sglang", job)
        request = request_class(**body)
        sampling = sampling_class(**request.sampling_params)

        assert set(body) <= {field.name for field in dataclasses.fields(request_class)}
        assert (sampling.skip_special_tokens, sampling.max_new_tokens) == (False, job.limit)
        assert (request.return_logprob, request.top_logprobs_num) == (
            (True, job.logprobs) if job.logprobs is not None else (request_class(text="").return_logprob, None)
        )
        assert {name: getattr(sampling, name) for name in job.sampling} == job.sampling
        if job.grammar is not None:
            assert sampling.structural_tag == job.grammar.text
