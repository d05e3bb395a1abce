"""Where engines were compared, ours gives the message that the best of them give, at every chunking.

Rules: engines do not repeat the text of a call that dies, so calls are read as they are written, and dead ones are left out. `disagreements.toml` lists under `[parity]` the cases that are argued; a case listed there must differ. Recovery cases
keep a floor whatever is argued: no text raises, every call presented as complete is a known tool with valid JSON, and
what is before the break is not lost.
"""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from splitting import fed_only, splits
from vendor import vendor_cases, vendor_templates

from unrender import ChatTemplate
from unrender.machine.ids import numbered_id
from unrender.machine.policy import CallRelease, Policy
from unrender.messages.wire import CallStatus, Message

ARGUED: dict[str, str] = tomllib.loads(
    (Path(__file__).parent / "disagreements.toml").read_text(encoding="utf-8"),
).get("parity", {})
TEMPLATES = vendor_templates()
CASES = [case for case in vendor_cases("parity") if case["template"] in TEMPLATES]
BARS = {"wellformed": 15, "recovery": 47}
"""How many cases may be argued at most: wellformed by the issue, recovery as counted (see docs/reference/leniency.md)."""


@cache
def template(name: str) -> ChatTemplate:
    return ChatTemplate.from_file(TEMPLATES[name], bos_token="<s>", eos_token="</s>")


def prompt_of(case: dict[str, Any]) -> str:
    """Return a prompt's tail that opens what the case says the prompt has opened."""
    format = template(case["template"]).format
    header = format.turn.headers[0] if format.turn.headers else ""
    return header + (format.reasoning.start if case["start"] == "reasoning" else "")


def read(case: dict[str, Any], chunks: list[str]) -> Message:
    parser = template(case["template"]).parser(
        tools=case["tools"] or [], prompt=prompt_of(case), policy=Policy(calls=CallRelease.WRITTEN), ids=numbered_id
    )
    fed_only(parser, chunks)
    parser.finish(case["finish_reason"])
    return parser.message


def called(calls: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [(call["name"], json.loads(call["arguments"])) for call in calls]


def as_expected(case: dict[str, Any], message: Message) -> bool:
    expected, wire = case["expect"], message.to_openai()
    calls = [call["function"] for call in wire.get("tool_calls", []) if "status" not in call]
    same = {
        "content": message.content.strip() == (expected.get("content") or "").strip(),
        "reasoning_content": message.reasoning.strip() == (expected.get("reasoning_content") or "").strip(),
        "tool_calls": called(calls) == called(expected.get("tool_calls") or []),
    }
    return all(same[field] for field in case["asserts"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_parity(case: dict[str, Any]) -> None:
    """The case's message is ours at every chunking, unless the case is argued."""
    messages = [read(case, chunks) for chunks in splits(case["output"])]

    assert all(message == messages[0] for message in messages)
    assert as_expected(case, messages[0]) is (case["id"] not in ARGUED)


@pytest.mark.parametrize("case", [c for c in CASES if c["class"] == "recovery"], ids=lambda case: str(case["id"]))
def test_recovery_keeps_the_floor(case: dict[str, Any]) -> None:
    """Broken output gives no half call as a whole one, and loses nothing that is before the break."""
    message = read(case, [case["output"]])
    names = {tool["function"]["name"] for tool in case["tools"] or []}
    complete = [call for call in message.tool_calls if call.status is CallStatus.COMPLETE]

    assert all(call.name in names and isinstance(json.loads(call.arguments), dict) for call in complete)
    before = case["output"].split("<")[0].split("[")[0].strip()
    assert before in message.content + message.reasoning or any(name in before for name in names)


def test_arguments_stay_few() -> None:
    """No wellformed case on which engines agree is argued, and of the others no more than counted."""
    argued = [case for case in CASES if case["id"] in ARGUED]

    assert not [case["id"] for case in argued if case["class"] == "wellformed" and case["agreed"]]
    for kind, bar in BARS.items():
        assert sum(case["class"] == kind for case in argued) <= bar
