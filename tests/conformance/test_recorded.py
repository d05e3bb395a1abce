"""Recorded outputs give the recorded messages for every chunking: of real models, legacy formats, and compared engines.

Rules: content and reasoning are compared without surrounding whitespace, arguments as JSON values, and ids if the
format has them, except those from the reference's counter. Arguments of an unfinished call are compared as text,
without trailing whitespace. `disagreements.toml` lists the exceptions with reasons; a case listed there must differ, so
no entry outlives its reason. If a partial legacy case expects nothing, the reference held everything back: a prefix of
the text or a whole call is also right. The compared engines don't repeat the text of a failed call, so calls are
streamed there and failed ones are left out. Recovery cases, listed or not, must meet a minimum: every complete call is
of a known tool with valid JSON, and no text before the break is lost.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from answers import template_named
from properties.invariants import accumulated
from splitting import fed_only, splits
from vendor import all_vendor_templates, vendor_cases, vendor_templates

from unrender import Format, Message, Parser, Policy, Turn
from unrender.openai import deltas
from unrender.testing import numbered_id
from unrender.types import Request

ARGUED: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("disagreements.toml").read_text("utf-8"))
"""The listed exceptions: ids and reasons by kind of case."""
MOST_ARGUED = 8
BARS = {"wellformed": 22, "recovery": 61}
"""Maximum number of exceptions among the compared cases, as counted (see docs/reference/leniency.md).

32 of them have a reasoning marker in a line of content, which is text. In 2, the model stopped after complete arguments, so the call counts.
"""
COUNTED_IDS = ("qwen3_call", "call_xml")
RECORDED = [*vendor_cases("outputs"), *vendor_cases("more-outputs")]
OUTPUTS = [case for case in RECORDED if case["template"] in all_vendor_templates()]
LEGACY = vendor_cases("legacy-formats")
COMPARED = [case for case in vendor_cases("parity") if case["template"] in vendor_templates()]


AS_WRITTEN = Policy(tool_calls="streamed")


def read(parser: Parser, chunks: list[str], *, finish: bool = True, reason: str | None = None) -> Message:
    fed_only(parser, chunks)
    if finish:
        parser.finish(reason)
    return parser.message


def said(message: Message) -> dict[str, Any]:
    """Return a message in the form used for comparison."""
    calls = [(call.name, value(call.arguments_json.rstrip())) for call in message.tool_calls]
    return {"content": message.content.strip(), "reasoning": message.reasoning.strip(), "calls": calls}


def expected(case: dict[str, Any]) -> dict[str, Any]:
    expect = case["expect"]
    calls = [(call["name"], value(call["arguments"].rstrip())) for call in expect["tool_calls"]]
    reasoning = (expect["reasoning_content"] or "").strip()
    return {"content": (expect["content"] or "").strip(), "reasoning": reasoning, "calls": calls}


def value(arguments: str) -> Any:
    """Return the JSON value, or the text itself if the JSON is incomplete."""
    try:
        return json.loads(arguments)
    except json.JSONDecodeError:
        return arguments


def same_ids(message: Message, wanted: list[dict[str, Any]]) -> bool:
    ids = [(call.id, want.get("id") or "") for call, want in zip(message.tool_calls, wanted, strict=False)]
    return all(not want or want.startswith(COUNTED_IDS) or want.strip() == found for found, want in ids)


def read_recorded(case: dict[str, Any], turn: Turn, chunks: list[str]) -> Message:
    """Return the message of an output, which equals the deltas that a client adds up.

    A recording that stops inside a call contains the call so far.
    """
    parser = turn.parser(ids=numbered_id, policy=AS_WRITTEN if case["partial"] else None)
    events = fed_only(parser, chunks) + ([] if case["partial"] else parser.finish())
    message, total = parser.message, accumulated(deltas(events))
    calls = [(call["id"], *call["function"].values()) for call in total.get("tool_calls", ())]
    assert calls == [(call.id, call.name, call.arguments_json) for call in message.tool_calls]
    assert (total["content"], total.get("reasoning_content", "")) == (message.content, message.reasoning)
    return message


@pytest.mark.few(90)
@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case['id']}-{case['template']}") for case in OUTPUTS])
def test_a_recorded_output_gives_the_recorded_message(case):
    """Each output gives its message, or is a listed exception. Added-up deltas equal the message for every chunking."""
    turn = template_named(case["template"]).prepare(case["messages"], **case["prepare"])
    message, *others = [read_recorded(case, turn, chunks) for chunks in splits(case["output"])]

    assert [other for other in others if other != message] == []
    if case["id"] in ARGUED["outputs"]:
        assert said(message) != expected(case)
    else:
        assert said(message) == expected(case)
        assert same_ids(message, case["expect"]["tool_calls"])


def read_legacy(case: dict[str, Any], chunks: list[str]) -> Message:
    parser = Parser(Format.named(case["format"]), Request(tools=None), ids=numbered_id)
    return read(parser, chunks, finish=not case["partial"])


def called(calls: Iterable[Mapping[str, Any]]) -> list[tuple[str, Any]]:
    return [(call["name"], value(call["arguments"])) for call in calls]


def as_legacy(case: dict[str, Any], message: Message) -> bool:
    expected = case["expect"]
    content = case["output"] if expected["content"] is None else expected["content"]
    found = called([call["function"] for call in message.to_openai().get("tool_calls", [])])
    wanted = called(expected["tool_calls"])
    if case["partial"] and not wanted and not content:
        return bool(found) or case["output"].startswith(message.content)
    same_text = message.content.strip() == content.strip()
    same_text &= message.reasoning.strip() == expected["reasoning_content"].strip()
    return same_text and found == wanted and same_ids(message, expected["tool_calls"])


@pytest.mark.few(160)
@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in LEGACY])
def test_a_recorded_output_is_read_as_expected(case: dict[str, Any]) -> None:
    """Each output gives the expected message or is listed as an exception. The result is the same for every chunking."""
    message, *others = [read_legacy(case, chunks) for chunks in splits(case["output"])]

    assert [other for other in others if other != message] == []
    assert as_legacy(case, message) is (case["id"] not in ARGUED["legacy"]), message


def prompt_of(case: dict[str, Any]) -> str:
    """Return the end of a prompt that opens the parts that the case expects to be open."""
    format = template_named(case["template"]).format
    header = format.turn.headers[0] if format.turn.headers else ""
    return header + (format.reasoning.start if case["start"] == "reasoning" else "")


def read_compared(case: dict[str, Any], chunks: list[str]) -> Message:
    turn = template_named(case["template"]).prepare_rendered(prompt_of(case), tools=case["tools"] or [])
    return read(turn.parser(policy=AS_WRITTEN, ids=numbered_id), chunks, reason=case["finish_reason"])


def as_compared(case: dict[str, Any], message: Message) -> bool:
    expected, wire = case["expect"], message.to_openai()
    calls = [call["function"] for call in wire.get("tool_calls", []) if "status" not in call]
    same = {
        "content": message.content.strip() == (expected.get("content") or "").strip(),
        "reasoning_content": message.reasoning.strip() == (expected.get("reasoning_content") or "").strip(),
        "tool_calls": called(calls) == called(expected.get("tool_calls") or []),
    }
    return all(same[field] for field in case["asserts"])


@pytest.mark.few(140)
@pytest.mark.parametrize("case", COMPARED, ids=lambda case: str(case["id"]))
def test_parity(case: dict[str, Any]) -> None:
    """Our message equals the case's message for every chunking, unless the case is listed as an exception."""
    messages = [read_compared(case, chunks) for chunks in splits(case["output"])]

    assert all(message == messages[0] for message in messages)
    assert as_compared(case, messages[0]) is (case["id"] not in ARGUED["parity"])


@pytest.mark.parametrize("case", [c for c in COMPARED if c["class"] == "recovery"], ids=lambda case: str(case["id"]))
def test_recovery_keeps_the_floor(case: dict[str, Any]) -> None:
    """In broken output, no partial call is reported as complete, and no text before the break is lost."""
    message = read_compared(case, [case["output"]])
    names = {tool["function"]["name"] for tool in case["tools"] or []}
    complete = [call for call in message.tool_calls if call.status == "complete"]

    assert all(call.name in names and isinstance(json.loads(call.arguments_json), dict) for call in complete)
    before = case["output"].split("<")[0].split("[")[0].strip()
    assert before in message.content + message.reasoning or any(name in before for name in names)


def test_arguments_stay_few() -> None:
    """No wellformed case on which engines agree is an exception, and the number of other exceptions doesn't grow."""
    assert len(ARGUED["outputs"]) <= MOST_ARGUED
    argued = [case for case in COMPARED if case["id"] in ARGUED["parity"]]

    assert not [case["id"] for case in argued if case["class"] == "wellformed" and case["agreed"]]
    for kind, bar in BARS.items():
        assert sum(case["class"] == kind for case in argued) <= bar


@pytest.mark.parametrize(("kind", "cases"), [("outputs", OUTPUTS), ("legacy", LEGACY)], ids=["outputs", "legacy"])
def test_every_argued_case_exists(kind, cases):
    """Every exception is a case in the data."""
    if not cases:
        pytest.skip("no recorded cases or no vendors' templates at hand")
    assert set(ARGUED.get(kind, {})) - {case["id"] for case in cases} == set()
