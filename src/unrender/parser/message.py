"""Combines events into a message, and removes the remains of broken calls.

`Quoter` distinguishes special tokens from ordinary text that looks like one, so that quoted markers remain text. If ordinary text spells out
a special token, the first character of the spelled-out token is replaced by a placeholder. The result has the same length and contains no
marker. In events, the placeholder is replaced by the original character again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from io import StringIO
from typing import Self, cast

from unrender.cache import kept
from unrender.machine import (
    ArgumentsText,
    BrokenText,
    ContentText,
    Event,
    Malformed,
    ReasoningText,
    ToolCallFinished,
    ToolCallStarted,
)
from unrender.messages import Message, Request, ToolCall
from unrender.nodes import Role
from unrender.signatures import checked
from unrender.values import Resumable
from unrender.values.finder import Finder


@checked
def message_of(events: Iterable[Event]) -> Message:
    """Combine events into a message.

    >>> message_of([ContentText("It "), ContentText("rains.")]).content
    'It rains.'
    """
    fold = MessageFold()
    fold.add(events)
    return fold.message


class MessageFold(Resumable):
    """Combines events into a message, which is available at any time. The cost of an event doesn't depend on the length of the message."""

    __slots__ = ("_arguments", "_calls", "_content", "_ends", "_failed", "_reasoning", "_request", "reported")

    def __init__(self, request: Request | None = None) -> None:
        self._request = request
        self._content = StringIO()
        self._reasoning = StringIO()
        self._calls: list[ToolCallStarted] = []
        self._arguments: list[StringIO] = []
        self._ends: dict[int, ToolCallFinished] = {}
        self._failed: list[ToolCall] = []
        self.reported: bool = False
        """True if a `Malformed` event was added."""

    def copy(self) -> Self:
        """Return an independent copy."""
        other = super().copy()
        other._content, other._reasoning = _copied(self._content), _copied(self._reasoning)
        other._arguments = list(map(_copied, self._arguments))
        return other

    def writer(self, role: Role) -> Callable[[str], object]:
        """Return a function that appends text to the reasoning, the content or the latest call's arguments."""
        if role is Role.ARGUMENT:
            return self._arguments[-1].write
        return (self._reasoning if role is Role.REASONING else self._content).write

    def add(self, events: Iterable[Event]) -> None:
        """Add events, in order."""
        for event in events:
            # Check the most frequent events first: this loop handles every event of every answer.
            if isinstance(event, ContentText):
                self._content.write(event.text)
            elif isinstance(event, ArgumentsText):
                self._arguments[event.index].write(event.text)
            elif isinstance(event, ReasoningText):
                self._reasoning.write(event.text)
            elif isinstance(event, ToolCallStarted):
                self._calls.append(event)
                self._arguments.append(StringIO())
            elif isinstance(event, ToolCallFinished):
                self._finish(event)
            elif isinstance(event, Malformed):
                self.reported = True
                if event.call is not None:
                    self._failed.append(event.call)
                if event.ends_reasoning:
                    self._reasoning.write(self.content.removesuffix(event.text))
                    self._content = StringIO()

    def _finish(self, event: ToolCallFinished) -> None:
        self._ends[event.index] = event
        if event.status != "complete":
            self._failed.append(self._call(event.index))

    def _call(self, index: int) -> ToolCall:
        call, text, end = self._calls[index], self._arguments[index], self._ends.get(index)
        status, written = (end.status, end.text) if end else ("open", "")
        return ToolCall(
            name=call.name,
            arguments_json=text.getvalue(),
            id=call.id,
            status=status,
            offered=call.offered,
            text=written,
            tool=self._request.tool(call.name) if self._request else None,
        )

    @property
    def content(self) -> str:
        """The content so far."""
        return self._content.getvalue()

    @property
    def message(self) -> Message:
        """The message so far."""
        return Message(
            content=self._content.getvalue(),
            reasoning=self._reasoning.getvalue(),
            tool_calls=tuple(map(self._call, range(len(self._calls)))),
            failed_calls=tuple(self._failed),
        )


def _copied(text: StringIO) -> StringIO:
    other = StringIO()
    other.write(text.getvalue())  # Writes to `StringIO(text)` would start at position 0 and overwrite the text.
    return other


_HARMLESS = frozenset((ContentText, ReasoningText, ArgumentsText))
"""Types of the most frequent events. These events are returned unchanged if nothing is buffered."""
_TEXT = (ContentText, ReasoningText)


class Cleaner(Resumable):
    """Removes the remains of broken calls from content. The input events may include broken text; the output events don't.

    Broken text looks like a call but isn't one. Broken text after a call is dropped at once. Broken text before the first call is buffered
    until text other than whitespace follows. If a call follows, the broken text is dropped as a failed attempt at that call. If content
    follows, the broken text becomes content too.
    """

    __slots__ = ("called", "held")

    def __init__(self) -> None:
        self.called: bool = False
        self.held: list[Event | BrokenText] = []

    def take(self, events: list[Event | BrokenText]) -> list[Event]:
        """Take new events, and return the events that are now final."""
        if len(events) == 1 and not self.held and type(events[0]) in _HARMLESS:
            return cast(list[Event], events)
        kinds = set(map(type, events))
        if not self.held and BrokenText not in kinds:
            self.called = self.called or ToolCallStarted in kinds
            return cast(list[Event], events)
        passed: list[Event] = []
        for event in events:
            if isinstance(event, ToolCallStarted):
                self.called = True
                passed += [held for held in self.held if not isinstance(held, BrokenText)]
                self.held = []
            # Ignore whitespace, because a call may still follow.
            elif isinstance(event, _TEXT) and self.held and event.text.strip():
                passed += self.finish()
            if isinstance(event, BrokenText):
                self.held += [] if self.called else [event]
            # Buffer later events too, to keep them in order.
            elif self.held:
                self.held.append(event)
            else:
                passed.append(event)
        return passed

    def finish(self) -> list[Event]:
        """Return the last events. Broken text that is still buffered becomes content, since no call follows."""
        held, self.held = self.held, []
        return [ContentText(event.text) if isinstance(event, BrokenText) else event for event in held]


_FIRST_STAND_IN = 0x10F000
"""First placeholder character. It's in the last private-use plane, whose characters models don't write."""


@kept(5_000)
def _stand_ins(tokens: frozenset[str]) -> tuple[Finder, Mapping[str, str]]:
    """Return a finder of the tokens, and a replacement for the first character of each."""
    finder = Finder(tokens)
    heads = sorted({token[0] for token in finder.literals})
    return finder, {head: chr(_FIRST_STAND_IN + i) for i, head in enumerate(heads)}


class Quoter(Resumable):
    """Quotes special tokens in ordinary text as it streams, and removes the quoting from events."""

    __slots__ = ("_back", "_finder", "_stand_ins", "held")

    def __init__(self, tokens: Iterable[str]) -> None:
        self._finder, self._stand_ins = _stand_ins(frozenset(tokens))
        self._back: dict[int, str] = {}
        """Placeholders in use, by code point."""
        self.held: str = ""
        """The end of ordinary text that may become a special token."""

    @property
    def tokens(self) -> tuple[str, ...]:
        """The special tokens."""
        return self._finder.literals

    def ordinary(self, text: str) -> str:
        """Quote ordinary text. Returns the quoted text, but holds back an end that may still become a special token."""
        text = self.held + text
        pieces, at = [], 0
        found, token = self._finder.decided(text, at, whole=True)
        while token:
            # `<think>` becomes `\U0010f000think>`, which has the same length and contains no marker.
            stand_in = self._stand_ins[token[0]]
            self._back[ord(stand_in)] = token[0]
            pieces += [text[at:found], stand_in, token[1:]]
            at = found + len(token)
            found, token = self._finder.decided(text, at, whole=True)
        self.held = text[found:]
        return "".join([*pieces, text[at:found]])

    def release(self) -> str:
        """Return the text that was held back, which didn't become a special token."""
        held, self.held = self.held, ""
        return held

    @property
    def used(self) -> bool:
        """True if something was quoted, so that events must be passed to `unquote`."""
        return bool(self._back)

    def unquote(self, event: Event | BrokenText) -> Event | BrokenText:
        """Return the event with its original characters."""
        match event:
            case ContentText(text) | ReasoningText(text) | ArgumentsText(_, text) | Malformed(text) | BrokenText(text):
                return replace(event, text=text.translate(self._back))
            case ToolCallStarted(name=name):
                return replace(event, name=name.translate(self._back))
            case _:
                return event
