"""OpenAI's Chat Completions: reads a request into an Ask, and writes events as chunks.

Source: https://platform.openai.com/docs/api-reference/chat. Chunks are spliced: of a delta only its text is encoded.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, WithJsonSchema

import unrender
from unrender.gateway.failure import Failure, Kind
from unrender.gateway.schema import Whole, texts
from unrender.gateway.surfaces.ask import Ask
from unrender.gateway.surfaces.requests import (
    FUNCTION_TOOL,
    MESSAGE,
    Choices,
    Effort,
    Limit,
    Many,
    ResponseFormat,
    Sampling,
    Seed,
    Stop,
    StreamOptions,
    ToolChoice,
    with_content,
)
from unrender.gateway.surfaces.surface import Api, Head, Outcome, Surface, quoted
from unrender.gateway.surfaces.tools import InputText, custom_arguments, plain_choice, read_tools
from unrender.limits import MOST_TOP_LOGPROBS

DONE = b"data: [DONE]\n\n"
"""Ends a stream."""
_HOLE = "\0text\0"
"""Stands in a delta where its text will be."""
_HOLE_JSON = json.dumps(_HOLE).encode()


class ChatRequest(Sampling):
    """A request."""

    neutral: ClassVar = {
        "store": False,
        "service_tier": "auto",
        "logit_bias": {},
        "metadata": {},
        "modalities": ["text"],
        "add_generation_prompt": True,
    }

    messages: Annotated[list[Annotated[Any, AfterValidator(with_content), WithJsonSchema(MESSAGE)]], Many]
    tools: Annotated[list[Annotated[Any, WithJsonSchema(FUNCTION_TOOL)]], Many] | None = None
    tool_choice: ToolChoice = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat = None
    chat_template_kwargs: dict[str, Any] | None = None
    reasoning_effort: Effort | None = None
    continue_final_message: bool | None = None
    stream_options: StreamOptions | None = None
    n: Choices | None = None
    stop: Stop | None = None
    max_completion_tokens: Limit | None = None
    max_tokens: Limit | None = None
    seed: Seed | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MOST_TOP_LOGPROBS), Whole] | None = None
    chat_template: None = Field(None, description="a client cannot choose the template")
    functions: None = Field(None, description="use `tools`")
    function_call: None = Field(None, description="use `tool_choice`")


class ParseRequest(ChatRequest):
    """A request, and a text that is read as the answer to it."""

    text: str


def read(body: Any) -> Ask:
    """Read a request. Raises `Failure` that names the wrong field."""
    request = ChatRequest.read(body)
    tools = read_tools(request.tools)
    return Ask(
        model=request.model or "",
        messages=tuple(map(_message, request.messages)),
        tools=tuple(tools.functions),
        custom=frozenset(tools.custom),
        tool_choice=plain_choice(request.tool_choice),
        parallel_tool_calls=request.parallel_tool_calls is not False,
        response_format=request.response_format,
        template=request.chat_template_kwargs or {},
        effort=request.reasoning_effort,
        continues=bool(request.continue_final_message),
        stream=bool(request.stream),
        include_usage=bool(request.stream_options and request.stream_options.include_usage),
        choices=request.n or 1,
        stop=texts(request.stop),
        limit=request.max_completion_tokens or request.max_tokens,
        sampling=request.sampling,
        seed=request.seed,
        logprobs=(request.top_logprobs or 0) if request.logprobs else None,
        unheeded=(*tools.unheeded, *request.unheeded()),
    )


def _message(message: Any) -> Any:
    """Return a message whose calls of custom tools are calls of functions."""
    calls = message.get("tool_calls") if isinstance(message, Mapping) else None
    if not isinstance(calls, list) or not any(isinstance(call, Mapping) and "custom" in call for call in calls):
        return message
    return {**message, "tool_calls": [_plain_call(call) for call in calls]}


def _plain_call(call: Any) -> Any:
    custom = call.get("custom") if isinstance(call, Mapping) else None
    if not isinstance(custom, Mapping):
        return call
    function = {"name": custom.get("name"), "arguments": custom_arguments(str(custom.get("input", "")))}
    return {"id": call.get("id"), "type": "function", "function": function}


class ChatSurface(Surface):
    """The chunks of one answer, and the completion that they add up to."""

    def __init__(self, ask: Ask, head: Head) -> None:
        super().__init__(ask, head)
        self._completion = unrender.Completion(
            model=head.model, id=head.id, created=head.created, reasoning_field=head.reasoning_field
        )
        self._logprobs: dict[int, list[Mapping[str, Any]]] = {}
        self._inputs: dict[tuple[int, int], InputText] = {}
        """Reads the text of each call of a custom tool, by choice and call."""
        self._spliced: dict[tuple[int, str], tuple[bytes, bytes]] = {}

    def begin(self) -> bytes:
        """Return each choice's chunk with the role; the first one carries the warnings."""
        chunks = [self._completion.chunk(i, {"role": "assistant", "content": ""}) for i in range(self._ask.choices)]
        chunks[0] |= self._warnings()
        return b"".join(map(frame, chunks))

    def frames(self, index: int, events: Sequence[unrender.Event], logprobs: Sequence[Mapping[str, Any]] = ()) -> bytes:
        """Return a chunk for each event that clients are told about."""
        if logprobs:
            self._logprobs.setdefault(index, []).extend(logprobs)
            return self._with_logprobs(index, events, logprobs)
        return b"".join([self._delta(index, event) for event in events])

    def _delta(self, index: int, event: unrender.Event) -> bytes:
        kind = type(event)
        if kind is unrender.ContentText:
            before, after = self._splice(index, "content")
        elif kind is unrender.ReasoningText:
            before, after = self._splice(index, "reasoning")
        elif kind is unrender.ArgumentsText and (index, event.index) not in self._inputs:  # type: ignore[union-attr]
            before, after = self._splice(index, str(event.index))  # type: ignore[union-attr]
        else:
            return self._rare(index, event)
        return before + quoted(event.text) + after  # type: ignore[union-attr]

    def _rare(self, index: int, event: unrender.Event) -> bytes:
        call: dict[str, Any]
        if isinstance(event, unrender.ToolCallStarted) and event.name in self._ask.custom:
            self._inputs[index, event.index] = InputText()
            call = {"id": event.id, "type": "custom", "custom": {"name": event.name, "input": ""}}
        elif isinstance(event, unrender.ToolCallStarted):
            call = {"id": event.id, "type": "function", "function": {"name": event.name, "arguments": ""}}
        elif isinstance(event, unrender.ArgumentsText):
            call = {"custom": {"input": self._inputs[index, event.index].feed(event.text)}}
        # A whole call needs no word at its end; one that breaks says how, with empty arguments for clients that add them up.
        elif isinstance(event, unrender.ToolCallFinished) and event.status is not unrender.CallStatus.COMPLETE:
            more: dict[str, Any] = {"custom": {"input": ""}}
            if (index, event.index) not in self._inputs:
                more = {"function": {"arguments": ""}}
            call = {**more, "status": event.status.value}
        else:
            return b""
        return frame(self._completion.chunk(index, {"tool_calls": [{"index": event.index, **call}]}))

    def _splice(self, index: int, what: str) -> tuple[bytes, bytes]:
        """Return the chunk before and after the text of a delta; `what` is a field, or a call's index."""
        # A chunk is the same for every token but for its text, so it is encoded once, with a hole where the text will be:
        # {"id":…,"choices":[{"delta":{"content":HOLE}…}]} is cut there in two.
        found = self._spliced.get((index, what))
        if found is None:
            delta: dict[str, Any] = {"content": _HOLE}
            if what == "reasoning":
                delta = {self._completion.reasoning_field: _HOLE}
            elif what != "content":
                delta = {"tool_calls": [{"index": int(what), "function": {"arguments": _HOLE}}]}
            before, _, after = frame(self._completion.chunk(index, delta)).partition(b":" + _HOLE_JSON)
            found = self._spliced[index, what] = (before + b":", after)
        return found

    def _with_logprobs(
        self, index: int, events: Sequence[unrender.Event], logprobs: Sequence[Mapping[str, Any]]
    ) -> bytes:
        """Return the chunks with the log probabilities in the first one of content."""
        # Log probabilities belong to the content; reasoning and calls in the same piece have none.
        first = next((i for i, event in enumerate(events) if isinstance(event, unrender.ContentText)), None)
        frames = [self._delta(index, event) for event in events]
        if first is not None:
            event = events[first]
            assert isinstance(event, unrender.ContentText)
            chunk = self._completion.chunk(index, {"content": event.text})
            chunk["choices"][0]["logprobs"] = {"content": list(logprobs), "refusal": None}
            frames[first] = frame(chunk)
        return b"".join(frames)

    def end(self, index: int, outcome: Outcome) -> bytes:
        """Return the chunk with the finish reason."""
        self._outcomes[index] = outcome
        chunk = self._completion.chunk(index, {}, unrender.finish_reason(outcome.message, outcome.reason))
        return frame(chunk | ({"warnings": list(outcome.warnings)} if outcome.warnings else {}))

    def finish(self, usage: unrender.Usage) -> bytes:
        """Return the usage, if the request asked for it, and the end of the stream."""
        self._usage = usage
        return (frame(self._completion.usage_chunk(usage)) if self._ask.include_usage else b"") + DONE

    def body(self) -> dict[str, Any]:
        """Return the `chat.completion`."""
        outcomes = [self._outcomes[index] for index in sorted(self._outcomes)]
        reasons = [outcome.reason for outcome in outcomes]
        body = self._completion.body([outcome.message for outcome in outcomes], reasons=reasons, usage=self._usage)
        for choice in body["choices"]:
            choice["message"] = self._with_custom(choice["message"])
            if self._ask.logprobs is not None:
                content = self._logprobs.get(choice["index"], [])
                choice["logprobs"] = {"content": content, "refusal": None}
        return body | self._warnings()

    def _with_custom(self, message: dict[str, Any]) -> dict[str, Any]:
        calls = message.get("tool_calls")
        return (
            {**message, "tool_calls": [self._call(call) for call in calls]} if calls and self._ask.custom else message
        )

    def _call(self, call: dict[str, Any]) -> dict[str, Any]:
        function = call["function"]
        if function["name"] not in self._ask.custom:
            return call
        custom = {"name": function["name"], "input": InputText().feed(function["arguments"])}
        return {name: value for name, value in call.items() if name != "function"} | {
            "type": "custom",
            "custom": custom,
        }

    def failed(self, failure: Failure) -> bytes:
        """Return the error in place of a chunk, and the end of the stream."""
        return frame(refusal(failure)) + DONE


_TYPES = {
    Kind.UNAUTHENTICATED: "authentication_error",
    Kind.BUSY: "overloaded_error",
    Kind.ENGINE: "engine_error",
    Kind.TIMEOUT: "timeout_error",
    Kind.INTERNAL: "server_error",
}


def refusal(failure: Failure) -> dict[str, Any]:
    """Return a failure in the shape of OpenAI's errors."""
    kind = _TYPES.get(failure.kind, "invalid_request_error")
    return {"error": {"message": failure.message, "type": kind, "param": failure.param, "code": failure.code}}


def frame(chunk: Mapping[str, Any]) -> bytes:
    """Return JSON as a server-sent event."""
    return b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n"


def _new_id() -> str:
    return f"chatcmpl-{secrets.token_hex(12)}"


CHAT = Api("chat", ChatRequest, read, ChatSurface, refusal, _new_id)
