"""Defines options for parsing output that deviates from its format."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from unrender.errors import ParseError
from unrender.machine.events import Malformed
from unrender.messages import Request
from unrender.signatures import checked

UnknownTools = Literal["content", "call"]
CallsInReasoning = Literal["rescue", "ignore"]
CallRelease = Literal["complete", "streamed"]
UndeclaredReasoning = Literal["read", "content"]
FailedCalls = Literal["auto", "apart", "content", "call"]
Repairs = Literal["format", "offered", "none"]


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Rules for parsing ambiguous text. The defaults are for agents that execute calls.

    By default, a call of a tool that wasn't offered is content: it can't be executed, and is usually a quoted example. Models sometimes
    forget the end marker of reasoning, so a call at the end of unclosed reasoning counts. If the reasoning continues after a call, the call
    is part of the reasoning. Reasoning markers at the start of an answer count even if the template has no reasoning, because some models
    reason anyway. Calls are sent when they are complete, so that nobody executes a partial call. Use "streamed" if a grammar guarantees
    valid calls, or to display calls while they are generated.

    Raises `RequestError` for an invalid value. The error names the field.
    """

    unknown_tools: UnknownTools = "content"
    """Treatment of calls of tools that weren't offered. With "content", the text of the call is content, and a `Malformed` event is
    emitted. With "call", the call is returned with `offered=False`, unless it's in another format's syntax, where the text may be HTML or
    JSON.
    """
    calls_in_reasoning: CallsInReasoning = "rescue"
    """Treatment of calls inside unclosed reasoning. With "rescue", a call is buffered, and counts if only end markers follow. With
    "ignore", a call is part of the reasoning.
    """
    tool_calls: CallRelease = "complete"
    """The time at which calls are sent. With "complete", a call is sent once it's complete. With "streamed", a call is sent while it's
    generated. If a streamed call fails, the call stays in the message with its status, and its text isn't repeated.
    """
    failed_calls: FailedCalls = "auto"
    """The place of a failed call's text in the result, unless the call was streamed. With "apart", the text is only in
    `Message.failed_calls` and the `Malformed` event. With "content", the text is also in the content. With "call", the text is returned
    as the arguments of a call with a failed status. Agents can then treat the text like invalid JSON. If such a call is cut off before
    its name, "call" means "apart". With "auto", a call that the token limit cut off is "apart", and any other failed call is "content".
    """
    undeclared_reasoning: UndeclaredReasoning = "read"
    """Treatment of a common reasoning marker at the start of an answer, if the format has no such marker. With "read", the text up to the
    end marker is reasoning, and a `Malformed` event is emitted. With "content", the text and the markers are content.
    """
    repair: Repairs = "format"
    """The damaged calls that are repaired. Each repair emits a `Malformed` event. With "format", calls with missing, repeated, broken or
    misspelled markers are repaired if the result is unambiguous and matches the schema. Calls in other well-known syntaxes count if they
    are the whole answer, undamaged, and match the schemas of offered tools. "offered" also accepts them after other text, if they start a
    line and end the answer, and repairs them. Use "offered" only if calls are confirmed before they run. With "none", calls aren't repaired.
    """


USUAL = Policy()
"""The default policy."""


def instead_of_call(request: Request, name: str) -> str:
    """Return a description of the call that the request requires, if a call of the tool `name` isn't allowed. Otherwise, return "".

    >>> instead_of_call(Request(tool_choice="named", named_tool="now"), "then")
    "a call of 'now'"
    """
    if request.tool_choice == "named" and name != request.named_tool:
        return _wanted(request)
    return ""


def instead_of_silence(request: Request, calls: int) -> str:
    """Return a description of the missing call if an answer with `calls` calls needs one, otherwise ""."""
    return _wanted(request) if not calls and request._call_required else ""


def refuse(events: Iterable[object]) -> None:
    """Raise `ParseError` for the first event that strict parsing doesn't allow."""
    refused = next((event for event in events if isinstance(event, Malformed)), None)
    if refused is not None:
        raise ParseError(refused.position, refused.expected, refused.text)


def _wanted(request: Request) -> str:
    return f"a call of {request.named_tool!r}" if request.named_tool else "a call of one of the tools"
