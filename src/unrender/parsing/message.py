"""Folds events into the message that they add up to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from io import StringIO
from typing import Any

from unrender.grammar.nodes import Role
from unrender.messages import CallStatus, Message, ToolCall
from unrender.parsing.events import (
    ArgumentsText,
    ContentText,
    Event,
    ReasoningText,
    ToolCallFinished,
    ToolCallStarted,
)
from unrender.parsing.saved import Saved


class MessageFold:
    """Adds events up to the message so far. Each event costs the same, however long the message is."""

    __slots__ = ("_arguments", "_calls", "_content", "_reasoning", "_statuses")

    def __init__(self) -> None:
        self._content = StringIO()
        self._reasoning = StringIO()
        self._calls: list[ToolCallStarted] = []
        self._arguments: list[StringIO] = []
        self._statuses: list[CallStatus] = []

    def copy(self) -> MessageFold:
        """Return an independent fold in the same state."""
        other = MessageFold()
        other._content.write(self._content.getvalue())
        other._reasoning.write(self._reasoning.getvalue())
        other._calls, other._statuses = list(self._calls), list(self._statuses)
        for arguments in self._arguments:
            other._arguments.append(StringIO())
            other._arguments[-1].write(arguments.getvalue())
        return other

    def writer(self, role: Role) -> Callable[[str], object]:
        """Return the function that adds text to the reasoning, the content or the latest call's arguments."""
        if role is Role.ARGUMENT:
            return self._arguments[-1].write
        return (self._reasoning if role is Role.REASONING else self._content).write

    @property
    def calls(self) -> int:
        """How many calls have begun."""
        return len(self._calls)

    def state(self) -> dict[str, Any]:
        """Return the message so far, as JSON data."""
        calls = [
            {
                "id": call.id,
                "name": call.name,
                "known": call.known,
                "arguments": text.getvalue(),
                "status": status.value,
            }
            for call, text, status in zip(self._calls, self._arguments, self._statuses, strict=True)
        ]
        return {"content": self._content.getvalue(), "reasoning": self._reasoning.getvalue(), "calls": calls}

    @classmethod
    def restore(cls, saved: Saved) -> MessageFold:
        """Return a fold with the state that was saved."""
        fold = cls()
        fold._content.write(saved.text("content"))
        fold._reasoning.write(saved.text("reasoning"))
        statuses = {status.value: status for status in CallStatus}
        for index, call in enumerate(saved.objects("calls")):
            fold.add([ToolCallStarted(index, call.text("id"), call.text("name"), call.flag("known"))])
            fold._arguments[index].write(call.text("arguments"))
            fold._statuses[index] = call.choice("status", statuses)
        return fold

    def add(self, events: Iterable[Event]) -> None:
        """Take more events, in order."""
        for event in events:
            kind = type(event)
            if kind is ContentText:
                self._content.write(event.text)  # type: ignore[union-attr]
            elif kind is ArgumentsText:
                self._arguments[event.index].write(event.text)  # type: ignore[union-attr]
            elif kind is ReasoningText:
                self._reasoning.write(event.text)  # type: ignore[union-attr]
            elif kind is ToolCallStarted:
                self._calls.append(event)  # type: ignore[arg-type]
                self._arguments.append(StringIO())
                self._statuses.append(CallStatus.OPEN)
            elif kind is ToolCallFinished:
                self._statuses[event.index] = event.status  # type: ignore[union-attr]

    @property
    def message(self) -> Message:
        """The message so far."""
        calls = tuple(
            ToolCall(name=call.name, arguments=text.getvalue(), id=call.id, status=status, known=call.known)
            for call, text, status in zip(self._calls, self._arguments, self._statuses, strict=True)
        )
        return Message(content=self._content.getvalue(), reasoning=self._reasoning.getvalue(), tool_calls=calls)
