"""Tests of Responses with OpenAI's own client, strict validation, and the published schema of Open Responses."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, get_args

import openresponses_types.types as published
import pytest
from pydantic import BaseModel
from serving import CALL, TOOL, WEATHER, Told, chunked, openai_of, posted, served, template

from unrender.gateway.backends import EngineError, OutputPiece
from unrender.gateway.gateway import GatewayLimits

FLAT: Any = {"type": "function", "strict": False, **WEATHER}
ANSWER = f"<think>\nRain?\n</think>\nI'll look.\n{CALL}<|end|>"


def events(application, **request):
    """Return the events of a stream."""
    answer = posted(application, "/v1/responses", json={"input": "Hello", "stream": True} | request)
    frames = [frame.split("\n") for frame in answer.text.strip().split("\n\n")]
    found = [json.loads(data.removeprefix("data: ")) for _, data in frames]
    assert [name.removeprefix("event: ") for name, _ in frames] == [event["type"] for event in found]
    return found


def test_custom_tool_streams_its_text():
    """A custom tool's input streams as text, and the item contains all of it."""
    tool: Any = {"type": "custom", "name": "run", "description": "Run code."}
    text = '<tool_call>\n{"name": "run", "arguments": {"input": "a\\nb \\"c\\""}}\n</tool_call>'

    found = events(served(Told(chunked(text, 3)), tool_calls="streamed"), tools=[tool])
    whole = openai_of(served(Told(text))).responses.create(model="m", input="Hello", tools=[tool])

    deltas = [event["delta"] for event in found if event["type"] == "response.custom_tool_call_input.delta"]
    assert "".join(deltas) == whole.output[0].input == 'a\nb "c"'
    assert len(deltas) > 1


@pytest.mark.parametrize("text", ["Hi", "<think>\nRain?", "I'll look.\n" + CALL[:-20]])
@pytest.mark.parametrize("summary", [None, "auto"])
@pytest.mark.parametrize("last", [EngineError("cut off"), OutputPiece("", 0, "length")])
def test_items_that_were_begun_are_in_the_response(text, summary, last):
    """A response contains every item that its stream began, in its last state, however the answer ends."""
    application = served(Told([*chunked(text, 4), last]), tool_calls="streamed")

    found = checked(application, tools=[FLAT], reasoning={"summary": summary})

    added = [event["item"]["id"] for event in found if event["type"] == "response.output_item.added"]
    done = [event["item"] for event in found if event["type"] == "response.output_item.done"]
    assert added
    assert added == [item["id"] for item in done]
    assert found[-1]["response"]["output"] == done
    assert done[-1]["status"] == "incomplete"


RENAMED = {
    "response.reasoning_text.delta": "response.reasoning.delta",
    "response.reasoning_text.done": "response.reasoning.done",
}
"""Events whose names in OpenAI's clients differ from the published ones."""
FORMATS = ("json-tags", "tagged-key", "python-calls", "channels", "forced-open", "bracket-id", "")


@cache
def models() -> dict[str, type[BaseModel]]:
    """Return the pydantic model of each event type."""
    found: dict[str, type[BaseModel]] = {}
    for name in dir(published):
        if name.endswith("StreamingEvent"):
            model = getattr(published, name)
            kind = model.model_fields["type"].annotation
            found[next(iter(kind)) if not get_args(kind) else get_args(kind)[0]] = model
    return found


def check_event(event: dict[str, Any]) -> None:
    kind = RENAMED.get(event["type"], event["type"])
    models()[kind].model_validate(event | {"type": kind})
    if "response" in event:
        published.ResponseResource.model_validate(event["response"])


def checked(application, **request):
    """Check the events and the whole answer of a request. Returns the events."""
    found = events(application, **request)
    assert found, "no event was streamed"
    for event in found:
        check_event(event)
    whole = posted(application, "/v1/responses", json={"input": "Hello", "model": "m"} | request)
    if whole.status_code == 200:
        published.ResponseResource.model_validate(whole.json())
    return found


@pytest.mark.parametrize("name", FORMATS)
def test_bodies_and_events_are_the_published_ones(name):
    """In every format, events and bodies are valid under the published schema."""
    turn = template(name).prepare([{"role": "user", "content": "Hello"}], tools=[TOOL])
    requests: list[dict[str, Any]] = [
        {"tools": [FLAT], "instructions": "Be brief.", "tool_choice": "auto", "max_output_tokens": 500},
        {"tools": [FLAT], "temperature": 0.5, "top_p": 0.5, "metadata": {"a": "b"}, "safety_identifier": "me"},
    ]
    for seed, request in enumerate(requests):
        checked(served(Told(chunked(turn.sample(seed), 7)), name), **request)


def test_every_ending_is_published():
    """Answers that are truncated, fail or are stored also end in a published event."""
    endings = {
        "response.incomplete": Told(["Wait.", OutputPiece("", 0, "length")]),
        "response.failed": Told(["Wait.", EngineError("cut off")]),
        "response.completed": Told(ANSWER),
    }
    for kind, engine in endings.items():
        assert checked(served(engine, limits=GatewayLimits(store_bytes=10_000)), tools=[FLAT])[-1]["type"] == kind


def test_judge_refuses_what_is_wrong():
    """The check itself refuses an event without a required field."""
    with pytest.raises(ValueError, match="sequence_number"):
        check_event({"type": "response.output_text.delta", "delta": "x"})
