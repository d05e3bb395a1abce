"""Templates for the tests of engine plug-ins: a tokenizer for each template, and a turn with two tools."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from answers import all_template_paths
from byte_tokenizer import byte_tokenizer

from unrender import ChatTemplate, Message, Turn, UnrenderError
from unrender.format import ToolMode

EOS = "</s>"
USER: Any = [{"role": "user", "content": "Hello"}]
SCHEMA: Any = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]}
TOOLS: Any = [
    {"type": "function", "function": {"name": "get_weather", "description": "Weather", "parameters": SCHEMA}},
    {"type": "function", "function": {"name": "now", "description": "Time", "parameters": {"type": "object", "properties": {}}}},
]  # fmt: skip
SEEDS = range(2)


@cache
def template(name: str) -> ChatTemplate:
    """Return a template, analysed once."""
    return ChatTemplate.from_file(all_template_paths()[name], eos_token=EOS)


@cache
def tokenizer(name: str) -> Any:
    """Return a tokenizer with the template and its special tokens."""
    special = (*template(name).format.preserved_tokens, EOS)
    return byte_tokenizer(special, eos=EOS, template=all_template_paths()[name].read_text(encoding="utf-8"))


@cache
def prepared(name: str) -> tuple[Turn, bool]:
    """Return a turn, and whether the template itself describes tools in it."""
    for tools in (TOOLS, None):
        try:
            turn = template(name).prepare(USER, tools=tools, tool_format="none")
        except UnrenderError:
            continue  # Some templates reject tools, or this conversation.
        if not tools or turn.format.tools.mode is not ToolMode.NONE:
            return turn, bool(tools)
    pytest.skip("the template refuses the conversation")


def meant(message: Message) -> Any:
    """Return a message in the form in which engines' answers are compared."""
    return message.reasoning, message.content, [(call.name, call.arguments_json) for call in message.tool_calls]
