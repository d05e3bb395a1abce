"""The named legacy formats read every recorded output as the cases say, at every chunking.

Rules: `disagreements.toml` lists under `[legacy]` the cases that are argued; a case listed there must differ, so that an
entry which is no longer needed is found. Contents are compared stripped, arguments as JSON, and ids of the reference's
counter not at all. A partial case that expects nothing means that the reference withheld everything: releasing a
beginning of the text, or a call that is whole, counts as right.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from splitting import fed_only, splits
from vendor import vendor_cases

from unrender.formats import declared_format
from unrender.machine.ids import numbered_id
from unrender.messages.wire import Message, Request
from unrender.parser.streaming import Parser

COUNTED_IDS = ("qwen3_call", "call_xml")
ARGUED: dict[str, str] = tomllib.loads(
    (Path(__file__).parent / "disagreements.toml").read_text(encoding="utf-8"),
).get("legacy", {})
CASES = vendor_cases("legacy-formats")


def read(case: dict[str, Any], chunks: list[str]) -> Message:
    parser = Parser(declared_format(case["format"]), Request(tools=None), ids=numbered_id)
    fed_only(parser, chunks)
    if not case["partial"]:
        parser.finish()
    return parser.message


def as_expected(case: dict[str, Any], message: Message) -> bool:
    expected = case["expect"]
    content = case["output"] if expected["content"] is None else expected["content"]
    found = called(message)
    wanted = [(call["name"], value(call["arguments"])) for call in expected["tool_calls"]]
    if case["partial"] and not wanted and not content:
        return bool(found) or case["output"].startswith(message.content)
    same_text = message.content.strip() == content.strip()
    same_text &= message.reasoning.strip() == expected["reasoning_content"].strip()
    return same_text and found == wanted and same_ids(message, expected["tool_calls"])


def called(message: Message) -> list[tuple[str, Any]]:
    calls = message.to_openai().get("tool_calls", [])
    return [(call["function"]["name"], value(call["function"]["arguments"])) for call in calls]


def same_ids(message: Message, wanted: list[dict[str, Any]]) -> bool:
    ids = [(call.id, want.get("id", "")) for call, want in zip(message.tool_calls, wanted, strict=False)]
    return all(not want or want.startswith(COUNTED_IDS) or want.strip() == found for found, want in ids)


def value(text: str) -> Any:
    """Return what the JSON text says; text that is not JSON stands for itself."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_a_recorded_output_is_read_as_expected(case: dict[str, Any]) -> None:
    """Each output gives the expected message, or is argued; in both cases the same one at every chunking."""
    message, *others = [read(case, chunks) for chunks in splits(case["output"])]

    assert [other for other in others if other != message] == []
    assert as_expected(case, message) is (case["id"] not in ARGUED), message


def test_every_argued_case_exists() -> None:
    """Nothing is argued that is not in the data."""
    if not CASES:
        pytest.skip("no recorded cases at hand")

    assert set(ARGUED) - {case["id"] for case in CASES} == set()
