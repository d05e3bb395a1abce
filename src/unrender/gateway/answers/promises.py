"""Finds what a grammar guarantees of an answer, and which promises of a request an answer without one breaks.

Rule: with a grammar, or with an engine that needs none, nothing is judged: the answer was bound while it was written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum

from unrender import CallRelease, CallStatus, GrammarError, Message, Policy, Request, ToolChoice
from unrender.gateway.answers.turns import Prepared
from unrender.gateway.backends.backend import EngineCapabilities
from unrender.gateway.surfaces.surface import Outcome
from unrender.grammar import conforms

_FORCED = (ToolChoice.REQUIRED, ToolChoice.NAMED)
_NO_CALL = "tool_choice: the model made no call, and no grammar made it"
_NO_JSON = "response_format: the content is not JSON, and no grammar made it so"
_WRONG = "response_format: the content is not what its schema admits, and no grammar made it so"


class Calls(StrEnum):
    """When calls are sent to the client."""

    CERTAIN = "certain"
    """As they are written where a grammar guarantees them, else when they are complete."""
    COMPLETE = "complete"
    """When they are complete."""
    WRITTEN = "written"
    """As they are written: one that breaks stays an incomplete call."""


def reading_policy(prepared: Prepared, engine: EngineCapabilities, calls: Calls) -> Policy:
    """Return the policy by which an answer is read, streamed or not.

    A call is guaranteed where a grammar binds the whole answer: where a trigger decides, or text may come first, the
    model can write what is only read as a call.
    """
    # Where the model may answer in text, a lazy grammar begins only at a trigger: before that, "<tool_call> is how I call"
    # is text that begins like a call, and what was streamed as one cannot be taken back.
    bound = prepared.grammar is not None and prepared.turn.request.tool_choice in _FORCED
    written = calls == Calls.WRITTEN or (calls == Calls.CERTAIN and (bound or engine.obeys))
    return Policy(calls=CallRelease.WRITTEN if written else CallRelease.COMPLETE)


def unbound(prepared: Prepared, engine: EngineCapabilities) -> bool:
    """Return whether the request promises something that nothing makes the engine keep."""
    return not (prepared.grammar or engine.obeys) and any(_promised(prepared.turn.request))


def warnings_of(prepared: Prepared, engine: EngineCapabilities) -> list[str]:
    """Return warnings for the client about promises that the engine is only asked to keep."""
    if not unbound(prepared, engine):
        return []
    return [f"{name}: only asked for, since no grammar binds the engine" for name in _promised(prepared.turn.request)]


def _promised(request: Request) -> Iterator[str]:
    if request.tool_choice in _FORCED:
        yield "tool_choice"
    if request.response_schema is not None:
        yield "response_format"


def lacking(prepared: Prepared, engine: EngineCapabilities, outcome: Outcome) -> tuple[str, ...]:
    """Return the promises that a finished answer breaks, in words for the client.

    It is empty for an answer that was cut off, since its finish reason says that.
    """
    if not unbound(prepared, engine) or outcome.reason == "length":
        return ()
    said = _broken_promise(prepared.turn.request, outcome.message)
    return (said,) if said else ()


def _broken_promise(request: Request, message: Message) -> str:
    called = any(call.status is CallStatus.COMPLETE for call in message.tool_calls)
    if request.tool_choice in _FORCED:
        return "" if called else _NO_CALL
    if called or request.response_schema is None:
        return ""
    try:
        value = json.loads(message.content)
    except (ValueError, RecursionError):
        return _NO_JSON
    try:
        return "" if conforms(value, request.response_schema) else _WRONG
    except (GrammarError, RecursionError):  # by a schema that is none, nothing is judged
        return ""
