"""Types of OpenAI's wire forms, as this library writes them: what type checkers say of messages, deltas and completions.

At run time they are plain dicts. `status` is a field of our own: it is there where a call is not complete.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]


class FunctionCallBody(TypedDict):
    """What is called: the tool's name, and the arguments as JSON text."""

    name: str
    arguments: str


class ToolCallBody(TypedDict):
    """An element of a message's `tool_calls`."""

    id: str
    type: Literal["function"]
    function: FunctionCallBody
    status: NotRequired[str]


class _Said(TypedDict, total=False):
    reasoning_content: str
    reasoning: str
    tool_calls: list[ToolCallBody]


class MessageBody(_Said):
    """An assistant's message, as it is sent back in the next turn."""

    role: Literal["assistant"]
    content: str


class FunctionBody(TypedDict):
    """The function of a tool; `parameters` is a JSON Schema."""

    name: str
    description: str
    parameters: dict[str, Any] | bool


class ToolBody(TypedDict):
    """An element of a request's `tools`."""

    type: Literal["function"]
    function: FunctionBody


class FunctionDelta(TypedDict):
    """A fragment of a call's arguments; the name comes with the first."""

    name: NotRequired[str]
    arguments: str


class ToolCallDelta(TypedDict):
    """A piece of a call; id and type come with the first."""

    index: int
    id: NotRequired[str]
    type: NotRequired[Literal["function"]]
    function: FunctionDelta
    status: NotRequired[str]


class Delta(TypedDict, total=False):
    """A piece of a streamed message."""

    role: Literal["assistant"]
    content: str
    reasoning_content: str
    reasoning: str
    tool_calls: list[ToolCallDelta]


class UsageBody(TypedDict):
    """The tokens of an answer."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    completion_tokens_details: NotRequired[dict[str, int]]
    prompt_tokens_details: NotRequired[dict[str, int]]


class ChoiceMessage(_Said):
    """The message of a whole answer; the content is None beside calls when it is empty."""

    role: Literal["assistant"]
    content: str | None
    refusal: None


class ChoiceBody(TypedDict):
    """A choice of a whole answer."""

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
    """A choice of a chunk; the last of an answer has a finish reason."""

    index: int
    delta: Delta
    logprobs: dict[str, Any] | None
    finish_reason: str | None


class ChunkBody(_Head):
    """A `chat.completion.chunk`."""

    object: Literal["chat.completion.chunk"]
    choices: list[ChunkChoice]
    usage: NotRequired[UsageBody]
