"""Tests of kept conversations: the next prompt extends the model's own text. `test_exchanges` has tests of what is recognized."""

from __future__ import annotations

import asyncio
from typing import Any

from cases import cases
from live import ASKED
from serving import HELLO, TOOL, Told, asked, browser, chunked, posted, served
from three_apis import APIS, continued

from unrender.gateway.gateway import GatewayLimits

CHAT = "/v1/chat/completions"


def call(number: int) -> str:
    """Return an answer with a thought and a call, in an unusual notation."""
    arguments = f'{{"city":"Town {number}" , "day": {number}.0}}'
    written = f'{{"name": "get_weather","arguments":{arguments}}}'
    return f"<think>\nLook {number}.\n\n\n</think>\n\n<tool_call>\n{written}\n</tool_call>"


@cases
def test_agent_of_20_turns_reuses_every_prompt(api, stream, name):
    """Each prompt begins with the last prompt and its answer, exactly as the model wrote it, with reasoning.

    On Chat Completions the agent sends no reasoning back, and in other APIs it sends everything.
    """
    engine = Told(lambda _: chunked(call(len(engine.jobs)), 7))
    application, conversation = served(engine, name), list[Any](HELLO)

    for number in range(20):
        answer = APIS[api](application, conversation, stream=stream)
        answer.get("message", {}).pop("reasoning_content", None)
        conversation += continued(api, answer, f"wet {number}")

    prompts = [job.turn.prompt for job in engine.jobs]
    assert len(prompts) == 20
    for before, text, after in zip(prompts, engine.texts, prompts[1:], strict=False):
        assert after.startswith(before + text)
    assert len({prompt.count("wet ") for prompt in prompts}) == 20


def prompt_after(application: Any, text: str = "Rain?", **more: Any) -> str:
    """Return the prompt of a question's answer and another question."""
    asked_for = [{"role": "user", "content": text}]
    first = posted(application, CHAT, json={"model": "m", "messages": asked_for, "tools": [TOOL]}).json()
    messages = [*asked_for, first["choices"][0]["message"], {"role": "user", "content": "Sure?"}]
    body = {"model": "m", "messages": messages, "tools": [TOOL], **more}
    return str(posted(application, "/v1/render", json=body).json()["prompt"])


def extends(prompt: str, engine: Told) -> bool:
    """Return whether a prompt begins with the engine's last one and its answer."""
    return prompt.startswith(engine.jobs[-1].turn.prompt + engine.texts[-1])


def test_answer_whose_client_leaves_is_not_kept():
    """Nothing is kept if the client leaves."""
    engine = Told(["It ", 5.0, "rains."])
    application = served(engine, "json-tags")

    async def leave() -> None:
        async with browser(application) as client:
            asking = asyncio.create_task(client.post(CHAT, json={**ASKED[CHAT], "stream": True}))
            await engine.asked.wait()
            asking.cancel()

    asyncio.run(leave())

    assert len(application.state.gateway.kept) == 0


def test_budget_counts_what_is_held():
    """The size of kept answers is limited, the most recently used ones stay, and metrics have the size."""
    engine = Told("It rains.")
    application = served(engine, "json-tags", limits=GatewayLimits(kept_bytes=60_000))
    store = application.state.gateway.kept

    for number in range(1, 10):
        prompt_after(application)
        assert extends(prompt_after(application, f"{number}" * 5_000), engine)
        assert store.weight <= 60_000
    kept = [answer for alike in store._answers.values() for answer in alike]
    held = sum(len(one.turn.prompt) + len(one.text) for one in kept)
    # A turn also holds its messages and tools, and each answer counts them.
    assert held <= store.weight <= 2 * held + 6_000 * len(store)
    assert 0 < len(store) < 10
    lines = asked(application, "GET", "/metrics").text.splitlines()
    assert f"unrender_kept_conversations {len(store)}.0" in lines
    assert f"unrender_kept_bytes {store.weight}.0" in lines


def test_answer_above_the_budget_is_not_kept():
    """An answer that is larger than the limit doesn't displace others."""
    application = served(Told("It rains."), "json-tags", limits=GatewayLimits(kept_bytes=30_000))

    for text in ("Rain?", "x" * 40_000):
        prompt_after(application, text)

    assert len(application.state.gateway.kept) == 1
