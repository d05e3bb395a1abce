"""Keep the text of broken calls out of content, in formats that want it so.

Strategy: broken text cannot be judged when it is read. It is content when the whole answer has no call, and dropped when
it has one; until the first call, events behind broken text wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from unrender.parsing.events import ArgumentsText, ContentText, Event, ReasoningText, ToolCallStarted


@dataclass(frozen=True, slots=True)
class BrokenText:
    """Text that began a call and broke off. It leaves the parser as content, or not at all."""

    text: str


_HARMLESS = frozenset((ContentText, ReasoningText, ArgumentsText))
"""What mostly comes, one by one, and passes when nothing is held."""


class Cleaner:
    """Takes events with broken text in them, and gives events without."""

    __slots__ = ("called", "held")

    def __init__(self) -> None:
        self.called = False
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
        passed: list[Event] = []
        for event in events:
            if isinstance(event, ToolCallStarted) and not self.called:
                self.called = True
                passed += [held for held in self.held if not isinstance(held, BrokenText)]
                self.held = []
            if isinstance(event, BrokenText):
                self.held += [] if self.called else [event]
            elif self.held:
                self.held.append(event)
            else:
                passed.append(event)
        return passed

    def finish(self) -> list[Event]:
        """The answer has no call: broken text is content."""
        held, self.held = self.held, []
        return [ContentText(event.text) if isinstance(event, BrokenText) else event for event in held]
