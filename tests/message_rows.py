"""Rows of `tests/corpus/messages.jsonl`: input from clients, and what is read from it.

`read` selects the kind of `given`: `messages`, their `content` (with the ignored parameters), `tools` (also in the
`forms of tools` of SDKs), a `tool_choice`
(with the tools `f` and `g`), `allowed_tools` among them, a `response_format`, the `arguments` of an earlier call, or a
conversation that is rewritten: by a concession with these words, or with its calls or results as text. A row has the
result in `gives`, or the `error`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from unrender import RequestError
from unrender.conversation.concede import CONCESSIONS, MOVES, Concession, write_calls, write_results
from unrender.conversation.messages import Conversation, SaidCall, conversation_of, read_messages, values_of
from unrender.conversation.tools import plain_tools
from unrender.format import Format
from unrender.messages import (
    read_allowed_tools,
    read_response_schema,
    read_tool_choice,
    read_tools,
)

MESSAGES = Path(__file__).parent / "corpus" / "messages.jsonl"
TOOLS = read_tools([{"name": "f"}, {"name": "g"}])


def allowed(given: Any) -> Any:
    """Return the mode and the names of the allowed tools."""
    mode, tools = read_allowed_tools(given, TOOLS)
    return [mode, [tool.name for tool in tools]]


def content(given: Any) -> Any:
    """Return a conversation in OpenAI's form, for a template with parts of type `note`, and the ignored parameters."""
    conversation, notes = read_messages(given, reads=("note",), keys=("blocks",))
    messages, ignored = plain(conversation), [note.partition(": not shown")[0] for note in notes]
    return [messages, ignored] if ignored else messages


def plain(conversation: Conversation) -> list[dict[str, Any]]:
    """Return a conversation in OpenAI's form."""
    return [
        {"role": said.role, "content": said.content}
        | ({"reasoning_content": said.reasoning} if said.reasoning else {})
        | ({"tool_call_id": said.answers} if said.answers is not None else {})
        | ({"name": said.name} if said.name is not None else {})
        | ({"tool_calls": [_call(call) for call in said.calls]} if said.calls else {})
        | dict(said.rest)
        for said in conversation
    ]


def _call(call: SaidCall) -> dict[str, Any]:
    named = {} if call.id is None else {"id": call.id}
    return {**named, **call.rest, "function": {"name": call.name, "arguments": call.arguments, **call.more}}


def rewritten(concession: Concession) -> Callable[[Any], Any]:
    """Return a function that rewrites messages in OpenAI's form."""
    return lambda given: plain(concession.rewrite(conversation_of(given), Format()))


def calls_as_text(given: Any) -> Any:
    """Return messages with calls written in a named format."""
    name, messages = given
    return plain(write_calls(conversation_of(messages), Format.named(name) if name else Format()))


def earlier_call(given: Any) -> list[Any]:
    """Return the arguments of an earlier call, for a template that takes them as text or not, and the notes."""
    arguments, as_text = given
    call = {"id": "a", "function": {"name": "f", "arguments": arguments}}
    (said,), notes = read_messages([{"role": "assistant", "content": "", "tool_calls": [call]}], as_text=as_text)
    return [said.calls[0].arguments, *notes]


READERS: Mapping[str, Callable[[Any], Any]] = {
    **{concession.words: rewritten(concession) for concession in (*MOVES, *CONCESSIONS)},
    "calls as text": calls_as_text,
    "results as text": lambda given: plain(write_results(conversation_of(given))),
    "earlier call": earlier_call,
    "messages": lambda given: len(read_messages(given)[0]),
    "content": content,
    "forms of tools": plain_tools,
    "tools": lambda given: [tool.to_openai() for tool in read_tools(given)],
    "tool_choice": lambda given: [str(part) for part in read_tool_choice(given, TOOLS)],
    "allowed_tools": allowed,
    "response_format": read_response_schema,
    "arguments": values_of,
}


def read(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row's result, or the error."""
    try:
        return {"gives": READERS[row["read"]](row["given"])}
    except RequestError as error:
        return {"error": str(error)}
