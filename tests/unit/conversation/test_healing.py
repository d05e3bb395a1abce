"""Healing: where a broken call stops being good, and the prompt and the grammar in which the model writes the rest of it."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from vendor import all_vendor_templates, vendor_cases

from unrender import ChatTemplate, SchemaWarning, ToolChoice, Turn

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
USER = [{"role": "user", "content": "Go on."}]
TOOL = {
    "type": "function",
    "function": {
        "name": "note",
        "parameters": {
            "type": "object",
            "properties": {"title": {"type": "string"}, "words": {"type": "string"}, "stars": {"type": "integer"}},
            "required": ["title", "words"],
        },
    },
}
JSON = '<tool_call>\n{"name": "note", "arguments": {"title": "Day", "words": "A "good" one", "stars": 3}}\n</tool_call>'
GOOD = '<tool_call>\n{"name": "note", "arguments": {"title": "Day", "words": "'


def turn_of(name: str = "json-tags", **asked: Any) -> Turn:
    template = ChatTemplate.from_file(TEMPLATES / f"{name}.jinja", eos_token="</s>")
    return template.prepare(USER, tools=[TOOL], **asked)


def test_what_is_good_stays_and_the_value_that_broke_is_begun_again() -> None:
    """The prompt goes on with the good part, so a prefix cache holds all before it; the grammar is that of the rest."""
    turn = turn_of()

    found = turn.heal(f"One moment.\n{JSON}")

    assert found is not None
    assert found.kept == f"One moment.\n{GOOD}"
    assert found.turn.prompt == turn.prompt + found.kept
    assert found.turn.triggers == ()
    for dialect in ("gbnf", "lark", "structural_tag"):
        with warnings.catch_warnings():
            warnings.simplefilter("error", SchemaWarning)
            assert getattr(found.turn, dialect)()
    for rest in (found.turn.sample(seed) for seed in range(20)):
        first, *_ = turn.parse(found.kept + rest).tool_calls
        values = json.loads(first.arguments)
        assert (first.name, values["title"], turn.problems(first)) == ("note", "Day", ())


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("No call.", {}),
        (JSON.replace('"good"', "good"), {}),
        (JSON.replace("note", "poem"), {}),
        (JSON, {"tool_choice": "none"}),
        (f"Write `{JSON}` for it.", {}),
        (f"So:\n```\n{JSON}\n```\n", {}),
        (JSON[:50], {}),
        ("<tool_call>\n{", {}),
        (JSON.replace("note", "no te"), {}),
    ],
)
def test_where_nothing_broke_or_nothing_was_meant_there_is_nothing_to_heal(text: str, asked: dict[str, Any]) -> None:
    """Neither are calls of tools that are not offered, quoted ones, and those whose name is not known."""
    assert turn_of(**asked).heal(text, finish_reason="length" if text in JSON else None) is None


def test_a_call_that_breaks_behind_others_goes_on_with_their_run() -> None:
    """In one section the opener is not written a second time, and the calls before it stay as they were."""
    turn = turn_of("json-array")
    text = turn.format.tools.section_start + '{"name": "note", "arguments": {"title": "a", "words": "b"}}, '
    text += '{"name": "note", "arguments": {"title": "Day", "words": "A "good" one"}}' + turn.format.tools.section_end

    found = turn.heal(text)

    assert found is not None
    assert found.kept.count(turn.format.tools.section_start.strip()) == 1
    calls = turn.parse(found.kept + found.turn.sample(1)).tool_calls
    assert [json.loads(call.arguments)["title"] for call in calls[:2]] == ["a", "Day"]


@pytest.mark.parametrize("name", ["drift", "drift-damage"])
def test_calls_that_real_models_broke_are_healed_or_left_alone(name: str) -> None:
    """Whatever the model writes under the grammar, the call has the name and the arguments that were good, and obeys its schema."""
    rows, templates = vendor_cases(name), all_vendor_templates()
    if not rows:
        pytest.skip("no drifted answers found")
    known: dict[str, ChatTemplate] = {}
    healed, left = 0, 0
    for row in rows:
        stem = row["template"].removesuffix(".jinja")
        if stem not in known:
            known[stem] = ChatTemplate.from_file(templates[stem])
        turn = known[stem].prepare(USER, tools=row["tools"] or None, **row.get("kwargs", {}))
        before = turn.parse(row["text"])
        broken = [call for call in before.failed_calls if call.status == "invalid" and turn.request.tool(call.name)]
        found = turn.heal(row["text"]) if broken else None
        left += bool(broken) and found is None
        if found is None:
            continue
        healed += 1
        assert found.turn.request.tool_choice is ToolChoice.REQUIRED
        calls = turn.parse(found.kept + found.turn.sample(1)).tool_calls
        new = calls[len(before.tool_calls)]
        assert new.name == broken[0].name, row
        assert turn.problems(new) == (), row
    assert healed >= 10
    assert left <= 3
