"""Tests of images beside a prompt, for each engine."""

from __future__ import annotations

import pytest
from engine_server import MAKERS, events, with_engine
from serving import RED, SHOWING, browser, served

CHAT = "/v1/chat/completions"


def through(kind, answers, **more):
    """Return an engine's first request for a text with an image, and the client's answer."""
    image = {"type": "image_url", "image_url": {"url": RED}}
    parts = [{"type": "text", "text": "Which is"}, image, {"type": "text", "text": " or?"}]

    async def act(backend, server):
        async with browser(served(backend, SHOWING)) as client:
            answer = await client.post(CHAT, json={"messages": [{"role": "user", "content": parts}]} | more)
        return next(body for path, body, _ in server.asked if path == next(iter(answers))), answer.json()

    return with_engine(MAKERS[kind], answers, act)


@pytest.mark.parametrize("mark", ["<__media_4f__>", ""])
def test_llama_server_gets_its_own_marks(mark):
    """Each llama.cpp server has its own marker for images, which replaces the template's placeholder."""
    said = events({"content": "Red.", "stop": True, "stop_type": "eos"}, done=False)
    answers = {"/completion": [said], "/tokenize": {"tokens": []}, "/health": {}, "/props": {"media_marker": mark}}

    body, answer = through("llama-server", answers)

    assert answer["choices"][0]["message"]["content"] == "Red."
    prompt = f"<|user|>Which is{mark or '<__media__>'} or?<|end|><|assistant|>"
    assert body["prompt"] == {"prompt_string": prompt, "multimodal_data": ["cmVk"]}


def test_sglang_and_vllm_get_the_templates_placeholders():
    """SGLang gets the text and the images. vLLM gets the prompt's tokens and the images, at a separate path."""
    said = {"choices": [{"text": "Red.", "token_ids": [7], "finish_reason": "stop"}]}
    others = {"/tokenize": {"tokens": [1, 2, 3], "count": 3}, "/v1/models": {"data": [{"id": "m"}]}}
    body, _ = through("vllm", {"/inference/v1/generate": [events(said)], **others}, temperature=0.5)

    assert (body["token_ids"], body["content_parts"]) == ([1, 2, 3], [{"type": "image_url", "url": RED}])
    assert body["sampling_params"]["temperature"] == 0.5
    assert "max_tokens" not in body["sampling_params"]

    last = {"text": "Red.", "meta_info": {"finish_reason": {"type": "stop"}}}
    body, _ = through("sglang", {"/generate": [events(last)], "/get_server_info": {}})
    assert body["image_data"] == [RED]
