"""Finds the first broken call of an answer, and the calls after it.

A call is broken if it can't be parsed, or if its arguments violate its tool's schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from unrender.errors import GrammarError
from unrender.limits import MAX_FEW
from unrender.machine.events import Event, Malformed, ToolCallFinished, ToolCallStarted
from unrender.messages import CallStatus, ToolCall
from unrender.parser.streaming import Parser


@dataclass(frozen=True, slots=True)
class Broken:
    """A call that failed or violates its tool's schema. Positions are character indexes in the answer."""

    name: str
    start: int
    end: int
    """Position at which parsing failed."""
    stop: int
    status: CallStatus
    over: int = field(default=0, compare=False)
    """Position at which the next call, or the end of the answer, follows."""
    later: tuple[tuple[str, Mapping[str, Any], str], ...] = field(default=(), compare=False)
    """Name, arguments and id of the complete calls after the broken one."""
    further: bool = field(default=False, compare=False)
    """True if another broken call follows."""


def first_broken(parser: Parser, text: str, finish_reason: str | None, prefill: int) -> Broken | None:
    """Parse an answer with a new parser, and return its first broken call. The prompt contains the first `prefill` characters."""
    starts: dict[int, int] = {}
    events = parser.finish(finish_reason, text=text)
    for index, event in enumerate(events):
        if isinstance(event, ToolCallStarted):
            starts[event.index] = event.position
        elif breaks(event, parser):
            found = _span(event, parser, starts, text, prefill)
            return found and _with_later(found, events[index + 1 :], parser, text)
    return None


def only_call(parser: Parser, text: str) -> Mapping[str, Any] | None:
    """Parse a text with a new parser. Return the arguments if the text is one complete, undamaged call. Otherwise, return None."""
    events = parser.finish("stop", text=text)
    calls = parser.message.tool_calls
    if len(calls) != 1 or any(isinstance(event, Malformed) for event in events):
        return None
    return calls[0].arguments if calls[0].status == "complete" and not calls[0].problems() else None


def breaks(event: Event, parser: Parser) -> bool:
    """Return True if this event reports a failed call, or a complete call whose arguments violate its tool's schema."""
    match event:
        case Malformed(call=call):
            return call is not None
        case ToolCallFinished(index, "complete"):
            with suppress(GrammarError):
                return bool(parser.message.tool_calls[index].problems())
    return False


def _span(event: Event, parser: Parser, starts: Mapping[int, int], text: str, prefill: int) -> Broken | None:
    match event:
        case Malformed(position=position, call=ToolCall(name=name, status=status, text=own)):
            # A call fails at its end, unless the parser continued after the call.
            start = text.find(own, max(position - len(own), 0))
            return Broken(name, start, position, start + len(own), status) if start >= 0 else None
        case ToolCallFinished(index=index, position=end):
            # If a call has no start event, it started in the prefill.
            start, name = starts.get(index, -prefill), parser.message.tool_calls[index].name
            return Broken(name, start, end, end, "complete")
    return None


def _with_later(broken: Broken, events: Sequence[Event], parser: Parser, text: str) -> Broken:
    """Return a broken call with the calls in the events after it."""
    finished = [parser.message.tool_calls[event.index] for event in events if isinstance(event, ToolCallFinished)]
    complete = [call for call in finished if call.status == "complete" and not call.problems()]
    failed = any(isinstance(event, Malformed) and event.call is not None for event in events)
    # The parser stops reading a call at its error. The rest of the call's text may contain further arguments.
    starts = (event.position for event in events if isinstance(event, ToolCallStarted))
    return replace(
        broken,
        over=max(broken.stop, next(starts, len(text))),
        later=tuple((call.name, call.arguments or {}, call.id) for call in complete[:MAX_FEW]),
        further=failed or len(complete) < len(finished) or len(complete) > MAX_FEW,
    )
