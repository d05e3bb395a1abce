"""Folds events into the message that they add up to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from io import StringIO

from unrender.machine.events import (
    ArgumentsText,
    ContentText,
    Event,
    Malformed,
    ReasoningText,
    ToolCallFinished,
    ToolCallStarted,
)
from unrender.messages.wire import CallStatus, Message, ToolCall
from unrender.nodes import Role


def message_of(events: Iterable[Event]) -> Message:
    """Return the message that events add up to.

    >>> message_of([ContentText("It "), ContentText("rains.")]).content
    'It rains.'
    """
    fold = MessageFold()
    fold.add(events)
    return fold.message


class MessageFold:
    """Adds events up to the message so far. Each event costs the same, however long the message is."""

    __slots__ = ("_arguments", "_calls", "_content", "_dead", "_reasoning", "_statuses")

    def __init__(self) -> None:
        self._content = StringIO()
        self._reasoning = StringIO()
        self._calls: list[ToolCallStarted] = []
        self._arguments: list[StringIO] = []
        self._statuses: list[CallStatus] = []
        self._dead: list[ToolCall] = []

    def copy(self) -> MessageFold:
        """Return an independent fold in the same state."""
        other = MessageFold()
        other._content.write(self._content.getvalue())
        other._reasoning.write(self._reasoning.getvalue())
        other._calls, other._statuses, other._dead = list(self._calls), list(self._statuses), list(self._dead)
        for arguments in self._arguments:
            other._arguments.append(StringIO())
            other._arguments[-1].write(arguments.getvalue())
        return other

    def writer(self, role: Role) -> Callable[[str], object]:
        """Return the function that adds text to the reasoning, the content or the latest call's arguments."""
        if role is Role.ARGUMENT:
            return self._arguments[-1].write
        return (self._reasoning if role is Role.REASONING else self._content).write

    def add(self, events: Iterable[Event]) -> None:
        """Take more events, in order."""
        for event in events:
            if isinstance(event, ContentText):
                self._content.write(event.text)
            elif isinstance(event, ArgumentsText):
                self._arguments[event.index].write(event.text)
            elif isinstance(event, ReasoningText):
                self._reasoning.write(event.text)
            elif isinstance(event, ToolCallStarted):
                self._calls.append(event)
                self._arguments.append(StringIO())
                self._statuses.append(CallStatus.OPEN)
            elif isinstance(event, ToolCallFinished):
                self._finish(event)
            elif isinstance(event, Malformed) and event.call is not None:
                self._dead.append(event.call)

    def _finish(self, event: ToolCallFinished) -> None:
        self._statuses[event.index] = event.status
        if event.status is not CallStatus.COMPLETE:
            self._dead.append(self._call(event.index))

    def _call(self, index: int) -> ToolCall:
        call, text, status = self._calls[index], self._arguments[index], self._statuses[index]
        return ToolCall(name=call.name, arguments=text.getvalue(), id=call.id, status=status, known=call.known)

    @property
    def message(self) -> Message:
        """The message so far."""
        return Message(
            content=self._content.getvalue(),
            reasoning=self._reasoning.getvalue(),
            tool_calls=tuple(map(self._call, range(len(self._calls)))),
            dead_calls=tuple(self._dead),
        )
