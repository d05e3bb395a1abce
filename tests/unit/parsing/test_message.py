"""MessageFold: events add up to the message."""

from __future__ import annotations

from unrender.messages import CallStatus, Message, ToolCall
from unrender.parsing.events import (
    ArgumentsText,
    ContentText,
    Malformed,
    MessageFinished,
    ReasoningText,
    ToolCallFinished,
    ToolCallStarted,
)
from unrender.parsing.message import MessageFold

EVENTS = (
    ReasoningText("so"),
    ContentText("a"),
    ToolCallStarted(0, "id0", "f"),
    ArgumentsText(0, '{"x"'),
    ArgumentsText(0, ": 1}"),
    ToolCallFinished(0, CallStatus.COMPLETE),
    Malformed("x", 3, "y"),
    ToolCallStarted(1, "id1", "g", known=False),
    ContentText("b"),
    MessageFinished(),
)


def test_events_add_up() -> None:
    """Texts are joined in order; a call that has not ended is open; what is malformed adds nothing."""
    fold = MessageFold()
    fold.add(EVENTS)

    assert fold.message == Message(
        content="ab",
        reasoning="so",
        tool_calls=(
            ToolCall(name="f", arguments='{"x": 1}', id="id0"),
            ToolCall(name="g", arguments="", id="id1", status=CallStatus.OPEN, known=False),
        ),
    )


def test_a_copy_is_independent() -> None:
    """What is added to a copy does not show in the original, nor the other way round."""
    fold = MessageFold()
    fold.add(EVENTS[:4])
    copy = fold.copy()
    copy.add(EVENTS[4:])

    assert fold.message.tool_calls[0].arguments == '{"x"'
    assert copy.message.tool_calls[0].arguments == '{"x": 1}'
