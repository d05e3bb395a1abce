"""Defines what a caller may decide about deviations that can be read in two ways."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import cast

from unrender.errors import MalformedOutput
from unrender.machine.events import Malformed
from unrender.messages.wire import Request, ToolChoice


class UnknownTools(StrEnum):
    """How to treat a call of a tool that was not offered."""

    CONTENT = "content"
    """Content, byte for byte, with a `Malformed` event."""
    CALL = "call"
    """A call whose `known` is False."""


class CallsInReasoning(StrEnum):
    """How to treat a call inside reasoning that was never closed."""

    RESCUE = "rescue"
    """A call when nothing but closers follow it: the model forgot to close its reasoning. Until then it is held back."""
    IGNORE = "ignore"
    """Reasoning."""


class UndeclaredReasoning(StrEnum):
    """How to treat a common marker of reasoning at the start of an answer when the format does not have it."""

    READ = "read"
    """Reasoning, up to its closing marker, with a `Malformed` event."""
    CONTENT = "content"
    """Content, markers included."""


class CallRelease(StrEnum):
    """When a call is given to the caller, and so what becomes of a failed one.

    A failed call was begun and cannot be completed: it breaks, or the output ends in it.
    """

    COMPLETE = "complete"
    """When it is complete. The text of a failed call is content, byte for byte, and the call is not in the message."""
    WRITTEN = "written"
    """As it is written. A failed call stays in the message with its status, and its text is not given a second time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How to read text that can mean two things. The defaults serve agents that execute the calls they get.

    A call of a tool that nobody offered cannot be executed, and is most often a quoted example: it is content. A call
    at the very end of open reasoning is what models write when they forget the closer, and would be lost if ignored. A
    call inside reasoning that goes on is the model thinking aloud. Models that were trained to think do so even if
    their template has no reasoning, and answers begin with such markers for no other reason. A call waits until it is
    complete, so that nobody executes half of one. Callers whose grammar guarantees the calls, or who want to show them
    while they are written, ask for them as written.

    A field takes a word as well, e.g. `Policy(calls="written")`. Raises `ValueError`, naming the field, for any other.
    """

    unknown_tools: UnknownTools = UnknownTools.CONTENT
    calls_in_reasoning: CallsInReasoning = CallsInReasoning.RESCUE
    calls: CallRelease = CallRelease.COMPLETE
    undeclared_reasoning: UndeclaredReasoning = UndeclaredReasoning.READ

    def __post_init__(self) -> None:
        for field in fields(self):
            words: type[StrEnum] = type(cast(StrEnum, field.default))
            given = getattr(self, field.name)
            if given not in tuple(words):
                raise ValueError(f"{field.name}: expected one of {', '.join(words)}, found {given!r:.60}")
            object.__setattr__(self, field.name, words(given))


USUAL = Policy()
"""What is read by where nobody says otherwise."""


_OBLIGED = (ToolChoice.REQUIRED, ToolChoice.NAMED)


def instead_of_call(request: Request, index: int, name: str) -> str:
    """Return what the request wanted instead of a call of tool `name` at `index`; "" when the call is as wanted.

    >>> instead_of_call(Request(tool_choice=ToolChoice.NAMED, named_tool="now"), 0, "then")
    "a call of 'now'"
    """
    if index and request.one_call:
        return "no more than one call"
    if request.tool_choice is ToolChoice.NAMED and name != request.named_tool:
        return _wanted(request)
    return ""


def instead_of_silence(request: Request, calls: int) -> str:
    """Return what the request wanted instead of an answer with only `calls` calls; "" when it is as wanted."""
    return _wanted(request) if not calls and request.tool_choice in _OBLIGED else ""


def refuse(events: Iterable[object]) -> None:
    """Raise `MalformedOutput` for the first event that a strict parser refuses."""
    refused = next((event for event in events if isinstance(event, Malformed)), None)
    if refused is not None:
        raise MalformedOutput(refused.position, refused.expected, refused.text)


def _wanted(request: Request) -> str:
    return f"a call of {request.named_tool!r}" if request.named_tool else "a call of one of the tools"
