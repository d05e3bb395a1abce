"""Ways to show a call in text without making it, in formats that have a marker for calls.

In a row of `corpus/devices.jsonl`, CALL in the text stands for a call, and `prefix` starts each of its lines.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cases import cases
from properties.families import FAMILIES, REQUEST, Family

from unrender import Parser

ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "corpus" / "devices.jsonl").read_text("utf-8").splitlines()
]
_NAMED = {family.name: family for family in FAMILIES}
CALLS = {
    _NAMED["json_envelope"]: '<tool_call>{"name": "now", "arguments": {}}</tool_call>',
    _NAMED["key_and_value"]: "<tool_call>now\n</tool_call>",
    _NAMED["tagged"]: "<tool_call>\n<function=now>\n</function>\n</tool_call>",
}


def read(family: Family, text: str, size: int) -> tuple[str, int]:
    """Return the content and the number of calls."""
    parser = Parser(family.format, REQUEST, prompt=family.prompt)
    for at in range(0, len(text), size):
        parser.feed(text[at : at + size])
    parser.finish()
    return parser.message.content, len(parser.message.tool_calls)


@pytest.mark.parametrize("family", CALLS, ids=lambda family: family.name)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["why"])
def test_a_call_that_is_shown_is_text(row: dict[str, Any], family: Family) -> None:
    """If text follows, no call is made, and every character is content."""
    lines = CALLS[family].split("\n")
    text = row["text"].replace("CALL", "\n".join(row["prefix"] + line for line in lines))

    for size in (1, len(text)):
        content, calls = read(family, text, size)
        assert calls == 0
        assert content.strip() == text.strip()


@pytest.mark.parametrize("family", CALLS, ids=lambda family: family.name)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["why"])
def test_a_call_that_ends_the_answer_is_a_call(row: dict[str, Any], family: Family) -> None:
    """A call in quotation marks or another device that is never closed is a real call."""
    before, _, _ = row["text"].partition("CALL")

    assert read(family, before + CALLS[family], 1)[1] == 1


@pytest.mark.parametrize("family", CALLS, ids=lambda family: family.name)
@cases
def test_a_call_between_texts_is_a_call(text: str, family: Family) -> None:
    """Unrelated lines before and after a call don't quote it, and neither does a line with the same words before another call."""
    assert read(family, text.replace("CALL", CALLS[family]), 1)[1] == text.count("CALL")


def test_the_start_of_another_call_closes_no_block() -> None:
    """`@` closes a block after `@example`, but the second `@tool:` is a call."""
    calls = '@tool: get_weather\n  with:\n    city: "Paris"\n@tool: get_time\n  with:\n    city: "Rome"'

    assert read(_NAMED["indented"], f"@example\n{calls}", 1)[1] == 2
