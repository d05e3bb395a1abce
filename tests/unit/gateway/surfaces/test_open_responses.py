"""Responses, judged by Open Responses' published document: `openresponses-types` is generated from it."""

from __future__ import annotations

import asyncio
import json
from functools import cache
from typing import Any, get_args

import openresponses_types.types as published
import pytest
from pydantic import BaseModel
from serving import CALL, TOOL, WEATHER, Told, browser, chunked, served, template

from unrender.gateway import EngineError, GatewayLimits, Piece

FLAT: Any = {"type": "function", "strict": False, **WEATHER}
ANSWER = f"<think>\nRain?\n</think>\nI'll look.\n{CALL}<|end|>"
RENAMED = {
    "response.reasoning_text.delta": "response.reasoning.delta",
    "response.reasoning_text.done": "response.reasoning.done",
}
"""Where OpenAI's own name, which its clients read, is not the published one."""
FORMATS = ("json-tags", "tagged-key", "python-calls", "channels", "forced-open", "bracket-id", "")


@cache
def events() -> dict[str, type[BaseModel]]:
    """Return the model of each type of event."""
    found: dict[str, type[BaseModel]] = {}
    for name in dir(published):
        if name.endswith("StreamingEvent"):
            model = getattr(published, name)
            kind = model.model_fields["type"].annotation
            found[next(iter(kind)) if not get_args(kind) else get_args(kind)[0]] = model
    return found


def check_event(event: dict[str, Any]) -> None:
    kind = RENAMED.get(event["type"], event["type"])
    events()[kind].model_validate(event | {"type": kind})
    if "response" in event:
        published.ResponseResource.model_validate(event["response"])


async def asked(application, **request):
    async with browser(application) as client:
        return await client.post("/v1/responses", json={"input": "Hello", "model": "m"} | request)


def answers(application, **request):
    """Check and return the events of a request, and the whole answer to it."""
    lines = asyncio.run(asked(application, stream=True, **request)).text.split("\n")
    found = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert found, "no event was streamed"
    for event in found:
        check_event(event)
    whole = asyncio.run(asked(application, **request)).json()
    return found, whole


@pytest.mark.parametrize("name", FORMATS)
def test_bodies_and_events_are_the_published_ones(name):
    """In every format every event and every body is valid by the published document, whatever the request says."""
    turn = template(name).prepare([{"role": "user", "content": "Hello"}], tools=[TOOL])
    requests: list[dict[str, Any]] = [
        {"tools": [FLAT], "instructions": "Be brief.", "tool_choice": "auto", "max_output_tokens": 500},
        {"tools": [FLAT], "temperature": 0.5, "top_p": 0.5, "metadata": {"a": "b"}, "safety_identifier": "me"},
    ]
    for seed, request in enumerate(requests):
        _, whole = answers(served(Told(chunked(turn.sample(seed), 7)), name), **request)
        published.ResponseResource.model_validate(whole)


def test_every_ending_is_published():
    """Answers that are cut off, broken off, or stored end in a published event as well."""
    endings = {
        "response.incomplete": Told(["Wait.", Piece("", 0, "length")]),
        "response.failed": Told(["Wait.", EngineError("cut off")]),
        "response.completed": Told(ANSWER),
    }
    for kind, engine in endings.items():
        found, _ = answers(served(engine, limits=GatewayLimits(stored=10_000)), tools=[FLAT])
        assert found[-1]["type"] == kind


def test_judge_refuses_what_is_wrong():
    """The judge is one: events without a field that is required are refused."""
    with pytest.raises(ValueError, match="sequence_number"):
        check_event({"type": "response.output_text.delta", "delta": "x"})
