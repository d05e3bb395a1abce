"""Folds events into OpenAI stream deltas: what `choices[0].delta` holds, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from unrender.messages import ReasoningField
from unrender.parsing.events import ArgumentsText, ContentText, Event, ReasoningText, ToolCallStarted


def deltas(
    events: Iterable[Event], *, reasoning_field: ReasoningField = "reasoning_content"
) -> Iterator[dict[str, Any]]:
    """Yield one OpenAI delta for each event that has one.

    The id, type and name of a call come once, then fragments of its arguments.

    >>> list(deltas([ContentText("Hi"), ToolCallStarted(0, "abc", "now"), ArgumentsText(0, "{}")]))
    [{'content': 'Hi'}, {'tool_calls': [{'index': 0, 'id': 'abc', 'type': 'function', \
'function': {'name': 'now', 'arguments': ''}}]}, {'tool_calls': [{'index': 0, 'function': {'arguments': '{}'}}]}]
    """
    for event in events:
        match event:
            case ContentText(text):
                yield {"content": text}
            case ReasoningText(text):
                yield {reasoning_field: text}
            case ToolCallStarted(index, id, name):
                function = {"name": name, "arguments": ""}
                yield {"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}
            case ArgumentsText(index, text):
                yield {"tool_calls": [{"index": index, "function": {"arguments": text}}]}
            case _:
                pass
