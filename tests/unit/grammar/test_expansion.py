"""Calls are expanded for each tool, in every codec. `tests/corpus/calls.jsonl` has the rules."""

from __future__ import annotations

import json

import pytest
from properties.families import FAMILIES, Family

from unrender import Turn
from unrender.types import Request, Tool

SAMPLE = {"city": "Rome", "days": 3, "exact": True, "tags": ["a", "b c"]}
PARAMETERS = {
    "type": "object",
    "properties": {key: {"const": value} for key, value in SAMPLE.items()},
    "required": list(SAMPLE),
}


@pytest.mark.few(6)
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_a_constant_is_written_as_the_codec_writes_it(family: Family) -> None:
    """If every argument is constant, each generated text is parsed to exactly these values."""
    tools = (Tool(name="now", parameters=PARAMETERS),)
    request = Request(tools=tools, tool_choice="required", parallel_tool_calls=False)
    turn = Turn(prompt="", format=family.format, request=request, prefill="")

    for seed in range(20):
        [call] = turn.parse(turn.sample(seed)).tool_calls
        assert (call.name, json.loads(call.arguments_json)) == ("now", SAMPLE)
