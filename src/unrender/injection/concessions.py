"""Rewrites histories that a template refuses, in steps from the smallest to the largest.

Rules: a step changes how something is said, never what. It changes nothing in a conversation that does not need it, and is
made only after the template has refused, since templates know best what their models have seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unrender.format import Format, ToolMode
from unrender.formats import declared_formats
from unrender.injection.history import joined_messages, write_calls, write_results
from unrender.injection.plan import DEFAULT_FORMAT
from unrender.messages.wire import REASONING_FIELDS

Conversation = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Concession:
    """One way to say a conversation otherwise."""

    words: str
    """What is done, for a warning."""
    rewrite: Callable[[Conversation, Format], Conversation]


def _with_ids(messages: Conversation, _: Format) -> Conversation:
    """Give calls ids of nine letters and digits, the strictest form that templates ask for, and results those of their calls.

    A result without an id answers the first call that has had no result.
    """
    renamed: dict[str, str] = {}
    waiting: list[str] = []
    written: list[Mapping[str, Any]] = []
    count = 0
    for message in messages:
        if calls := message.get("tool_calls"):
            waiting = [f"call{number:05}" for number in range(count, count + len(calls))]
            count += len(calls)
            renamed |= {str(call.get("id")): id for call, id in zip(calls, waiting, strict=True)}
            calls = [{**call, "id": id} for call, id in zip(calls, waiting, strict=True)]
            written.append({**message, "tool_calls": calls})
        elif message.get("role") == "tool" and (id := renamed.get(str(message.get("tool_call_id")))):
            id = waiting[0] if waiting and not message.get("tool_call_id") else id
            waiting = [other for other in waiting if other != id]
            written.append({**message, "tool_call_id": id})
        else:
            written.append(message)
    return written


def _without_orphans(messages: Conversation, _: Format) -> Conversation:
    """Make results that answer no call before them the user's words."""
    called: set[str] = set()
    written: list[Mapping[str, Any]] = []
    for message in messages:
        called.update(str(call.get("id")) for call in message.get("tool_calls") or ())
        orphaned = message.get("role") == "tool" and str(message.get("tool_call_id")) not in called
        written.extend(write_results([message]) if orphaned else [message])
    return joined_messages(written)


def _without_silence(messages: Conversation, _: Format) -> Conversation:
    """Leave out answers in which nothing is said."""
    telling = ("content", "tool_calls", *REASONING_FIELDS)
    said = [m for m in messages if m.get("role") != "assistant" or any(m.get(name) for name in telling)]
    return joined_messages(said)


def _without_thoughts(messages: Conversation, _: Format) -> Conversation:
    """Leave out the reasoning of earlier answers."""
    return [{name: value for name, value in m.items() if name not in REASONING_FIELDS} for m in messages]


def _in_words(messages: Conversation, format: Format) -> Conversation:
    """Write calls and results as text."""
    if format.tools.mode is ToolMode.NONE:
        format = next(declared.format for declared in declared_formats() if declared.name == DEFAULT_FORMAT)
    return joined_messages(write_calls(write_results(messages), format))


CONCESSIONS = (
    Concession(words="the ids of calls are replaced by nine letters and digits", rewrite=_with_ids),
    Concession(words="results that answer no call are the user's words", rewrite=_without_orphans),
    Concession(words="the reasoning of earlier answers is left out", rewrite=_without_thoughts),
    Concession(words="answers that say nothing are left out", rewrite=_without_silence),
    Concession(words="calls and results of earlier turns are written as text", rewrite=_in_words),
)
"""Each is tried alone, in this order; then all of them together."""
