"""Events become the deltas that clients of the OpenAI API expect in a stream."""

from __future__ import annotations

from unrender import (
    ArgumentsText,
    ContentText,
    Malformed,
    MessageFinished,
    ReasoningText,
    ToolCallFinished,
    ToolCallStarted,
)
from unrender.openai import deltas


def test_each_event_is_one_delta_or_none() -> None:
    """Id, type and name are sent once per call, then fragments. Ends and malformed text have no delta."""
    events = [
        ReasoningText("r"),
        ContentText("c"),
        ToolCallStarted(1, "x", "f"),
        ArgumentsText(1, "{}"),
        ToolCallFinished(1, "complete"),
        Malformed("", 0, "y"),
        MessageFinished(),
    ]

    assert list(deltas(events)) == [
        {"reasoning_content": "r"},
        {"content": "c"},
        {"tool_calls": [{"index": 1, "id": "x", "type": "function", "function": {"name": "f", "arguments": ""}}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]},
    ]
