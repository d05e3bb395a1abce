"""OpenAI's Chat Completions: reads a request into an Ask, and writes events as chunks.

Source: https://platform.openai.com/docs/api-reference/chat. Chunks are spliced: of a delta only its text is encoded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from unrender.gateway.ask import EFFORTS, SAMPLING, Ask
from unrender.gateway.failure import Failure, Kind, invalid
from unrender.gateway.fields import Fields
from unrender.gateway.surfaces.surface import Api, Head, Outcome, quoted
from unrender.gateway.surfaces.tools import InputText, custom_arguments, plain_choice, read_tools
from unrender.limits import MOST_CHOICES, MOST_MESSAGES, MOST_STOPS, MOST_TOKENS, MOST_TOP_LOGPROBS
from unrender.machine.events import ArgumentsText, ContentText, Event, ReasoningText, ToolCallFinished, ToolCallStarted
from unrender.messages.wire import CallStatus, ReasoningField
from unrender.parser.completions import Completion, Usage, completion_id, finish_reason

DONE = b"data: [DONE]\n\n"
"""Ends a stream."""
_HOLE = "\0text\0"
"""Stands in a delta where its text will be."""
_HOLE_JSON = json.dumps(_HOLE).encode()
_REFUSED = {
    "chat_template": "a client cannot choose the template",
    "functions": "use `tools`",
    "function_call": "use `tool_choice`",
}


def read(body: Any) -> Ask:
    """Read a request. Raises `Failure` that names the wrong field."""
    fields = Fields.of(body)
    fields.refuse(**_REFUSED)
    tools = read_tools(fields.items("tools", MOST_MESSAGES))
    options = fields.inside("stream_options")
    top = fields.integer("top_logprobs", 0, MOST_TOP_LOGPROBS)
    limits = [fields.integer(name, 1, MOST_TOKENS) for name in ("max_completion_tokens", "max_tokens")]
    fields.without_effect(
        store=False, service_tier="auto", logit_bias={}, metadata={}, modalities=["text"], add_generation_prompt=True
    )
    return Ask(
        model=fields.text("model") or "",
        messages=tuple(map(_message, fields.items("messages", MOST_MESSAGES))),
        tools=tuple(tools.functions),
        custom=frozenset(tools.custom),
        tool_choice=plain_choice(fields.any("tool_choice")),
        parallel_tool_calls=fields.flag("parallel_tool_calls", default=True),
        response_format=fields.any("response_format"),
        template=read_variables(fields),
        effort=fields.word("reasoning_effort", *EFFORTS),
        continues=fields.flag("continue_final_message"),
        stream=fields.flag("stream"),
        include_usage=options.flag("include_usage"),
        choices=fields.integer("n", 1, MOST_CHOICES) or 1,
        stop=fields.texts("stop", MOST_STOPS),
        limit=next((limit for limit in limits if limit), None),
        sampling=read_sampling(fields),
        seed=fields.integer("seed", -(2**63), 2**63),
        logprobs=(top or 0) if fields.flag("logprobs") else None,
        unheeded=(*tools.unheeded, *options.left(), *fields.left()),
    )


def read_variables(fields: Fields) -> dict[str, Any]:
    """Take the template's variables, which vLLM and llama.cpp call `chat_template_kwargs`."""
    given = fields.any("chat_template_kwargs") or {}
    if not isinstance(given, Mapping):
        raise invalid("chat_template_kwargs: expected an object", param="chat_template_kwargs")
    return dict(given)


def read_sampling(fields: Fields) -> dict[str, float]:
    """Take the sampling parameters."""
    found: dict[str, float | None] = {
        name: fields.integer(name, int(low), int(high)) if name == "top_k" else fields.number(name, low, high)
        for name, (low, high) in SAMPLING.items()
    }
    return {name: value for name, value in found.items() if value is not None}


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


class ChatSurface:
    """The chunks of one answer, and the completion that they add up to."""

    def __init__(self, ask: Ask, head: Head) -> None:
        field: ReasoningField = next(name for name in get_args(ReasoningField) if name == head.reasoning_field)
        self._ask = ask
        self._head = head
        self._completion = Completion(model=head.model, id=head.id, created=head.created, reasoning_field=field)
        self._outcomes: dict[int, Outcome] = {}
        self._logprobs: dict[int, list[Mapping[str, Any]]] = {}
        self._usage: Usage | None = None
        self._inputs: dict[tuple[int, int], InputText] = {}
        """Reads the text of each call of a custom tool, by choice and call."""
        self._spliced: dict[tuple[int, str], tuple[bytes, bytes]] = {}

    def begin(self) -> bytes:
        """Return each choice's chunk with the role; the first one carries the warnings."""
        chunks = [self._completion.chunk(i, {"role": "assistant", "content": ""}) for i in range(self._ask.choices)]
        if self._head.warnings:
            chunks[0]["warnings"] = list(self._head.warnings)
        return b"".join(map(frame, chunks))

    def frames(self, index: int, events: Sequence[Event], logprobs: Sequence[Mapping[str, Any]] = ()) -> bytes:
        """Return a chunk for each event that clients are told about."""
        if logprobs:
            self._logprobs.setdefault(index, []).extend(logprobs)
            return self._with_logprobs(index, events, logprobs)
        return b"".join([self._delta(index, event) for event in events])

    def _delta(self, index: int, event: Event) -> bytes:
        if isinstance(event, ContentText):
            before, after = self._splice(index, "content")
        elif isinstance(event, ReasoningText):
            before, after = self._splice(index, "reasoning")
        elif isinstance(event, ArgumentsText) and (index, event.index) not in self._inputs:
            before, after = self._splice(index, str(event.index))
        else:
            return self._rare(index, event)
        return before + quoted(event.text) + after

    def _rare(self, index: int, event: Event) -> bytes:
        call: dict[str, Any]
        if isinstance(event, ToolCallStarted) and event.name in self._ask.custom:
            self._inputs[index, event.index] = InputText()
            call = {"id": event.id, "type": "custom", "custom": {"name": event.name, "input": ""}}
        elif isinstance(event, ToolCallStarted):
            call = {"id": event.id, "type": "function", "function": {"name": event.name, "arguments": ""}}
        elif isinstance(event, ArgumentsText):
            call = {"custom": {"input": self._inputs[index, event.index].feed(event.text)}}
        elif isinstance(event, ToolCallFinished) and event.status is not CallStatus.COMPLETE:
            more: dict[str, Any] = {"custom": {"input": ""}}
            if (index, event.index) not in self._inputs:
                more = {"function": {"arguments": ""}}
            call = {**more, "status": event.status.value}
        else:
            return b""
        return frame(self._completion.chunk(index, {"tool_calls": [{"index": event.index, **call}]}))

    def _splice(self, index: int, what: str) -> tuple[bytes, bytes]:
        """Return the chunk before and after the text of a delta; `what` is a field, or a call's index."""
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

    def _with_logprobs(self, index: int, events: Sequence[Event], logprobs: Sequence[Mapping[str, Any]]) -> bytes:
        """Return the chunks with the log probabilities in the first one of content."""
        first = next((i for i, event in enumerate(events) if isinstance(event, ContentText)), None)
        frames = [self._delta(index, event) for event in events]
        if first is not None:
            event = events[first]
            assert isinstance(event, ContentText)
            chunk = self._completion.chunk(index, {"content": event.text})
            chunk["choices"][0]["logprobs"] = {"content": list(logprobs), "refusal": None}
            frames[first] = frame(chunk)
        return b"".join(frames)

    def end(self, index: int, outcome: Outcome) -> bytes:
        """Return the chunk with the finish reason."""
        self._outcomes[index] = outcome
        chunk = self._completion.chunk(index, {}, finish_reason(outcome.message, outcome.reason))
        return frame(chunk | ({"warnings": list(outcome.warnings)} if outcome.warnings else {}))

    def finish(self, usage: Usage) -> bytes:
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
        warnings = [*self._head.warnings, *(warning for outcome in outcomes for warning in outcome.warnings)]
        return body | ({"warnings": warnings} if warnings else {})

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

    def ping(self) -> bytes:
        """Return a comment, which clients ignore."""
        return b": ping\n\n"


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


CHAT = Api("chat", read, ChatSurface, refusal, completion_id)
