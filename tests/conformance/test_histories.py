"""Histories of unlike answers: a template that takes two answers each in a history of its own takes them in one as well."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from vendor import ROOT, all_vendor_templates

from unrender import ChatTemplate, TemplateError

OWN = {path.stem: path for path in sorted((ROOT / "tests" / "templates").glob("*.jinja"))}
PATHS: dict[str, Path] = {**OWN, **all_vendor_templates()}
TOOL = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Look something up.",
        "parameters": {"type": "object", "properties": {"word": {"type": "string", "description": "A word."}}},
    },
}
ANSWERS = (("It rains.", "", False), ("It rains.", "Weather.", False), ("", "", True), ("", "Weather.", True))
"""Content, reasoning, and whether a tool is called."""
Answer = tuple[str, str, bool]


def turn(number: int, answer: Answer) -> list[dict[str, Any]]:
    """Return an answer, and what is said to it."""
    content, reasoning, called = answer
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if reasoning:
        message["reasoning_content"] = reasoning
    if not called:
        return [message, {"role": "user", "content": "And then?"}]
    id = f"call{number:05d}"
    function = {"name": "look_up", "arguments": '{"word": "zebra"}'}
    message["tool_calls"] = [{"id": id, "type": "function", "function": function}]
    return [message, {"role": "tool", "tool_call_id": id, "content": "A result."}]


def refusal(template: ChatTemplate, *answers: Answer) -> str:
    """Return why a template refuses a history of these answers; "" where it takes it."""
    turns = [message for number, answer in enumerate(answers) for message in turn(number, answer)]
    try:
        template.prepare([{"role": "user", "content": "What now?"}, *turns], tools=[TOOL])
    except TemplateError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", PATHS)
def test_unlike_answers_go_together(name):
    """No two answers that are taken alone are refused because the other is there."""
    template = ChatTemplate.from_file(PATHS[name], bos_token="<s>", eos_token="</s>")
    taken = [answer for answer in ANSWERS if not refusal(template, answer, answer)]
    refused = {pair: why for pair in permutations(taken, 2) if (why := refusal(template, *pair))}

    assert refused == {}
    assert taken
