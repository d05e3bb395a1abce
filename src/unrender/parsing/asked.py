"""Compares the calls in an answer with what the request asked for, and reports the differences.

Rules: such a call is delivered all the same, since its text is what the format allows; whether it is executed is the caller's
decision. A strict parser refuses it.
"""

from __future__ import annotations

from collections.abc import Iterable

from unrender.errors import MalformedOutput
from unrender.messages import Request, ToolChoice
from unrender.parsing.events import Malformed

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
