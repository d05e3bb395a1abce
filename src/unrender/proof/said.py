"""Compares an answer with its parsed message, part by part."""

from __future__ import annotations

import json
from typing import Any

from unrender.conversation.messages import Said, SaidCall
from unrender.messages.wire import Message, ToolCall
from unrender.nodes import Role

ALL = frozenset((Role.CONTENT, Role.REASONING, Role.CALL))
"""The parts of an answer."""


def as_message(said: Said) -> Message:
    """Return the message that a correct parser would return for an answer."""
    calls = tuple(
        ToolCall(name=call.name, arguments_json=json.dumps(call.arguments, ensure_ascii=False), id=call.id or "")
        for call in said.calls
    )
    return Message(content=said.content, reasoning=said.reasoning, tool_calls=calls)


def said_by(message: Message) -> Said:
    """Return the parts of a message, without failed calls."""
    calls = tuple(SaidCall(name=call.name, arguments=call.arguments, id=call.id) for call in message.tool_calls)
    return Said(role="assistant", content=message.content, reasoning=message.reasoning, calls=calls)


def misread_parts(meant: Said, message: Message) -> frozenset[Role]:
    """Return the parts in which a message differs from the intended answer. A failed call is always a difference.

    The order of arguments is ignored, because some templates sort them.
    """
    parts = {
        Role.CONTENT: message.content != meant.content,
        Role.REASONING: message.reasoning != meant.reasoning,
        Role.CALL: bool(message.failed_calls) or _calls(meant) != _calls(said_by(message)),
    }
    return frozenset(part for part, differs in parts.items() if differs)


def _calls(said: Said) -> list[Any]:
    # Compare as JSON, because `1`, `1.0` and `true` are equal in Python.
    return [(call.name, json.dumps(call.arguments, sort_keys=True)) for call in said.calls]
