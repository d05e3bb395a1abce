"""What closes reasoning closes it also inside text where a call was looked for and not found."""

from __future__ import annotations

import pytest
from properties.invariants import check

from unrender.formats import declared_format
from unrender.messages.wire import Request, Tool
from unrender.parser.streaming import Parser


@pytest.mark.parametrize(
    "thought",
    [
        "I call the function",
        'function\n```json\n{"tools": [{"n ',
        "<tool_call>\nfunction</",
        "function<now>\n```json\n",
    ],
)
@pytest.mark.parametrize("answer", ["Hi", '{"a": "b"}'])
def test_reasoning_ends_where_its_closer_stands(thought: str, answer: str) -> None:
    """However much of a call the thought resembles, the answer is not a part of it."""
    message = check(
        lambda: Parser(declared_format("deepseek-r1-1"), Request(tools=(Tool(name="now"),))),
        f"<think>{thought}</think>{answer}",
    )

    assert (message.reasoning, message.content) == (thought, answer)
