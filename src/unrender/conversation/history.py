"""Writes histories otherwise, for templates that would drop or refuse them.

Rules:
- A call is written exactly as the format has it, so that the model reads in its history what it is asked to write.
- Results become the user's words. Two messages of the user that would follow each other become one, since many templates
  insist that roles alternate.
- A concession changes how something is said, never what. It is made only after the template has refused, since templates
  know best what their models have seen. Concessions are tried from the smallest to the largest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unrender.conversation.inputs import function_of, message_calls, values_of
from unrender.conversation.shape import said_by_user
from unrender.format import Format, ToolMode
from unrender.formats import declared_formats
from unrender.messages.wire import REASONING_FIELDS
from unrender.values.notations import encode_calls

DEFAULT_FORMAT = "tool-call-json"
"""The declared format that is used when the template writes no calls and none was named."""
Conversation = Sequence[Mapping[str, Any]]
RESULT_OPEN = '<tool_response name="{name}">\n'
RESULT_CLOSE = "\n</tool_response>"
_RESULT_ROLES = ("tool", "function")
_TALKING = ("system", "developer", "user", "assistant")
_TEXTS = ("content", *REASONING_FIELDS)


def write_calls(messages: Sequence[Mapping[str, Any]], format: Format) -> list[Mapping[str, Any]]:
    """Return the conversation with each message's calls as text after its content."""
    written, before = [], 0
    for message in messages:
        written.append(_with_calls_as_text(message, format, before) if message.get("tool_calls") else message)
        before += len(message_calls(message))
    return written


def write_results(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the conversation with results as the user's messages, joined with the user's messages next to them."""
    names = {call.get("id"): function_of(call).get("name") for message in messages for call in message_calls(message)}
    written: list[Mapping[str, Any]] = []
    joins = False
    for message in messages:
        is_result = message.get("role") in _RESULT_ROLES
        said = {"role": "user", "content": _result(message, names)} if is_result else message
        # `result, result, user` becomes one message of the user: many templates insist that roles alternate.
        if joins and said.get("role") == "user":
            said = {**said, "content": _joined(written.pop().get("content"), said.get("content"))}
        written.append(said)
        joins = is_result
    return written


def joined_messages(messages: Conversation, roles: Sequence[str] = ("user",)) -> Conversation:
    """Return the conversation with messages of one role that follow each other as one, for some roles."""
    joined: list[Mapping[str, Any]] = []
    for message in messages:
        last = joined[-1] if joined else {}
        if message.get("role") == last.get("role") in roles:
            texts = {name: _joined(last[name], message[name]) for name in _TEXTS if name in last and name in message}
            calls = [*message_calls(last), *message_calls(message)]
            joined[-1] = {**last, **message, **texts, **({"tool_calls": calls} if calls else {})}
        else:
            joined.append(message)
    return joined


def with_last_words(messages: Sequence[Mapping[str, Any]], words: str) -> list[Mapping[str, Any]]:
    """Return the conversation with words at the end of the user's last message."""
    at = max((i for i, message in enumerate(messages) if message.get("role") == "user"), default=None)
    return [
        {**message, "content": _joined(message.get("content"), words, between=" ")} if i == at else message
        for i, message in enumerate(messages)
    ]


def _with_calls_as_text(message: Mapping[str, Any], format: Format, before: int) -> Mapping[str, Any]:
    content, turn = message.get("content"), format.turn
    functions = [(function_of(call), call.get("id")) for call in message_calls(message)]
    calls = [
        (str(function.get("name")), values_of(function.get("arguments")), str(id or f"call_{at}"))
        for at, (function, id) in enumerate(functions, start=before)
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


# What a template refuses, said otherwise.


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


def _closed(messages: Conversation, format: Format) -> Conversation:
    """Write the end of reasoning before what earlier answers say: `{{ content.split('</think>')[1] }}` looks for it."""
    end, joint = format.reasoning.end.strip(), format.turn.reasoning_to_content
    written: list[Mapping[str, Any]] = []
    for message in messages:
        said = message.get("content")
        lacks = end and message.get("role") == "assistant" and isinstance(said, str) and said and end not in said
        written.append({**message, "content": f"{end}{joint}{said}"} if lacks else message)
    return written


def _in_words(messages: Conversation, format: Format) -> Conversation:
    """Write calls and results as text."""
    if format.tools.mode is ToolMode.NONE:
        format = next(declared.format for declared in declared_formats() if declared.name == DEFAULT_FORMAT)
    return joined_messages(write_calls(write_results(messages), format))


def _as_text(messages: Conversation, _: Format) -> Conversation:
    """Write contents that are texts in parts as one text."""
    written = []
    for message in messages:
        parts = message["content"] if isinstance(message.get("content"), list) else ()
        is_text = bool(parts) and all(isinstance(part, Mapping) and part.get("type") == "text" for part in parts)
        text = "".join(str(part.get("text", "")) for part in parts) if is_text else ""
        written.append({**message, "content": text} if is_text else message)
    return written


def _developed(messages: Conversation, _: Format) -> Conversation:
    """Make the developer the system, and one message of what they say one after the other."""
    said = [{**m, "role": "system"} if m.get("role") == "developer" else m for m in messages]
    return joined_messages(said, ("system",))


def _begun_by_system(messages: Conversation, _: Format) -> Conversation:
    """Give the user all that the system says later than at the beginning."""
    begun = next((i for i, m in enumerate(messages) if m.get("role") != "system"), len(messages))
    # `answer, system, answer, user`: the answers meet where the system has said something between them.
    return joined_messages([*messages[:begun], *said_by_user(messages[begun:])], _TALKING)


def _asked(messages: Conversation, _: Format) -> Conversation:
    """Put an empty question before an answer that nobody asked for, and after an answer that comes last."""
    begun = next((i for i, m in enumerate(messages) if m.get("role") not in ("system", "developer")), len(messages))
    answers = [m.get("role") == "assistant" for m in messages[begun:]] or [True, False]
    asked = [{"role": "user", "content": ""}]
    return [*messages[:begun], *asked * answers[0], *messages[begun:], *asked * answers[-1]]


MOVES = (
    Concession(words="texts in parts are one text", rewrite=_as_text),
    Concession(
        words="messages of one role in a row are one message",
        rewrite=lambda messages, _: joined_messages(messages, _TALKING),
    ),
    Concession(words="the developer is the system", rewrite=_developed),
    Concession(words="later words of the system are the user's", rewrite=_begun_by_system),
    Concession(words="an empty question is added", rewrite=_asked),
    Concession(words="results that answer no call are the user's words", rewrite=_without_orphans),
    Concession(words="the system's words are the user's", rewrite=lambda messages, _: said_by_user(messages)),
)
"""Concessions that change where something is said, or who says it."""
CONCESSIONS = (
    Concession(words="the ids of calls are replaced by nine letters and digits", rewrite=_with_ids),
    Concession(words="earlier answers begin with the end of reasoning", rewrite=_closed),
    Concession(words="the reasoning of earlier answers is left out", rewrite=_without_thoughts),
    Concession(words="answers that say nothing are left out", rewrite=_without_silence),
    Concession(words="calls and results of earlier turns are written as text", rewrite=_in_words),
)
"""Each is tried alone, in this order; then all of them together."""
