"""MessageFold: events add up to the message."""

from __future__ import annotations

from unrender import (
    ArgumentsText,
    CallStatus,
    ContentText,
    Malformed,
    Message,
    MessageFinished,
    ReasoningText,
    ToolCall,
    ToolCallFinished,
    ToolCallStarted,
)
from unrender.grammar import Role
from unrender.parser.message import MessageFold

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
    assert (whole.message, len(fold.message.tool_calls)) == (copy.message, 1)


def test_text_may_be_added_without_events() -> None:
    """To the reasoning, to the content, and to the arguments of the latest call."""
    fold = MessageFold()
    fold.add(EVENTS)
    for role, text in ((Role.REASONING, "!"), (Role.CONTENT, "?"), (Role.ARGUMENT, "{}")):
        fold.writer(role)(text)

    assert (fold.message.reasoning, fold.message.content) == ("so!", "ab?")
    assert [call.arguments for call in fold.message.tool_calls] == ['{"x": 1}', "{}"]


def test_failed_calls_are_those_that_were_given_and_those_that_were_not() -> None:
    """In the order in which they died; one whose text became content is no call of the message. A copy has its own."""
    waited = ToolCall(name="f", arguments="{", id="", status=CallStatus.TRUNCATED)
    fold = MessageFold()
    fold.add([Malformed("", 0, "x", waited), ContentText("<f>{"), ToolCallStarted(0, "id0", "g")])
    copy = fold.copy()
    copy.add([ToolCallFinished(0, CallStatus.INVALID)])

    given = ToolCall(name="g", arguments="", id="id0", status=CallStatus.INVALID)
    assert (copy.message.tool_calls, copy.message.failed_calls) == ((given,), (waited, given))
    assert fold.message.failed_calls == (waited,)
