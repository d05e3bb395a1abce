"""Surfaces: the supported APIs. Each reads a request's JSON into an `Ask`, and writes events as frames and as a complete answer.

This module defines the interface that each API implements. Read it first, then `chat`, which is the simplest one. `messages` and `responses` write sequences
of blocks. `tools` reads tools and custom tool calls, and `stored` stores Responses API answers.

Rules: except for `stored`, everything here is synchronous and does no I/O. A complete answer is assembled from the frames of its stream, so
streamed and complete answers use the same code. Every parameter that has no effect is listed in the answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Annotated, Any, NamedTuple

from pydantic import Field

import unrender
from unrender.gateway.failure import Failure, FailureKind, invalid
from unrender.gateway.schema import JsonObject, Whole
from unrender.gateway.surfaces.tools import Tools
from unrender.messages import ReasoningField
from unrender.openai import Usage, finish_reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request in a form that all APIs share, validated as far as possible without the model's template."""

    model: str = ""
    """Model name from the client; "" if there is none."""
    messages: tuple[Any, ...] = ()
    """The conversation in OpenAI's format."""
    tools: tuple[Any, ...] = ()
    tool_choice: Any = None
    parallel_tool_calls: bool = True
    response_format: Any = None
    template: Mapping[str, Any] = field(default_factory=dict)
    """Template variables, e.g. `enable_thinking`."""
    effort: str | None = None
    """Reasoning effort: "none", or one of OpenAI's values."""
    continues: bool = False
    """True if the answer continues the last message, which is the assistant's."""
    stream: bool = False
    include_usage: bool = False
    choices: int = 1
    stop: tuple[str, ...] = ()
    """Stop strings, which end the content, but have no effect in reasoning and arguments."""
    limit: int | None = None
    """Maximum number of generated tokens; None if only the context limits them."""
    sampling: Mapping[str, float] = field(default_factory=dict)
    """`temperature`, `top_p`, …, with the names that OpenAI and the engines share."""
    seed: int | None = None
    logprobs: int | None = None
    """Number of alternatives with log probabilities for each token; None if log probabilities are not requested."""
    token_ids: bool = False
    """True if the answer should contain the token ids of the prompt and the answer."""
    previous: str = ""
    """Id of the completion with the conversation's last answer; "" if the request doesn't say."""
    store: bool | None = None
    """True if the answer should be stored for later requests; None if the request doesn't say."""
    custom: frozenset[str] = frozenset()
    """Names of custom tools, whose only argument, `input`, is free text."""
    unheeded: tuple[str, ...] = ()
    """Paths of ignored parameters, which are listed in the answer."""
    echo: Mapping[str, Any] = field(default_factory=dict)
    """Request fields that the answer repeats."""


Penalty = Annotated[float, Field(ge=-2, le=2)]


class Sampling(JsonObject):
    """Parameters that all APIs share."""

    model: str | None = None
    stream: bool | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1, le=10**9), Whole] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    repetition_penalty: Annotated[float, Field(ge=0, le=100)] | None = None

    @property
    def sampling(self) -> dict[str, float]:
        """Sampling parameters, with the names that OpenAI and the engines share."""
        values = {name: getattr(self, name) for name in STEERS}
        return {name: float(value) for name, value in values.items() if value is not None}

    def ask(self, tools: Tools, unheeded: Sequence[str] = (), **more: Any) -> Ask:
        """Return the request as an `Ask`. `more` contains the fields that each API reads itself."""
        _check_results(more["messages"])
        return Ask(
            model=self.model or "",
            stream=bool(self.stream),
            sampling=self.sampling,
            tools=tuple(tools.functions),
            custom=frozenset(tools.custom),
            unheeded=(*tools.unheeded, *unheeded, *self.unheeded()),
            **more,
        )


STEERS = tuple(name for name in Sampling.model_fields if name not in ("model", "stream"))


def _check_results(messages: Sequence[Any]) -> None:
    """Raise `Failure` for a tool result without a matching earlier call."""
    called: set[str] = set()
    for i, message in enumerate(messages):
        if not isinstance(message, Mapping):
            continue
        calls, id = message.get("tool_calls"), message.get("tool_call_id")
        if isinstance(calls, list):
            called |= {str(call.get("id")) for call in calls if isinstance(call, Mapping)}
        # A result without an id can belong to any earlier call.
        if message.get("role") == "tool" and not (str(id) in called if id else called):
            raise invalid(f"tool result {id!r:.80}: no earlier call has this id", param=f"messages[{i}].role")


class MessageBuilder:
    """Converts a conversation from another API to messages in OpenAI's format."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.unheeded: list[str] = []
        """Paths of ignored parameters."""
        self._names: dict[str, str] = {}
        """Tool name by call id, since tool results contain only the id."""

    def add(self, role: str, content: Any, **more: Any) -> None:
        """Add a message."""
        self.messages.append({"role": role, "content": content, **more})

    def add_parts(self, role: str, said: Sequence[str | Mapping[str, Any]]) -> None:
        """Add a message with several parts: texts, and images made by `image`."""
        parts = [{"type": "text", "text": one} if isinstance(one, str) else one for one in said]
        self.add(role, said[0] if len(said) == 1 and isinstance(said[0], str) else parts)

    def add_result(self, id: str | None, text: str) -> None:
        """Add a tool result."""
        name = {"name": self._names[id or ""]} if (id or "") in self._names else {}
        self.add("tool", text, tool_call_id=id or "", **name)

    def call(self, id: str | None, name: str, arguments: Any) -> dict[str, Any]:
        """Return a call for an assistant message."""
        # Remember the tool's name: a result contains only the call's id, but some templates also print the name.
        self._names[id or ""] = name
        return {"id": id or "", "type": "function", "function": {"name": name, "arguments": arguments}}


def image(url: str) -> dict[str, Any]:
    """Return an image as a message part in OpenAI's format."""
    return {"type": "image_url", "image_url": {"url": url}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceOutcome:
    """Result of one finished choice."""

    message: unrender.Message
    reason: str | None = None
    """Finish reason from the engine; None if there is none."""
    stopped_by: str = ""
    """The client's stop string that ended the content."""
    prompt_ids: tuple[int, ...] = ()
    """Token ids of the prompt, if the request asks for them."""
    token_ids: tuple[int, ...] = ()
    """Token ids that were sampled, including those of markers and of the end of the turn."""
    logprobs: tuple[Mapping[str, Any], ...] = ()
    """Log probabilities of the `token_ids`."""
    warnings: tuple[str, ...] = ()
    """Warnings about requirements of the request that the answer violates."""

    @property
    def finish_reason(self) -> str:
        """Finish reason as defined by OpenAI."""
        return finish_reason(self.message, self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Fields that all frames of an answer share."""

    id: str
    model: str
    created: int
    """Creation time, in seconds since 1970."""
    prompt_tokens: int = 0
    """Number of prompt tokens, if it is known before generation."""
    warnings: tuple[str, ...] = ()
    """Ignored parameters, and other warnings for the client."""
    reasoning_field: ReasoningField = "reasoning_content"
    stored: bool = False
    """True if the answer will be stored for later requests."""


class Surface:
    """One answer in the format of one API, as streamed frames and as a complete body."""

    def __init__(self, ask: Ask, head: Head) -> None:
        self._ask = ask
        self._head = head
        self._outcomes: dict[int, ChoiceOutcome] = {}
        self._usage: Usage | None = None

    @property
    def id(self) -> str:
        """Id of the answer."""
        return self._head.id

    def begin(self) -> bytes:
        """Return the first frames of the answer."""
        raise NotImplementedError

    def frames(self, index: int, events: Sequence[unrender.Event], logprobs: Sequence[Mapping[str, Any]] = ()) -> bytes:
        """Return the frames for more events of a choice. `logprobs` belong to the content in these events."""
        raise NotImplementedError

    def end(self, index: int, outcome: ChoiceOutcome) -> bytes:
        """Return the frames that end a choice."""
        raise NotImplementedError

    def finish(self, usage: Usage) -> bytes:
        """Return the frames that end the answer, after all choices have ended."""
        raise NotImplementedError

    def body(self) -> dict[str, Any]:
        """Return the complete answer. Call this method after `finish`."""
        raise NotImplementedError

    def failed(self, failure: Failure) -> bytes:
        """Return the frames for an error in an answer that has already started."""
        raise NotImplementedError

    def ping(self) -> bytes:
        """Return a frame that keeps a silent connection open: a comment, which clients ignore."""
        return b": ping\n\n"

    def _warnings(self) -> dict[str, list[str]]:
        """Return the `warnings` field, or an empty dict if there are no warnings."""
        said = [*self._head.warnings, *(one for outcome in self._outcomes.values() for one in outcome.warnings)]
        return {"warnings": said} if said else {}


class BlockSurface(Surface):
    """Surface whose answer is a sequence of blocks: texts, reasoning and calls. Only one block is open at a time."""

    content = "text"
    """Kind of a content block."""
    reasoning = "thinking"

    def __init__(self, ask: Ask, head: Head) -> None:
        super().__init__(ask, head)
        self._open = ""
        """Kind of the open block; "" if there is none."""
        self._call = -1
        """Index of the call in the open block; -1 if there is none."""
        self._texts: list[str] = []
        """Texts of the open block's deltas."""

    def frames(self, index: int, events: Sequence[unrender.Event], logprobs: Sequence[Mapping[str, Any]] = ()) -> bytes:  # noqa: ARG002
        """Return a delta for each event, and the start and end of each block."""
        return b"".join([frame for event in events for frame in self._event(event)])

    def _event(self, event: unrender.Event) -> Iterator[bytes]:
        match event:
            case unrender.ContentText(text):
                yield from self._add(self.content, text)
            case unrender.ReasoningText(text):
                yield from self._add(self.reasoning, text)
            case unrender.ToolCallStarted(call, id, name):
                yield from self._start(self._kind_of_call(name), {"id": id, "name": name})
                self._call = call
            # Calls don't overlap. Events of a call that is not open belong to the message that this answer continues.
            case unrender.ArgumentsText(call, text) if call == self._call:
                yield self._delta(text)
            case unrender.ToolCallFinished(call, status) if call == self._call:
                yield from self._stop(complete=status == "complete")
            case _:
                pass

    def end(self, index: int, outcome: ChoiceOutcome) -> bytes:
        """Return the frames that end the open block."""
        self._outcomes[index] = outcome
        return b"".join(self._stop())

    def _add(self, kind: str, text: str) -> Iterator[bytes]:
        """Yield a delta for a block of this kind, after the block's start if it isn't open yet."""
        if self._open != kind:
            yield from self._start(kind, {})
        yield self._delta(text)

    def _start(self, kind: str, call: Mapping[str, str]) -> Iterator[bytes]:
        yield from self._stop()
        self._open = kind
        yield from self._started(kind, call)

    def _stop(self, *, complete: bool = True) -> Iterator[bytes]:
        """End the open block, if there is one. `complete` is False for an incomplete call."""
        kind, text = self._open, "".join(self._texts)
        self._open, self._call, self._texts = "", -1, []
        if kind:
            yield from self._stopped(kind, text, complete=complete)

    def _kind_of_call(self, name: str) -> str:  # noqa: ARG002
        """Return the kind of a block with a call of this tool."""
        return "input_json"

    def _started(self, kind: str, call: Mapping[str, str]) -> Iterator[bytes]:
        """Yield the start of a block. `call` contains the `id` and the `name` of a call; for other blocks, it is empty."""
        raise NotImplementedError

    def _delta(self, text: str) -> bytes:
        """Return the delta for more text of the open block, and add the text to `_texts`."""
        raise NotImplementedError

    def _stopped(self, kind: str, text: str, *, complete: bool) -> Iterator[bytes]:
        """Yield the end of a block, whose deltas add up to `text`."""
        raise NotImplementedError


class Api(NamedTuple):
    """Functions and settings of one API."""

    name: str
    read: Callable[[Any], Ask]
    surface: Callable[[Ask, Head], Surface]
    refusal: Callable[[Failure], dict[str, Any]]
    prefix: str
    """Prefix of response ids."""
    statuses: Mapping[FailureKind, int] = {}
    """HTTP statuses that differ from those of the other APIs."""
    stores: bool = False
    """True if answers of this API can be stored."""
    conversation: str = "messages"
    """Request field that contains the conversation."""
    counts: bool = False
    """True if answers of this API begin with the prompt's token count."""


def json_bytes(text: str) -> bytes:
    """Return a text as JSON. Unpaired surrogates remain escaped, since UTF-8 can't encode them.

    >>> json_bytes("é!").decode()
    '"é!"'
    """
    try:
        return encode_basestring(text).encode()
    except UnicodeEncodeError:
        return encode_basestring_ascii(text).encode()


def event(kind: str, **fields: Any) -> bytes:
    """Return a server-sent event with its type in the event line and in the data, as Anthropic's API and Responses require."""
    data = json.dumps({"type": kind, **fields}, separators=(",", ":"))
    return f"event: {kind}\ndata: {data}\n\n".encode()
