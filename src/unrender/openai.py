"""Converts events and messages to OpenAI's Chat Completions format, as stream chunks or as one completion.

Source: https://platform.openai.com/docs/api-reference/chat (objects `chat.completion` and `chat.completion.chunk`). Rules: the finish
reason is "tool_calls" exactly if there's a call to execute. Merging the chunks of a stream gives the completion. At run time, responses are
plain dicts. The `TypedDict` types are only for type checkers.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, TypedDict

from unrender.machine import (
    ArgumentsText,
    ContentText,
    Event,
    ReasoningText,
    ToolCallFinished,
    ToolCallStarted,
)
from unrender.messages import Message, MessageBody, MessageFields, ReasoningField, ToolBody, ToolCallBody
from unrender.parser.message import message_of
from unrender.signatures import checked

__all__ = [
    "ChoiceStream",
    "ChunkBody",
    "Completion",
    "CompletionBody",
    "Delta",
    "MessageBody",
    "ToolBody",
    "ToolCallBody",
    "Usage",
    "deltas",
    "message_of",
]

FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]


class FunctionDelta(TypedDict):
    """A fragment of a call's arguments. The first fragment of a call includes the name."""

    name: NotRequired[str]
    arguments: str


class ToolCallDelta(TypedDict):
    """A fragment of a call. The first fragment includes the id and the type."""

    index: int
    id: NotRequired[str]
    type: NotRequired[Literal["function"]]
    function: FunctionDelta
    status: NotRequired[str]


class Delta(TypedDict, total=False):
    """A fragment of a streamed message."""

    role: Literal["assistant"]
    content: str
    reasoning_content: str
    reasoning: str
    tool_calls: list[ToolCallDelta]


class UsageBody(TypedDict):
    """Token counts of an answer."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    completion_tokens_details: NotRequired[dict[str, int]]
    prompt_tokens_details: NotRequired[dict[str, int]]


class ChoiceMessage(MessageFields):
    """The message of a complete answer. If there are calls, empty content is None."""

    role: Literal["assistant"]
    content: str | None
    refusal: None


class ChoiceBody(TypedDict):
    """A choice of a complete answer."""

    index: int
    message: ChoiceMessage
    logprobs: dict[str, Any] | None
    finish_reason: FinishReason


class _Head(TypedDict):
    id: str
    created: int
    model: str


class CompletionBody(_Head):
    """A `chat.completion`."""

    object: Literal["chat.completion"]
    choices: list[ChoiceBody]
    usage: UsageBody | None


class ChunkChoice(TypedDict):
    """A choice in a chunk. The last chunk of an answer contains the finish reason."""

    index: int
    delta: Delta
    logprobs: dict[str, Any] | None
    finish_reason: str | None


class ChunkBody(_Head):
    """A `chat.completion.chunk`."""

    object: Literal["chat.completion.chunk"]
    choices: list[ChunkChoice]
    usage: NotRequired[UsageBody]


_KEPT: Mapping[str | None, FinishReason] = {
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
}
"""Maps those finish reasons of engines that don't depend on the message to OpenAI's finish reasons."""


def finish_reason(message: Message, reason: str | None = None) -> FinishReason:
    """Return OpenAI's finish reason for a finished answer. `reason` is the engine's own finish reason, or None.

    >>> finish_reason(Message(content="Hi"), "tool_calls")
    'stop'
    """
    kept = _KEPT.get(reason)
    if kept is not None:
        return kept
    complete = any(call.status == "complete" for call in message.tool_calls)
    return "tool_calls" if complete else "stop"


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts of an answer, as reported by its engine."""

    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int | None = None
    """Number of completion tokens that are reasoning, or None if they weren't counted."""
    cached_tokens: int | None = None
    """Number of prompt tokens that came from a cache, or None if they weren't counted."""

    def to_openai(self) -> UsageBody:
        """Return the token counts as the `usage` object of a response."""
        body: UsageBody = {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
        }
        if self.reasoning_tokens is not None:
            body["completion_tokens_details"] = {"reasoning_tokens": self.reasoning_tokens}
        if self.cached_tokens is not None:
            body["prompt_tokens_details"] = {"cached_tokens": self.cached_tokens}
        return body


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The common fields of all responses to one request: everything in a `chat.completion` except its choices."""

    model: str
    id: str = field(default_factory=lambda: f"chatcmpl-{secrets.token_hex(12)}")
    created: int = field(default_factory=lambda: int(time.time()))
    """Unix timestamp in seconds."""
    reasoning_field: ReasoningField = "reasoning_content"
    """The name of the reasoning field; vLLM and OpenRouter use `reasoning`."""

    @checked
    def body(
        self, messages: Iterable[Message], *, reasons: Iterable[str | None] = (), usage: Usage | None = None
    ) -> CompletionBody:
        """Return the `chat.completion` for finished messages, with one choice per message.

        `reasons` are the engine's finish reasons in the order of the choices. If there are fewer reasons than messages, the missing ones
        count as None.
        """
        said = iter(reasons)
        choices = [self._choice(index, message, next(said, None)) for index, message in enumerate(messages)]
        return {
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": choices,
            "usage": usage.to_openai() if usage else None,
        }

    def _choice(self, index: int, message: Message, reason: str | None) -> ChoiceBody:
        said = message.to_openai(reasoning_field=self.reasoning_field)
        body: ChoiceMessage = {**said, "refusal": None}
        # If there are calls, OpenAI sends null instead of empty content.
        if "tool_calls" in said and not said["content"]:
            body["content"] = None
        return {"index": index, "message": body, "logprobs": None, "finish_reason": finish_reason(message, reason)}

    @checked
    def choice(self, index: int = 0) -> ChoiceStream:
        """Return the stream of one choice."""
        return ChoiceStream(self, index)

    @checked
    def usage_chunk(self, usage: Usage) -> ChunkBody:
        """Return the usage chunk, which ends a stream with `stream_options.include_usage` and has no choices."""
        return {**self._chunk([]), "usage": usage.to_openai()}

    @checked
    def chunk(self, index: int, delta: Delta, reason: str | None = None) -> ChunkBody:
        """Return one `chat.completion.chunk`."""
        return self._delta_chunk(index, delta, reason)

    def _delta_chunk(self, index: int, delta: Delta, reason: str | None = None) -> ChunkBody:
        choice: ChunkChoice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}
        return self._chunk([choice])

    def _chunk(self, choices: list[ChunkChoice]) -> ChunkBody:
        kind: Literal["chat.completion.chunk"] = "chat.completion.chunk"
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": choices}


@checked
class ChoiceStream:
    """The chunks of one choice: the role first, then a chunk for each delta, and finally the finish reason.

    >>> from unrender.machine import ContentText
    >>> stream = Completion(model="m", id="chatcmpl-1", created=0).choice()
    >>> [chunk["choices"][0]["delta"] for chunk in stream.chunks([ContentText("Hi")])]
    [{'role': 'assistant', 'content': ''}, {'content': 'Hi'}]
    """

    __slots__ = ("_begun", "_completion", "_index")

    def __init__(self, completion: Completion, index: int) -> None:
        self._completion = completion
        self._index = index
        self._begun = False

    @checked
    def chunks(self, events: Iterable[Event]) -> Iterator[ChunkBody]:
        """Yield the chunks for more events. The first time this method is called, the chunk for the role comes first."""
        yield from self._begin()
        field = self._completion.reasoning_field
        for delta in _deltas(events, field):
            yield self._completion._delta_chunk(self._index, delta)

    @checked
    def end(self, message: Message, reason: str | None = None) -> Iterator[ChunkBody]:
        """Yield the last chunk. `message` is the finished message, and `reason` is the engine's finish reason."""
        yield from self._begin()
        yield self._completion._delta_chunk(self._index, {}, finish_reason(message, reason))

    def _begin(self) -> Iterator[ChunkBody]:
        if not self._begun:
            self._begun = True
            yield self._completion._delta_chunk(self._index, {"role": "assistant", "content": ""})


@checked
def deltas(events: Iterable[Event], *, reasoning_field: ReasoningField = "reasoning_content") -> Iterator[Delta]:
    """Return one OpenAI delta for each event that needs one.

    The first delta of a call has its id, type and name, and later ones have fragments of its arguments. A streamed call that fails ends
    with a `status`, which OpenAI's API doesn't have. The deltas of a complete answer add up to the result of `Message.to_openai`.

    >>> list(deltas([ContentText("Hi"), ToolCallStarted(0, "abc", "now"), ArgumentsText(0, "{}")]))
    [{'content': 'Hi'}, {'tool_calls': [{'index': 0, 'id': 'abc', 'type': 'function', \
'function': {'name': 'now', 'arguments': ''}}]}, {'tool_calls': [{'index': 0, 'function': {'arguments': '{}'}}]}]
    """
    return _deltas(events, reasoning_field)


def _deltas(events: Iterable[Event], reasoning_field: ReasoningField) -> Iterator[Delta]:
    for event in events:
        match event:
            case ContentText(text):
                yield {"content": text}
            case ReasoningText(text):
                yield {"reasoning": text} if reasoning_field == "reasoning" else {"reasoning_content": text}
            case ToolCallStarted(index, id, name):
                function: FunctionDelta = {"name": name, "arguments": ""}
                yield {"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}
            case ArgumentsText(index, text):
                yield {"tool_calls": [{"index": index, "function": {"arguments": text}}]}
            case ToolCallFinished(index, status) if status != "complete":
                call: ToolCallDelta = {"index": index, "function": {"arguments": ""}, "status": status}
                yield {"tool_calls": [call]}
            case _:
                pass
