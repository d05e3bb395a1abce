"""The recorded outputs of real models give the recorded messages, from the vendors' templates, at every chunking.

Rules: as cases/README.md says, content and reasoning are compared stripped, arguments as JSON values (those of a call
that is not finished as text, without trailing white space), ids where the format carries one. `disagreements.toml` lists
under `[outputs]` the cases that are argued; a case listed there must differ, so that no entry outlives its reason.
"""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from splitting import fed_only, splits
from vendor import all_vendor_templates, vendor_cases

from unrender import ChatTemplate, Event, Message, Turn
from unrender.machine.ids import numbered_id
from unrender.machine.policy import CallRelease, Policy
from unrender.parser.completions import deltas

DISAGREEMENTS = Path(__file__).parent / "disagreements.toml"
ARGUED: dict[str, str] = tomllib.loads(DISAGREEMENTS.read_text(encoding="utf-8")).get("outputs", {})
MOST_ARGUED = 8
RECORDED = [*vendor_cases("outputs"), *vendor_cases("more-outputs")]
CASES = [case for case in RECORDED if case["template"] in all_vendor_templates()]


@cache
def template(name: str) -> ChatTemplate:
    return ChatTemplate.from_file(all_vendor_templates()[name], bos_token="<s>", eos_token="</s>")


AS_WRITTEN = Policy(calls=CallRelease.WRITTEN)


def read(case: dict[str, Any], turn: Turn, chunks: list[str]) -> tuple[Message, list[Event]]:
    # What is recorded in the middle of a call has the call as far as it was written.
    parser = turn.parser(ids=numbered_id, policy=AS_WRITTEN if case["partial"] else None)
    events = fed_only(parser, chunks)
    if not case["partial"]:
        events += parser.finish()
    return parser.message, events


def said(message: Message) -> dict[str, Any]:
    """Bring a message into the form in which it is compared."""
    calls = [(call.name, value(call.arguments)) for call in message.tool_calls]
    return {"content": message.content.strip(), "reasoning": message.reasoning.strip(), "calls": calls}


def expected(case: dict[str, Any]) -> dict[str, Any]:
    expect = case["expect"]
    calls = [(call["name"], value(call["arguments"])) for call in expect["tool_calls"]]
    reasoning = (expect["reasoning_content"] or "").strip()
    return {"content": (expect["content"] or "").strip(), "reasoning": reasoning, "calls": calls}


def value(arguments: str) -> Any:
    """Return what the JSON says; half-written JSON stands for itself."""
    try:
        return json.loads(arguments)
    except json.JSONDecodeError:
        return arguments.rstrip()


def ids_agree(case: dict[str, Any], message: Message) -> bool:
    wanted = [call.get("id") for call in case["expect"]["tool_calls"]]
    return all(not want or want == call.id for want, call in zip(wanted, message.tool_calls, strict=False))


def added_up(events: list[Event]) -> dict[str, Any]:
    """Add OpenAI deltas up as a client does."""
    total: dict[str, Any] = {"content": "", "reasoning": "", "calls": []}
    for delta in deltas(events):
        total["content"] += delta.get("content", "")
        total["reasoning"] += delta.get("reasoning_content", "")
        for part in delta.get("tool_calls", ()):
            if "id" in part:
                total["calls"].append({"id": part["id"], "name": part["function"]["name"], "arguments": ""})
            total["calls"][part["index"]]["arguments"] += part["function"]["arguments"]
    return total


def whole(message: Message) -> dict[str, Any]:
    calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    return {"content": message.content, "reasoning": message.reasoning, "calls": calls}


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case['id']}-{case['template']}") for case in CASES])
def test_a_recorded_output_gives_the_recorded_message(case):
    """Each output gives its message, or is argued; however it is cut, message and added-up deltas are the same."""
    turn = template(case["template"]).prepare(case["messages"], **case["prepare"])
    message, events = read(case, turn, [case["output"]])

    for chunks in splits(case["output"]):
        again, cut_events = read(case, turn, chunks)
        assert again == message
        assert added_up(cut_events) == whole(message)
    assert added_up(events) == whole(message)
    if case["id"] in ARGUED:
        assert said(message) != expected(case)
    else:
        assert said(message) == expected(case)
        assert ids_agree(case, message)


def test_argued_cases_are_few_and_exist():
    """Nothing is argued that is not in the data, nor more than was agreed on."""
    assert len(ARGUED) <= MOST_ARGUED
    if not CASES:
        pytest.skip("no recorded cases or no vendors' templates at hand")
    assert set(ARGUED) - {case["id"] for case in CASES} == set()
