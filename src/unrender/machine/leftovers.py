"""Keeps the leftovers of calls out of content, in formats that want it so.

Strategy: broken text has the shape of a call but is none. After a call it is left over, and dropped at once. Before any
call it waits while only white space follows: a call that comes next shows that it was a failed beginning of that call, and
drops it; anything else makes it content. So nothing waits longer than the next word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from unrender.machine.events import ArgumentsText, ContentText, Event, ReasoningText, ToolCallStarted


@dataclass(frozen=True, slots=True)
class BrokenText:
    """Text with the shape of a call that could not be read as one. It leaves the parser as content, or is dropped."""

    text: str


_HARMLESS = frozenset((ContentText, ReasoningText, ArgumentsText))
"""What mostly comes, one by one, and passes when nothing is held."""
_TEXT = (ContentText, ReasoningText)


class Cleaner:
    """Takes events that include broken text, and returns events without it."""

    __slots__ = ("called", "held")

    def __init__(self) -> None:
        self.called: bool = False
        self.held: list[Event | BrokenText] = []

    def copy(self) -> Cleaner:
        """Return an independent cleaner in the same state."""
        other = Cleaner()
        other.called, other.held = self.called, list(self.held)
        return other

    def take(self, events: list[Event | BrokenText]) -> list[Event]:
        """Return the events that are final now."""
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
            elif isinstance(event, _TEXT) and self.held and event.text.strip():
                passed += self.finish()
            if isinstance(event, BrokenText):
                self.held += [] if self.called else [event]
            elif self.held:
                self.held.append(event)
            else:
                passed.append(event)
        return passed

    def finish(self) -> list[Event]:
        """Return the last events: no call follows, so broken text is content."""
        held, self.held = self.held, []
        return [ContentText(event.text) if isinstance(event, BrokenText) else event for event in held]
