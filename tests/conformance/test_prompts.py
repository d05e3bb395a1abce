"""What a prompt has begun of the answer: never a word of an earlier turn, over all templates, turns and thinking settings.

Rules: the model says nothing here. So whatever is read was begun by the prompt, and the only words that a prompt may begin
are those that its generation prompt writes in the model's name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from vendor import ROOT, all_vendor_templates

from unrender import ChatTemplate, Message, Parser, TemplateError, Turn

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
CALL = {"id": "call00001", "type": "function", "function": {"name": "look_up", "arguments": '{"word": "zebra"}'}}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str = "", **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **fields}


RESULT = {"role": "tool", "tool_call_id": "call00001", "name": "look_up", "content": "A result."}
CALLED = [user("One?"), assistant(tool_calls=[CALL]), RESULT]
CONVERSATIONS = {
    "one turn": [user("One?")],
    "two turns": [user("One?"), assistant("First."), user("Two?")],
    "two turns with reasoning": [user("One?"), assistant("First.", reasoning_content="Thought."), user("Two?")],
    "three turns": [user("One?"), assistant("First."), user("Two?"), assistant("Second."), user("Three?")],
    "after a tool": CALLED,
    "after a reasoned call": [
        user("One?"),
        assistant(tool_calls=[CALL], reasoning_content="Thought."),
        RESULT,
    ],
    "after a call with content": [user("One?"), assistant("First.", tool_calls=[CALL]), RESULT],
    "a question after a tool": [*CALLED, assistant("First."), user("Two?")],
}


@cache
def template(name: str) -> ChatTemplate:
    return ChatTemplate.from_file(PATHS[name], bos_token="<s>", eos_token="</s>")


def asked(template: ChatTemplate, conversation: list[dict[str, Any]]) -> Iterator[tuple[Turn, list[Any] | None]]:
    """Yield the turns that answer the conversation, with and without tools, for every setting of thinking."""
    for thinking, tools in product((None, True, False), (None, [TOOL])):
        switch = {} if thinking is None else {"enable_thinking": thinking}
        with suppress(TemplateError):
            yield template.prepare(conversation, tools=tools, **switch), tools


def read(parser: Parser) -> Message:
    parser.finish()
    return parser.message


@pytest.mark.parametrize("conversation", CONVERSATIONS)
@pytest.mark.parametrize("name", PATHS)
def test_nothing_of_an_earlier_turn_reaches_the_answer(name, conversation):
    """Where the model says nothing, nothing is read but what the generation prompt itself says, known or searched for."""
    turns = list(asked(template(name), CONVERSATIONS[conversation]))
    if not turns:
        pytest.skip("the template refuses the conversation")
    for turn, tools in turns:
        known = read(turn.parser())
        searched = read(template(name).parser(prompt=turn.prompt, tools=tools))

        assert searched == known
        assert known.content == ""
        assert known.tool_calls == ()
        assert known.reasoning.strip() in ("", turn.format.turn.prefill.strip())
