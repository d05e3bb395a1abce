"""Events as JSON data: saved, read again, and refused where no parser has written them."""

from __future__ import annotations

from typing import Any

import pytest

from unrender.errors import StateError
from unrender.machine.events import (
    ArgumentsText,
    ContentText,
    Malformed,
    MessageFinished,
    ReasoningText,
    ToolCallFinished,
    ToolCallStarted,
)
from unrender.machine.leftovers import BrokenText
from unrender.machine.saved import MOST, Saved
from unrender.messages.wire import CallStatus, ToolCall
from unrender.parser.saved_events import read_events, save_events

EVENTS = [
    ReasoningText("a"),
    ContentText("b"),
    BrokenText("c"),
    ToolCallStarted(2, "id", "now", False),
    ArgumentsText(2, "{}"),
    ToolCallFinished(2, CallStatus.TRUNCATED),
    Malformed("x", -3, "'y'"),
    Malformed("", 7, "z", ToolCall(name="now", arguments="{", id="", status=CallStatus.INVALID, known=False)),
    MessageFinished(),
]
SAVED = [
    {"kind": "reasoning", "text": "a"},
    {"kind": "content", "text": "b"},
    {"kind": "broken", "text": "c"},
    {"kind": "started", "index": 2, "id": "id", "name": "now", "known": False},
    {"kind": "arguments", "index": 2, "text": "{}"},
    {"kind": "finished", "index": 2, "status": "truncated"},
    {"kind": "malformed", "text": "x", "position": -3, "expected": "'y'", "call": None},
    {
        "kind": "malformed",
        "text": "",
        "position": 7,
        "expected": "z",
        "call": {"name": "now", "arguments": "{", "id": "", "status": "invalid", "known": False},
    },
    {"kind": "end"},
]


DEAD = {"name": "now", "arguments": "", "id": "", "status": "truncated", "known": True}


def test_events_are_saved_and_read() -> None:
    """Of every kind; with how many calls had begun before each."""
    assert save_events(EVENTS) == SAVED
    assert read_events([Saved(item) for item in SAVED], 2, 10) == (EVENTS, [2, 2, 2, 2, 3, 3, 3, 3, 3, 3])


def test_the_least_and_the_greatest_of_an_event() -> None:
    """A call that has begun may be any of those before; positions are bounded by what was read."""
    saved = [
        {"kind": "arguments", "index": 0, "text": ""},
        {"kind": "arguments", "index": 1, "text": ""},
        {"kind": "finished", "index": 0, "status": "complete"},
        {"kind": "finished", "index": 1, "status": "complete"},
        {"kind": "malformed", "text": "", "position": 10, "expected": "", "call": None},
        {"kind": "malformed", "text": "", "position": -MOST, "expected": "", "call": None},
    ]
    events, counts = read_events([Saved(item) for item in saved], 2, 10)

    assert (save_events(events), counts) == (saved, [2] * 7)


@pytest.mark.parametrize(
    ("saved", "calls"),
    [
        ({"kind": "started", "index": 0, "id": "", "name": "", "known": True}, 1),
        ({"kind": "started", "index": 2, "id": "", "name": "", "known": True}, 1),
        ({"kind": "arguments", "index": 0, "text": ""}, 0),
        ({"kind": "arguments", "index": 1, "text": ""}, 1),
        ({"kind": "arguments", "index": -1, "text": ""}, 1),
        ({"kind": "finished", "index": 1, "status": "complete"}, 1),
        ({"kind": "finished", "index": -1, "status": "complete"}, 1),
        ({"kind": "finished", "index": 0, "status": "done"}, 1),
        ({"kind": "malformed", "text": "", "position": 11, "expected": ""}, 1),
        ({"kind": "malformed", "text": "", "position": -MOST - 1, "expected": ""}, 1),
        ({"kind": "malformed", "text": "", "position": 0, "expected": "", "call": []}, 1),
        ({"kind": "malformed", "text": "", "position": 0, "expected": "", "call": {**DEAD, "status": "complete"}}, 1),
        ({"kind": "malformed", "text": "", "position": 0, "expected": "", "call": {**DEAD, "arguments": None}}, 1),
        ({"kind": "content"}, 1),
        ({"kind": "nothing"}, 1),
    ],
)
def test_events_that_no_parser_has_written(saved: dict[str, Any], calls: int) -> None:
    """A call that has not begun has no arguments and no end."""
    with pytest.raises(StateError):
        read_events([Saved(saved)], calls, 10)
