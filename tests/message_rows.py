"""Rows of `tests/corpus/messages.jsonl` ↔ what is read of what people send.

`read` says what is `given`: `messages`, their `content` (beside what has no effect), `tools`, a `tool_choice` (beside the tools `f` and `g`), `allowed_tools` of them, a
`response_format`, or the `arguments` of an earlier call. A row says what it `gives`, or the `error`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from unrender.conversation.blocks import in_openai_form
from unrender.conversation.inputs import values_of
from unrender.errors import MessageError
from unrender.messages.wire import (
    read_allowed_tools,
    read_messages,
    read_response_schema,
    read_tool_choice,
    read_tools,
)

MESSAGES = Path(__file__).parent / "corpus" / "messages.jsonl"
TOOLS = read_tools([{"name": "f"}, {"name": "g"}])


def allowed(given: Any) -> Any:
    """Return the mode, and the names of the allowed tools."""
    mode, tools = read_allowed_tools(given, TOOLS)
    return [mode, [tool.name for tool in tools]]


def content(given: Any) -> Any:
    """Return a conversation in OpenAI's form, for a template that reads parts of type `note`, and what has no effect."""
    ignored: list[str] = []
    messages = in_openai_form(given, types=("note",), keys=("blocks",), ignored=ignored)
    return [messages, ignored] if ignored else messages


READERS: Mapping[str, Callable[[Any], Any]] = {
    "messages": lambda given: len(read_messages(given)),
    "content": content,
    "tools": lambda given: [tool.to_openai() for tool in read_tools(given)],
    "tool_choice": lambda given: [str(part) for part in read_tool_choice(given, TOOLS)],
    "allowed_tools": allowed,
    "response_format": read_response_schema,
    "arguments": values_of,
}


def read(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a row gives, or the error."""
    try:
        return {"gives": READERS[row["read"]](row["given"])}
    except MessageError as error:
        return {"error": str(error)}
