"""Writes the assistant's message that is to be continued as the text that the model has already written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from unrender.errors import MessageError
from unrender.format import ContentMode, Format, ReasoningMode
from unrender.messages.wire import REASONING_FIELDS, Request

Continued = Literal["content", "reasoning", True]


def begun_text(
    message: Mapping[str, Any], format: Format | None, request: Request, continued: Continued, *, where: str
) -> str:
    """Return what the model has already written when the message's content or reasoning is to be continued.

    Without a format it is the bare content, since nobody knows what surrounds it. Raises `MessageError`, naming
    `where`, for a message that cannot be continued so.
    """
    if continued not in (True, "content", "reasoning"):
        raise MessageError(f"continue_final_message: expected 'content' or 'reasoning', found {continued!r}")
    if message["role"] != "assistant":
        raise MessageError(f"{where}.role: expected the assistant's message to continue, found {message['role']!r}")
    if message.get("tool_calls"):
        raise MessageError(f"{where}.tool_calls: expected a message without calls to continue")
    reasoning = next((message[name] for name in REASONING_FIELDS if isinstance(message.get(name), str)), "")
    content = message.get("content") or ""
    if not isinstance(content, str):
        raise MessageError(f"{where}.content: expected text to continue, found {type(content).__name__}")
    if format is None:
        if continued == "reasoning" or reasoning:
            raise MessageError(f"{where}: with a grammar made by hand only content can be continued, found reasoning")
        return content
    if continued == "reasoning":
        return _begun_reasoning(reasoning, content, format, where=where)
    # Where the caller keeps reasoning, markers included, in the content, it is there already.
    before = "" if request.reasoning_format == "none" else _reasoning_before(reasoning, format)
    return (before or format.turn.start_to_content) + _wrapper_before(before, reasoning, format) + content


def _begun_reasoning(reasoning: str, content: str, format: Format, *, where: str) -> str:
    if not format.reasoning.end:
        raise MessageError(f"{where}: the template writes no reasoning that could be continued")
    if content:
        raise MessageError(f"{where}.content: expected nothing after the reasoning to continue, found {content!r:.60}")
    return _opening(format) + reasoning


def _opening(format: Format) -> str:
    """Return what begins reasoning: its opener or, when it has none, the words that the prompt writes instead."""
    unmarked = format.reasoning.mode is ReasoningMode.DELIMITER
    return format.reasoning.start or (format.turn.prefill if unmarked else "")


def _reasoning_before(reasoning: str, format: Format) -> str:
    """Return what is between header and content: the reasoning, or what is written when there is none."""
    markers, turn = format.reasoning, format.turn
    if not markers.end:
        return ""
    closing = markers.end + turn.reasoning_to_content
    if reasoning:
        return markers.start + reasoning + closing
    opening = _opening(format).strip()
    for empty in (turn.prefill_no_thinking, markers.empty):
        if empty and (opening not in empty or markers.closed_in(empty)):
            return _joined(empty, markers.end.strip(), turn.reasoning_to_content)
    # Where the prompt opens reasoning whatever it is told, what it opened has to be closed.
    return _opening(format) + closing if opening and opening in turn.prefill else ""


def _joined(empty: str, end: str, joint: str) -> str:
    """Return what is written for no reasoning; after an empty block with the joint, of which it may hold a beginning."""
    before, closer, _ = empty.rpartition(end)
    whole = before + closer + joint
    return whole if closer and whole.startswith(empty) else empty


def _wrapper_before(before: str, reasoning: str, format: Format) -> str:
    """Return what opens the content's wrapper, unless it is open already, or is only written after reasoning."""
    wrapper = format.content
    if wrapper.mode is ContentMode.WRAPPED_WITH_REASONING and not reasoning:
        return ""
    return "" if before.endswith(wrapper.start) else wrapper.start
