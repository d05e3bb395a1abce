"""Events add up to the message."""

from __future__ import annotations

from unrender import (
    ArgumentsText,
    ContentText,
    Event,
    Malformed,
    Message,
    MessageFinished,
    ReasoningText,
    ToolCall,
    ToolCallFinished,
    ToolCallStarted,
)
from unrender.openai import message_of

EVENTS = (
    ReasoningText("so"),
    ContentText("a"),
    ToolCallStarted(0, "id0", "f"),
    ArgumentsText(0, '{"x"'),
    ArgumentsText(0, ": 1}"),
    ToolCallFinished(0, "complete"),
    Malformed("x", 3, "y"),
    ToolCallStarted(1, "id1", "g", offered=False),
    ContentText("b"),
    MessageFinished(),
)


def test_events_add_up() -> None:
    """Texts are joined in order, an unfinished call is open, and malformed text adds nothing."""
    assert message_of(EVENTS) == Message(
        content="ab",
        reasoning="so",
        tool_calls=(
            ToolCall(name="f", arguments_json='{"x": 1}', id="id0"),
            ToolCall(name="g", arguments_json="", id="id1", status="open", offered=False),
        ),
    )


def test_failed_calls_are_those_that_were_given_and_those_that_were_not() -> None:
    """Failed calls are in order of failure. A call whose text became content isn't one of the message's calls."""
    waited = ToolCall(name="f", arguments_json="{", id="", status="truncated")
    events: list[Event] = [Malformed("", 0, "x", waited), ContentText("<f>{"), ToolCallStarted(0, "id0", "g")]
    ended = message_of([*events, ToolCallFinished(0, "invalid")])

    given = ToolCall(name="g", arguments_json="", id="id0", status="invalid")
    assert (ended.tool_calls, ended.failed_calls) == ((given,), (waited, given))
    assert message_of(events).failed_calls == (waited,)
