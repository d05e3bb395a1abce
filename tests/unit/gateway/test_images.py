"""Tests of images beside a prompt, for each engine and API, and of refused images."""

from __future__ import annotations

import asyncio

import pytest
from engine_server import MAKERS, EngineServer, events
from serving import RED, SHOWING, Told, browser, posted, served

from unrender import ChatTemplate
from unrender.gateway.backends import EngineCapabilities

BLUE = "data:image/jpeg;base64,Ymx1ZQ=="
TEXT = ("Which is", " red,", " or?")
CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"


def block(url):
    """Return an image in the form of Messages."""
    head, _, data = url.partition(",")
    if not url.startswith("data:"):
        return {"type": "image", "source": {"type": "url", "url": url}}
    return {"type": "image", "source": {"type": "base64", "media_type": head.partition(";")[0][5:], "data": data}}


IMAGES = {
    CHAT: lambda url: {"type": "image_url", "image_url": {"url": url, "detail": "low"}},
    RESPONSES: lambda url: {"type": "input_image", "image_url": url},
    MESSAGES: block,
}


def body(path, *urls):
    """Return a request with text, and images between its parts."""
    kind = "input_text" if path == RESPONSES else "text"
    parts = [{"type": kind, "text": TEXT[0]}]
    for url, text in zip(urls, TEXT[1:], strict=False):
        parts += [IMAGES[path](url), {"type": kind, "text": text}]
    said = [{"role": "user", "content": parts}]
    return (
        {"input": said}
        if path == RESPONSES
        else {"messages": said} | {"max_tokens": 9}
        if path == MESSAGES
        else {"messages": said}
    )


def gateway(engine, chat=SHOWING):
    return served(engine, chat)


def through(kind, answers, *urls, **more):
    """Return an engine's first request for images, and the client's answer."""

    async def run():
        async with EngineServer(answers) as server:
            backend = MAKERS[kind](server.url)
            async with browser(gateway(backend)) as client:
                answer = await client.post(CHAT, json=body(CHAT, *urls) | more)
            await backend.close()
            return next(body for path, body, _ in server.asked if path == next(iter(answers))), answer.json()

    return asyncio.run(run())


@pytest.mark.parametrize("path", IMAGES)
def test_images_come_beside_the_prompt_in_their_order(path):
    """In each API, the prompt has the template's placeholders, and the job has the images."""
    engine = Told("Both.", capabilities=EngineCapabilities(images="shown", seed=False))

    assert posted(gateway(engine), path, json=body(path, RED, BLUE)).status_code == 200

    turn = engine.jobs[0].turn
    assert turn.prompt == "<|user|>Which is<|vision|> red,<|vision|> or?<|end|><|assistant|>"
    assert [medium.data for medium in turn.media] == [RED, BLUE]


@pytest.mark.parametrize("mark", ["<__media_4f__>", ""])
def test_llama_server_gets_its_own_marks(mark):
    """Each llama.cpp server has its own marker for images, which replaces the template's placeholder."""
    said = events({"content": "Red.", "stop": True, "stop_type": "eos"}, done=False)
    answers = {"/completion": [said], "/tokenize": {"tokens": []}, "/health": {}, "/props": {"media_marker": mark}}

    body, answer = through("llama-server", answers, RED, BLUE)
    mark = mark or "<__media__>"
    assert answer["choices"][0]["message"]["content"] == "Red."
    assert body["prompt"] == {
        "prompt_string": f"<|user|>Which is{mark} red,{mark} or?<|end|><|assistant|>",
        "multimodal_data": ["cmVk", "Ymx1ZQ=="],
    }


def test_sglang_and_vllm_get_the_templates_placeholders():
    """SGLang gets the text and the images. vLLM gets the prompt's tokens and the images, at a separate path."""
    said = {"choices": [{"text": "Red.", "token_ids": [7], "finish_reason": "stop"}]}
    others = {"/tokenize": {"tokens": [1, 2, 3], "count": 3}, "/v1/models": {"data": [{"id": "m"}]}}
    body, _ = through("vllm", {"/inference/v1/generate": [events(said)], **others}, RED, temperature=0.5)

    assert (body["token_ids"], body["content_parts"]) == ([1, 2, 3], [{"type": "image_url", "url": RED}])
    assert body["sampling_params"]["temperature"] == 0.5
    assert "max_tokens" not in body["sampling_params"]

    last = {"text": "Red.", "meta_info": {"finish_reason": {"type": "stop"}}}
    body, _ = through("sglang", {"/generate": [events(last)], "/get_server_info": {}}, RED)
    assert body["image_data"] == [RED]


REFUSED = {
    "an address": ("https://example.org/x.png", "since URLs are not fetched; found 'https://example.org/x.png'"),
    "a file": ("file:///etc/passwd", "since URLs are not fetched; found 'file:///etc/passwd'"),
    "no image": ("data:text/html;base64,AAAA", "expected images as data URLs"),
}


@pytest.mark.parametrize("path", IMAGES)
@pytest.mark.parametrize(("url", "said"), REFUSED.values(), ids=REFUSED)
def test_nothing_is_fetched_for_a_client(path, url, said):
    """Only images as data are accepted, so no client can make the gateway or an engine fetch a URL."""
    engine = Told("No.", capabilities=EngineCapabilities(images="shown", seed=False))

    answer = posted(gateway(engine), path, json=body(path, url))

    assert answer.status_code == 400
    assert said in answer.json()["error"]["message"]
    assert not engine.jobs


def test_what_cannot_be_shown_is_refused():
    """An engine or a template without images, or another kind of media, gets status 400 and an error that names the cause."""
    sound = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    heard = {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hm?"}, sound]}]}
    seeing = Told("", capabilities=EngineCapabilities(images="shown", seed=False))
    silent = ChatTemplate.from_string("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}")
    rows = [
        (gateway(Told("")), body(CHAT, RED), "messages[0].content: the engine doesn't support image input"),
        (gateway(MAKERS["openai"]("http://engine")), body(CHAT, RED), "the engine doesn't support image input"),
        (gateway(seeing), heard, "messages[0].content: the engine doesn't support audio input"),
        (gateway(seeing, silent), body(CHAT, RED), "messages[0].content[1]: the template doesn't support image parts"),
    ]

    for application, request, said in rows:
        answer = posted(application, CHAT, json=request)
        assert answer.status_code == 400
        assert said in answer.json()["error"]["message"]


def test_image_that_a_template_drops_is_refused():
    """An engine with its own markers needs one for each image, so a template that drops an image is refused."""
    first = ChatTemplate.from_string(
        "{% for m in messages %}<|{{ m.role }}|>{% if m.content is string %}{{ m.content }}{% elif loop.first %}"
        "{% for p in m.content %}{{ '<|vision|>' if p.type == 'image' else p.text }}{% endfor %}{% else %}later"
        "{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    engine = Told("", capabilities=EngineCapabilities(images="marked", seed=False))
    (one,), answer = body(CHAT, RED)["messages"], {"role": "assistant", "content": "No."}

    refused = posted(gateway(engine, first), CHAT, json={"messages": [one, answer, one]})

    assert refused.status_code == 400
    assert "does not show each image once" in refused.json()["error"]["message"]
