"""Writes calls and results of earlier turns as text, for templates that would drop them.

Rules: a call is written exactly as the format has it, so that the model reads in its history what it is asked to write.
Results become the user's words; where two messages of the user would follow each other they become one, since many
templates insist that roles alternate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unrender.format import Format
from unrender.messages.earlier_calls import values_of
from unrender.values.notations import encode_calls

RESULT_OPEN = '<tool_response name="{name}">\n'
RESULT_CLOSE = "\n</tool_response>"
_RESULT_ROLES = ("tool", "function")


def write_calls(messages: Sequence[Mapping[str, Any]], format: Format) -> list[Mapping[str, Any]]:
    """Return the conversation with each message's calls as text after its content."""
    written, before = [], 0
    for message in messages:
        written.append(_with_calls_as_text(message, format, before) if message.get("tool_calls") else message)
        before += len(_calls(message))
    return written


def write_results(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the conversation with results as the user's messages, joined with the user's messages next to them."""
    names = {call.get("id"): _function(call).get("name") for message in messages for call in _calls(message)}
    written: list[Mapping[str, Any]] = []
    joins = False
    for message in messages:
        is_result = message.get("role") in _RESULT_ROLES
        said = {"role": "user", "content": _result(message, names)} if is_result else message
        if joins and said.get("role") == "user":
            said = {**said, "content": _joined(written.pop().get("content"), said.get("content"))}
        written.append(said)
        joins = is_result
    return written


def joined_messages(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the conversation with messages of the user that follow each other as one."""
    joined: list[Mapping[str, Any]] = []
    for message in messages:
        if joined and message.get("role") == joined[-1].get("role") == "user":
            joined[-1] = {**message, "content": _joined(joined[-1].get("content"), message.get("content"))}
        else:
            joined.append(message)
    return joined


def _with_calls_as_text(message: Mapping[str, Any], format: Format, before: int) -> Mapping[str, Any]:
    content, turn = message.get("content"), format.turn
    calls = [
        (
            str(_function(call).get("name")),
            values_of(_function(call).get("arguments")),
            str(call.get("id") or f"call_{i}"),
        )
        for i, call in enumerate(_calls(message), start=before)
    ]
    # A counter that is part of an id counts the calls of the conversation, any other those of the answer.
    first = before if format.tools.id_parts else 0
    text = (turn.content_to_tools if content else turn.start_to_tools) + encode_calls(calls, format.tools, first=first)
    kept = {key: value for key, value in message.items() if key != "tool_calls"}
    return kept | {"content": _joined(content, text, between="")}


def _result(message: Mapping[str, Any], names: Mapping[Any, Any]) -> Any:
    name = message.get("name") or names.get(message.get("tool_call_id")) or ""
    opened = RESULT_OPEN.format(name=name)
    return _joined(_joined(opened, message.get("content"), between=""), RESULT_CLOSE, between="")


def _joined(first: Any, second: Any, *, between: str = "\n") -> Any:
    """Return two contents as one, as text where both are."""
    if isinstance(first, str | None) and isinstance(second, str | None):
        return between.join(text for text in (first, second) if text)
    return [*_parts(first), *_parts(between), *_parts(second)]


def _parts(content: Any) -> list[Any]:
    if isinstance(content, str | None):
        return [{"type": "text", "text": content}] if content else []
    return list(content)


def _calls(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return [call for call in message.get("tool_calls") or () if isinstance(call, Mapping)]


def _function(call: Mapping[str, Any]) -> Mapping[str, Any]:
    function = call.get("function", call)
    return function if isinstance(function, Mapping) else {}
