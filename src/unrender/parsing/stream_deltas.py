"""Folds events into OpenAI stream deltas: what `choices[0].delta` holds, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from unrender.messages import CallStatus, ReasoningField
from unrender.parsing.events import (
    ArgumentsText,
    ContentText,
    Event,
    ReasoningText,
    ToolCallFinished,
    ToolCallStarted,
)


def deltas(
    events: Iterable[Event], *, reasoning_field: ReasoningField = "reasoning_content"
) -> Iterator[dict[str, Any]]:
    """Yield one OpenAI delta for each event that has one.

    The id, type and name of a call come once, then fragments of its arguments. A dead call that was given as it was
    written ends with a `status`, a field of our own. The deltas of a whole answer add up to `Message.to_openai`.

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
            case ToolCallFinished(index, status) if status is not CallStatus.COMPLETE:
                call = {"index": index, "function": {"arguments": ""}, "status": status.value}
                yield {"tool_calls": [call]}
            case _:
                pass
