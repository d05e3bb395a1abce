"""Saves events as plain JSON data, and reads them again.

Rule: each field is checked, so that data which no parser has written is a `StateError`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

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
from unrender.machine.leftovers import BrokenText
from unrender.machine.saved import MOST, Saved
from unrender.messages.wire import CallStatus
from unrender.parser.message import read_dead_call

_STATUSES = {status.value: status for status in CallStatus}
_KINDS: dict[str, type[Event | BrokenText]] = {
    "reasoning": ReasoningText,
    "content": ContentText,
    "broken": BrokenText,
    "started": ToolCallStarted,
    "arguments": ArgumentsText,
    "finished": ToolCallFinished,
    "malformed": Malformed,
    "end": MessageFinished,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def save_events(events: Iterable[Event | BrokenText]) -> list[dict[str, Any]]:
    """Return events as JSON data."""
    return [{"kind": _NAMES[type(event)], **asdict(event)} for event in events]


def read_events(saved: list[Saved], calls: int, most: int) -> tuple[list[Event | BrokenText], list[int]]:
    """Return events, and the number of calls begun before each and after all; at most `most` calls may begin."""
    events: list[Event | BrokenText] = []
    counts = [calls]
    for item in saved:
        event = _read_event(item, counts[-1], most)
        events.append(event)
        counts.append(counts[-1] + isinstance(event, ToolCallStarted))
    return events, counts


def _read_event(item: Saved, calls: int, most: int) -> Event | BrokenText:
    kind = item.choice("kind", _KINDS)
    if kind in (ReasoningText, ContentText, BrokenText):
        return kind(item.text("text"))
    if kind is ToolCallStarted:
        return ToolCallStarted(
            item.number("index", calls, calls), item.text("id"), item.text("name"), item.flag("known")
        )
    if kind is ArgumentsText:
        return ArgumentsText(item.number("index", 0, calls - 1), item.text("text"))
    if kind is ToolCallFinished:
        return ToolCallFinished(item.number("index", 0, calls - 1), item.choice("status", _STATUSES))
    if kind is Malformed:
        call = item.object("call")
        position = item.number("position", -MOST, most)
        return Malformed(item.text("text"), position, item.text("expected"), read_dead_call(call) if call else None)
    return MessageFinished()
