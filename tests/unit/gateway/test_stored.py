"""Answers that are stored: what later requests refer to, who may, and what is forgotten."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
import pytest
from serving import CALL, WEATHER, Told, browser, openai_client, served

from unrender.gateway import GatewayLimits, Keys
from unrender.gateway.failure import Failure
from unrender.gateway.surfaces.stored import Stored

ANSWER = f"<think>\nRain?\n</think>\nI'll look.\n{CALL}<|end|>"
FLAT = {"type": "function", "strict": False, **WEATHER}
ROOM = GatewayLimits(stored=100_000)


def entry(id, text):
    return {"id": id, "output": [{"id": f"msg_{id}", "type": "message", "content": text}]}


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_conversation_goes_on_from_a_stored_answer(stream):
    """A request that names the previous response gets the prompt of the whole conversation, reasoning and calls included."""
    engine = Told(ANSWER)
    application = served(engine, limits=ROOM)

    async def run():
        client: Any = openai_client(application)
        first = await client.responses.create(model="m", input="Rain?", tools=[FLAT], instructions="Be brief.")
        output = {"type": "function_call_output", "call_id": first.output[-1].call_id, "output": "Wet."}
        request = {"model": "m", "tools": [FLAT], "previous_response_id": first.id, "input": [output]}
        if not stream:
            return first, await client.responses.create(**request)
        async with client.responses.stream(**request) as events:
            async for _ in events:
                pass
            return first, await events.get_final_response()

    first, second = asyncio.run(run())

    assert (first.store, second.store, second.previous_response_id) == (True, True, first.id)
    prompt = engine.jobs[-1].turn.prompt
    parts = ("Rain?", "I'll look.", '"city": "Paris"', "Wet.")
    assert [prompt.index(part) for part in parts] == sorted(prompt.index(part) for part in parts)
    assert "Be brief." not in prompt  # instructions are of one request


def test_stored_answer_is_got_listed_and_deleted():
    """The client's own methods get a stored answer and its input, and delete it; then it is not found."""

    async def run():
        client: Any = openai_client(served(Told("Hi"), limits=ROOM))
        whole = await client.responses.create(model="m", input="Hello")
        again = await client.responses.retrieve(whole.id)
        (item,) = (await client.responses.input_items.list(whole.id)).data
        await client.responses.delete(whole.id)
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(whole.id)
        return whole, again, item

    whole, again, item = asyncio.run(run())

    assert again == whole
    assert (item.role, item.content[0].text) == ("user", "Hello")


def test_item_can_be_referred_to():
    """An item of a stored answer can be sent as a reference; one that is unknown is a mistake."""
    engine = Told("Once upon a time")

    async def run():
        client: Any = openai_client(served(engine, limits=ROOM))
        whole = await client.responses.create(model="m", input="Tell me.")
        reference = {"type": "item_reference", "id": whole.output[0].id}
        await client.responses.create(model="m", input=[reference, {"role": "user", "content": "Go on."}])
        with pytest.raises(openai.BadRequestError, match="stored item"):
            await client.responses.create(model="m", input=[{"type": "item_reference", "id": "msg_0"}])

    asyncio.run(run())

    assert "Once upon a time" in engine.jobs[1].turn.prompt


def test_nothing_is_stored_unless_it_is_asked_for():
    """Without room nothing is stored, which the answer says; with room, `store: false` is heeded."""

    async def run(limits, **request):
        async with browser(served(Told("Hi"), limits=limits)) as client:
            whole = (await client.post("/v1/responses", json={"input": "Hello"} | request)).json()
            next_one = {"input": "More", "previous_response_id": whole["id"]}
            return whole, await client.post("/v1/responses", json=next_one)

    whole, refused = asyncio.run(run(GatewayLimits(), store=True))
    assert (whole["store"], whole["warnings"]) == (False, ["store: not honoured"])
    assert "not stored" in refused.json()["error"]["message"]

    whole, refused = asyncio.run(run(ROOM, store=False))
    assert whole["store"] is False
    assert refused.json()["error"]["code"] == "previous_response_not_found"
    assert refused.status_code == 400


def test_answers_are_their_owners():
    """An answer is only found with the key that asked for it."""
    keys = Keys(models={"one": frozenset("*"), "other": frozenset("*")})

    async def run():
        async with browser(served(Told("Hi"), limits=ROOM, keys=keys)) as client:
            mine, other = ({"authorization": f"Bearer {name}"} for name in ("one", "other"))
            whole = (await client.post("/v1/responses", json={"input": "Hello"}, headers=mine)).json()
            path = f"/v1/responses/{whole['id']}"
            return [(await client.get(path, headers=headers)).status_code for headers in (mine, other, {})]

    assert asyncio.run(run()) == [200, 404, 401]


def test_memory_is_bounded():
    """The oldest answers give way to new ones; one that is too large for all the room is not stored."""
    stored = Stored(most=1000)
    for number in range(100):
        stored.keep(b"", "Hello", entry(f"r{number}", "x" * 100))
        assert sum(len(json.dumps([item.given, item.response])) for item in stored._entries.values()) <= 1000
    stored.keep(b"", "Hello", entry("large", "x" * 1000))

    assert stored.get(b"", "r99").items[-1]["content"] == "x" * 100
    assert {key for _, (key, _) in stored._items.items()} == set(stored._entries)
    for gone in ("r0", "large"):
        with pytest.raises(Failure):
            stored.get(b"", gone)


def test_input_is_listed_in_pages():
    """Input items come in pages, in both orders; a page that cannot be is a mistake."""
    stored = Stored(most=10_000)
    stored.keep(b"", [{"role": "user", "content": str(number)} for number in range(5)], entry("r", ""))

    page = stored.input_items(b"", "r", {"order": "asc", "limit": "2"})
    rest = stored.input_items(b"", "r", {"order": "asc", "after": page["last_id"]})

    assert [item["content"][0]["text"] for item in (*page["data"], *rest["data"])] == list("01234")
    assert (page["has_more"], rest["has_more"]) == (True, False)
    assert stored.input_items(b"", "r", {})["first_id"] == rest["last_id"]
    for query in ({"limit": "0"}, {"limit": "x"}, {"after": "none"}):
        with pytest.raises(Failure):
            stored.input_items(b"", "r", query)
