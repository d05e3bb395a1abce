"""MessageFold: events add up to the message."""

from __future__ import annotations

import pytest

from unrender.errors import StateError
from unrender.grammar.nodes import Role
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
from unrender.parsing.saved import Saved

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
    whole = copy.copy()
    assert (whole.message, whole.calls, fold.calls) == (copy.message, 2, 1)


def test_text_may_be_added_without_events() -> None:
    """To the reasoning, to the content, and to the arguments of the latest call."""
    fold = MessageFold()
    fold.add(EVENTS)
    for role, text in ((Role.REASONING, "!"), (Role.CONTENT, "?"), (Role.ARGUMENT, "{}")):
        fold.writer(role)(text)

    assert (fold.message.reasoning, fold.message.content) == ("so!", "ab?")
    assert [call.arguments for call in fold.message.tool_calls] == ['{"x": 1}', "{}"]


def test_a_message_is_saved_and_read() -> None:
    """As plain data, and what comes later is added to it."""
    fold = MessageFold()
    fold.add(EVENTS)
    state = fold.state()
    assert state == {
        "content": "ab",
        "reasoning": "so",
        "calls": [
            {"id": "id0", "name": "f", "known": True, "arguments": '{"x": 1}', "status": "complete"},
            {"id": "id1", "name": "g", "known": False, "arguments": "", "status": "open"},
        ],
    }
    again = MessageFold.restore(Saved(state))
    assert (again.state(), again.message, again.calls) == (state, fold.message, 2)
    again.add([ContentText("c"), ReasoningText("."), ArgumentsText(1, "{}"), ToolCallFinished(1, CallStatus.INVALID)])

    assert (again.message.content, again.message.reasoning) == ("abc", "so.")
    assert again.message.tool_calls[1] == ToolCall(
        name="g", arguments="{}", id="id1", status=CallStatus.INVALID, known=False
    )


@pytest.mark.parametrize("name", ["id", "name", "known", "arguments", "status"])
def test_a_call_that_lacks_a_field_is_refused(name: str) -> None:
    """The error says which."""
    call = {"id": "a", "name": "f", "known": True, "arguments": "", "status": "open"}
    del call[name]

    with pytest.raises(StateError, match=rf"state\.calls\[0\]\.{name}: expected"):
        MessageFold.restore(Saved({"content": "", "reasoning": "", "calls": [call]}))
