"""Responses, judged by OpenAI's own client with strict validation."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

import pytest
from openai.types.responses import Response
from serving import CALL, WEATHER, Told, browser, chunked, openai_client, posted, served

from unrender import Usage
from unrender.gateway import Calls, EngineCapabilities, EngineError, Piece, Sampler
from unrender.gateway.surfaces.items import sealed
from unrender.gateway.surfaces.responses import read

FLAT: Any = {"type": "function", "strict": False, **WEATHER}
ANSWER = f"<think>\nRain?\n</think>\nI'll look.\n{CALL}<|end|>"


def said(response):
    """Return the items without their ids, which are random."""
    return [
        (item.type, (item.name, item.arguments) if item.type == "function_call" else item.content[0].text)
        for item in response.output
    ]


async def both(client, **request):
    """Return the whole response, and the one that ends the stream, as the client has validated them."""
    request = {"model": "m", "input": "Hello"} | request
    whole = await client.responses.create(**request)
    async with client.responses.stream(**request) as stream:
        async for _ in stream:
            pass
        return whole, await stream.get_final_response()


async def events(application, **request):
    """Return the events as they are on the wire."""
    async with browser(application) as client:
        answer = await client.post("/v1/responses", json={"input": "Hello", "stream": True} | request)
    frames = [frame.split("\n") for frame in answer.text.strip().split("\n\n")]
    found = [json.loads(data.removeprefix("data: ")) for _, data in frames]
    assert [name.removeprefix("event: ") for name, _ in frames] == [event["type"] for event in found]
    return found


def test_events_come_in_order():
    """The events of reasoning, text and a call come in OpenAI's order, and are numbered without a gap."""
    found = asyncio.run(events(served(Told(ANSWER)), tools=[FLAT]))

    kinds = [kind.removeprefix("response.") for kind, _ in itertools.groupby(event["type"] for event in found)]
    text = ["output_item.added", "content_part.added", "{}.delta", "{}.done", "content_part.done", "output_item.done"]
    assert kinds == [
        *("created", "in_progress"),
        *(kind.format("reasoning_text") for kind in text),
        *(kind.format("output_text") for kind in text),
        *("output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"),
        "completed",
    ]
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    assert [item["type"] for item in found[-1]["response"]["output"]] == ["reasoning", "message", "function_call"]


def test_custom_tool_streams_its_text():
    """A custom tool's input streams as text, and the item holds all of it."""
    tool: Any = {"type": "custom", "name": "run", "description": "Run code."}
    text = '<tool_call>\n{"name": "run", "arguments": {"input": "a\\nb \\"c\\""}}\n</tool_call>'

    found = asyncio.run(events(served(Told(chunked(text, 3)), calls=Calls.WRITTEN), tools=[tool]))
    whole = asyncio.run(openai_client(served(Told(text))).responses.create(model="m", input="Hello", tools=[tool]))

    deltas = [event["delta"] for event in found if event["type"] == "response.custom_tool_call_input.delta"]
    assert "".join(deltas) == whole.output[0].input == 'a\nb "c"'
    assert len(deltas) > 1


def test_cut_off_answer_is_incomplete():
    """At the limit the response is incomplete, and a call that was cut off is not a part of the output."""
    usage = Usage(prompt_tokens=9, completion_tokens=4, cached_tokens=5)
    engine = Told(["Wait.\n" + CALL[:40], Piece("", 0, "length", usage)])

    whole = asyncio.run(openai_client(served(engine)).responses.create(model="m", input="Hello", tools=[FLAT]))
    last = asyncio.run(events(served(engine), tools=[FLAT]))[-1]

    assert last["type"] == "response.incomplete"
    for response in (whole, Response.model_validate(last["response"])):
        assert response.status == "incomplete"
        assert response.incomplete_details.reason == "max_output_tokens"
        assert {item.type for item in response.output} == {"message"}
        assert response.usage.input_tokens_details.cached_tokens == 5


def test_broken_engine_fails_the_response():
    """An engine that breaks off in the middle ends the stream with `response.failed`."""
    found = asyncio.run(events(served(Told(["Hi", EngineError("cut off")]))))

    assert found[-1]["type"] == "response.failed"
    assert found[-1]["response"]["error"]["message"] == "the engine failed: cut off"


def test_items_become_messages():
    """Items become messages; reasoning, text and calls that follow each other are one message."""
    ask = read(
        {
            "instructions": "Be brief.",
            "input": [
                {"role": "developer", "content": "Now."},
                {"role": "user", "content": [{"type": "input_text", "text": "Rain?"}]},
                {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": sealed("Look.")},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Wait."}]},
                {"type": "function_call", "call_id": "a", "name": "get_weather", "arguments": "{}"},
                {"type": "custom_tool_call", "call_id": "b", "name": "run", "input": "x"},
                {"type": "function_call_output", "call_id": "a", "output": "Wet."},
                {"type": "custom_tool_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "ok"}]},
                {"type": "web_search_call", "id": "ws"},
            ],
        }
    )

    calls = [
        {"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}},
        {"id": "b", "type": "function", "function": {"name": "run", "arguments": '{"input": "x"}'}},
    ]
    assert list(ask.messages) == [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "Now."},
        {"role": "user", "content": "Rain?"},
        {"role": "assistant", "content": "Wait.", "reasoning_content": "Look.", "tool_calls": calls},
        {"role": "tool", "content": "Wet.", "tool_call_id": "a", "name": "get_weather"},
        {"role": "tool", "content": "ok", "tool_call_id": "b", "name": "run"},
    ]
    assert ask.unheeded == ("input[8] (web_search_call)",)


def test_output_can_be_sent_back():
    """What was answered goes into the next request as it is, reasoning included, and comes to the same message."""

    async def run():
        client = openai_client(served(Told(ANSWER)))
        whole = await client.responses.create(
            model="m",
            input="Hello",
            tools=[FLAT],
            include=["reasoning.encrypted_content"],
        )
        return [item.model_dump(exclude_none=True) for item in whole.output]

    output = asyncio.run(run())
    (message,) = read({"input": output}).messages

    assert output[0]["encrypted_content"].startswith("unrender:")
    assert (message["reasoning_content"], message["content"]) == ("Rain?", "I'll look.")
    assert message["tool_calls"][0]["function"]["arguments"] == '{"city": "Paris"}'


def test_schema_is_kept():
    """`text.format` constrains the content."""
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    form = {"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}}

    whole, _ = asyncio.run(both(openai_client(served(Sampler())), text=form))

    assert isinstance(json.loads(whole.output_text)["n"], int)


@pytest.mark.parametrize(
    "change",
    [
        {"previous_response_id": "resp_1"},
        {"conversation": "c"},
        {"input": None},
        {"input": [{"type": "item_reference", "id": "x"}]},
        {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
        {"input": [{"type": "function_call", "call_id": "a"}]},
        {"reasoning": {"effort": "huge"}},
        {"tool_choice": "required"},
    ],
)
def test_mistake_is_named(change):
    """What is wrong, or wants an answer that was stored, is a 400 that names the field."""
    answer = posted(served(Told("Hi")), "/v1/responses", json={"input": "Hello"} | change)

    assert answer.status_code == 400
    assert answer.json()["error"]["param"].startswith(next(iter(change)))


def test_what_has_no_effect_is_named():
    """Parameters without effect, tools of other kinds and a wish to store are named."""
    request = {"store": True, "text": {"verbosity": "low"}, "tools": [{"type": "web_search"}]}

    found = asyncio.run(events(served(Told("Hi")), **request))

    named = ["tools[0] (web_search)", "text.verbosity", "store"]
    assert found[0]["response"]["warnings"] == [f"{name}: not honoured" for name in named]


def test_deltas_carry_their_log_probabilities():
    """Log probabilities come with the text that they belong to, and all of them at its end."""
    tokens = ["It ", "rains", "."]
    pieces = [Piece(t, logprobs=({"token": t, "logprob": -1.0, "bytes": None, "top_logprobs": []},)) for t in tokens]
    include = ["message.output_text.logprobs"]

    found = asyncio.run(events(served(Told(pieces, capabilities=EngineCapabilities(logprobs=True))), include=include))

    deltas = [event["logprobs"] for event in found if event["type"] == "response.output_text.delta"]
    (done,) = [event for event in found if event["type"] == "response.output_text.done"]
    assert [token["token"] for carried in deltas for token in carried] == tokens
    assert [token["token"] for token in done["logprobs"]] == tokens
