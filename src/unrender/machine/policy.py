"""Defines what a caller may decide about deviations that can be read in two ways."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args, get_type_hints

from unrender.errors import ParseError
from unrender.machine.events import Malformed
from unrender.messages.wire import Request

UnknownTools = Literal["content", "call"]
CallsInReasoning = Literal["rescue", "ignore"]
CallRelease = Literal["complete", "streamed"]
UndeclaredReasoning = Literal["read", "content"]
FailedCalls = Literal["auto", "apart", "content", "call"]
Repairs = Literal["format", "offered", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Rules for reading text that can mean two things. The defaults serve agents that execute the calls they get.

    A call of a tool that nobody offered cannot be executed, and is most often a quoted example: it is content. A call
    at the very end of open reasoning is what models write when they forget the closer, and would be lost if ignored. A
    call inside reasoning that goes on is the model thinking aloud. Models that were trained to think do so even if
    their template has no reasoning, and answers begin with such markers for no other reason. A call waits until it is
    complete, so that nobody executes half of one. Callers whose grammar guarantees the calls, or who want to show them
    while they are written, ask for them as written.

    Raises `ValueError`, naming the field, for a word that the field does not have.
    """

    unknown_tools: UnknownTools = "content"
    """Treatment of a call of a tool that was not offered. "content": as content, byte for byte, with a `Malformed` event.
    "call": as a call whose `offered` is False."""
    calls_in_reasoning: CallsInReasoning = "rescue"
    """Treatment of a call inside reasoning that was never closed. "rescue": as a call when nothing but closers follow it;
    until then it is held back. "ignore": as reasoning."""
    tool_calls: CallRelease = "complete"
    """The time to give a call. "complete": when it is complete. "streamed": as it is written; a call that fails then stays in
    the message with its status, and its text is not given a second time."""
    failed_calls: FailedCalls = "auto"
    """The place for the text of a call that cannot be completed, if the call was not given as it was written. "apart": in
    `Message.failed_calls` and in the `Malformed` event alone. "content": in the content as well. "call": in a call whose
    arguments are this text, with its status, so that an agent answers it as it answers arguments that are no JSON; one
    that was cut off before its name is apart. "auto": apart where the token limit cut the call off, else in the content."""
    undeclared_reasoning: UndeclaredReasoning = "read"
    """Treatment of a common marker of reasoning at the start of an answer when the format does not have it. "read": as
    reasoning, up to its closing marker, with a `Malformed` event. "content": as content, markers included."""
    repair: Repairs = "format"
    """Damaged calls that are repaired, each with a `Malformed` event. "format": those whose markers are missing, doubled, torn or spelt
    another way, where the rest of the format's markers leaves one reading, and the call fits its schema. "offered": also calls in the
    syntax of another well-known format, where they begin a line, end the answer, and fit the schema of an offered tool: for callers
    who show what they run, or ask before. "none": none."""

    def __post_init__(self) -> None:
        for field, words in _WORDS.items():
            given = getattr(self, field)
            if given not in words:
                raise ValueError(f"{field}: expected one of {', '.join(words)}, found {given!r:.60}")


_WORDS: Mapping[str, tuple[str, ...]] = {name: get_args(kind) for name, kind in get_type_hints(Policy).items()}
"""The words of each field."""
USUAL = Policy()
"""The policy where nobody says otherwise."""


def instead_of_call(request: Request, name: str) -> str:
    """Return what the request wanted instead of a call of tool `name`; "" when the call is as wanted.

    >>> instead_of_call(Request(tool_choice="named", named_tool="now"), "then")
    "a call of 'now'"
    """
    if request.tool_choice == "named" and name != request.named_tool:
        return _wanted(request)
    return ""


def instead_of_silence(request: Request, calls: int) -> str:
    """Return what the request wanted instead of an answer with only `calls` calls; "" when it is as wanted."""
    return _wanted(request) if not calls and request._call_required else ""


def refuse(events: Iterable[object]) -> None:
    """Raise `ParseError` for the first event that a strict parser refuses."""
    refused = next((event for event in events if isinstance(event, Malformed)), None)
    if refused is not None:
        raise ParseError(refused.position, refused.expected, refused.text)


def _wanted(request: Request) -> str:
    return f"a call of {request.named_tool!r}" if request.named_tool else "a call of one of the tools"
