"""What a parser emits: plain values that are compared, matched by position, and never changed."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import get_args

import pytest

from unrender.machine.events import (
    ArgumentsText,
    ContentText,
    Event,
    Malformed,
    MessageFinished,
    ReasoningText,
    ToolCallFinished,
    ToolCallStarted,
)
from unrender.messages.wire import CallStatus

EVENTS = (
    ReasoningText("a"),
    ContentText("a"),
    ToolCallStarted(0, "id", "now"),
    ArgumentsText(0, "{}"),
    ToolCallFinished(0, CallStatus.COMPLETE),
    Malformed("x", 3, "'y'"),
    MessageFinished(),
)


def test_every_event_is_one_of_these() -> None:
    """A caller who handles all of them handles everything."""
    assert set(get_args(Event)) == set(map(type, EVENTS))


def test_events_are_values() -> None:
    """Two of the same kind and content are equal; the kind counts."""
    again = (ReasoningText("a"), ContentText("a"), ToolCallStarted(0, "id", "now", known=True))

    assert EVENTS[:3] == again
    assert len(set(EVENTS)) == len(EVENTS)
    assert ToolCallStarted(0, "id", "now") != ToolCallStarted(0, "id", "now", known=False)


def test_fields_come_in_the_order_that_a_match_takes_them() -> None:
    """The index first, then what is said."""
    found = []
    for event in EVENTS:
        match event:
            case ReasoningText(text) | ContentText(text):
                found.append(text)
            case ToolCallStarted(index, id, name, known):
                found.append(f"{index} {id} {name} {known}")
            case ArgumentsText(index, text):
                found.append(f"{index} {text}")
            case ToolCallFinished(index, status):
                found.append(f"{index} {status.value}")
            case Malformed(text, position, expected):
                found.append(f"{text} {position} {expected}")

    assert found == ["a", "a", "0 id now True", "0 {}", "0 complete", "x 3 'y'"]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_is_final(event: Event) -> None:
    """Nobody who is handed one can change it for others."""
    for name in event.__slots__ or ("text",):
        with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
            setattr(event, name, "other")
