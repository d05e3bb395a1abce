"""OpenAI's Chat Completions API: reads a request into an `Ask`, and writes events as chunks.

Source: https://platform.openai.com/docs/api-reference/chat. To save time, only the text of each delta is encoded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, cast

from pydantic import AfterValidator, Field

import unrender
from unrender.gateway.failure import Failure
from unrender.gateway.schema import Effort, JsonObject, Limit, Many, StopField, TopLogprobs, Whole, texts, wrong_field
from unrender.gateway.surfaces import Api, Ask, ChoiceOutcome, Head, Sampling, Surface, json_bytes
from unrender.gateway.surfaces.tools import InputText, check_strict, custom_arguments, plain_choice, read_api_tools
from unrender.limits import MAX_SMALL
from unrender.openai import Completion, Delta, Usage, deltas

_COMPLETE = "complete"
_PREVIOUS = "previous_completion_id"
"""Key of `metadata` for the id of the completion with the conversation's last answer."""
_DONE = b"data: [DONE]\n\n"
"""Last frame of a stream."""
_HOLE = "\0text\0"
"""Placeholder for the text of a delta."""
_HOLE_JSON = json.dumps(_HOLE).encode()


def with_content(message: Any) -> Any:
    """Check a message's content, and return the message. Raises `ValueError` if the content is an object or a number, which templates would
    print.
    """
    content = message.get("content") if isinstance(message, dict) else None
    if content is not None and not isinstance(content, str | list):
        raise ValueError(f"content: expected text, null or a list of parts, found {type(content).__name__}")
    return message


class StreamOptions(JsonObject):
    """Stream options."""

    include_usage: bool | None = None


class ChatRequest(Sampling):
    """A Chat Completions request."""

    neutral: ClassVar = {
        "store": False,
        "service_tier": "auto",
        "logit_bias": {},
        "metadata": {},
        "modalities": ["text"],
        "add_generation_prompt": True,
    }

    messages: Annotated[list[Annotated[Any, AfterValidator(with_content)]], Many]
    tools: Annotated[list[Any], Many] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    response_format: Any = None
    chat_template_kwargs: dict[str, Any] | None = None
    reasoning_effort: Effort | None = None
    continue_final_message: bool | None = None
    n: Annotated[int, Field(ge=1, le=MAX_SMALL), Whole] | None = None
    stop: StopField | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Limit | None = None
    max_completion_tokens: Limit | None = None
    seed: Annotated[int, Field(ge=-(2**63), le=2**63), Whole] | None = None
    return_token_ids: bool | None = None
    logprobs: bool | None = None
    top_logprobs: TopLogprobs | None = None
    chat_template: None = Field(None, description="a client cannot choose the template")
    functions: None = Field(None, description="use `tools`")
    function_call: None = Field(None, description="use `tool_choice`")


def read(body: Any) -> Ask:
    """Read a request. Raises `Failure` with the name of the invalid field."""
    body, previous = _previous(body)
    request = ChatRequest.read(body)
    if request.top_logprobs is not None and not request.logprobs:
        raise wrong_field("logprobs", "true when `top_logprobs` is set", request.logprobs, param="top_logprobs")
    form = request.response_format.get("json_schema") if isinstance(request.response_format, Mapping) else None
    check_strict(form, "response_format.json_schema", param="response_format")
    return request.ask(
        read_api_tools(request.tools),
        messages=tuple(map(_message, request.messages)),
        tool_choice=plain_choice(request.tool_choice),
        parallel_tool_calls=request.parallel_tool_calls is not False,
        response_format=request.response_format,
        template=request.chat_template_kwargs or {},
        effort=request.reasoning_effort,
        continues=bool(request.continue_final_message),
        include_usage=bool(request.stream_options and request.stream_options.include_usage),
        choices=request.n or 1,
        stop=texts(request.stop),
        seed=request.seed,
        limit=request.max_completion_tokens or request.max_tokens,
        logprobs=(request.top_logprobs or 0) if request.logprobs else None,
        token_ids=bool(request.return_token_ids),
        previous=previous,
    )


def _previous(body: Any) -> tuple[Any, str]:
    """Return the request without the id of the last completion, and this id."""
    metadata = body.get("metadata") if isinstance(body, Mapping) else None
    if not isinstance(metadata, Mapping) or not isinstance(id := metadata.get(_PREVIOUS), str):
        return body, ""
    return {**body, "metadata": {name: value for name, value in metadata.items() if name != _PREVIOUS}}, id


def _message(message: Any) -> Any:
    """Return a message with custom tool calls converted to function calls."""
    calls = message.get("tool_calls") if isinstance(message, Mapping) else None
    return {**message, "tool_calls": [_plain_call(call) for call in calls]} if isinstance(calls, list) else message


def _plain_call(call: Any) -> Any:
    custom = call.get("custom") if isinstance(call, Mapping) else None
    if not isinstance(custom, Mapping):
        return call
    # Clients send back custom calls as they received them: `{"custom": {"name": "run", "input": "ls"}}`. Templates only support functions,
    # so convert them.
    function = {"name": custom.get("name"), "arguments": custom_arguments(str(custom.get("input", "")))}
    return {"id": call.get("id"), "type": "function", "function": function}


class ChatSurface(Surface):
    """Writes the chunks of one answer, and the completion that they add up to."""

    def __init__(self, ask: Ask, head: Head) -> None:
        super().__init__(ask, head)
        self._logprobs: dict[int, list[Mapping[str, Any]]] = {}
        self._completion = Completion(
            model=head.model, id=head.id, created=head.created, reasoning_field=head.reasoning_field
        )
        self._inputs: dict[tuple[int, int], InputText] = {}
        """Extractors of the text of custom tool calls, by choice and call."""
        self._spliced: dict[tuple[int, str], tuple[bytes, bytes]] = {}

    def begin(self) -> bytes:
        """Return a chunk with the role for each choice. The first chunk also contains the warnings."""
        role: Delta = {"role": "assistant", "content": ""}
        first, *others = (self._completion.chunk(i, role) for i in range(self._ask.choices))
        return b"".join(map(frame, [{**first, **self._warnings()}, *others]))

    def frames(self, index: int, events: Sequence[unrender.Event], logprobs: Sequence[Mapping[str, Any]] = ()) -> bytes:
        """Return the chunks for more events of a choice."""
        found = [self._delta(index, event) for event in events]
        if not logprobs:
            return b"".join(found)
        self._logprobs.setdefault(index, []).extend(logprobs)
        if self._ask.token_ids:  # The last chunk contains the log probabilities of all ids.
            return b"".join(found)
        # Log probabilities belong to the content, so they are sent with its first chunk. Reasoning and calls have none.
        for i, event in enumerate(events):
            if isinstance(event, unrender.ContentText):
                chunk = self._completion.chunk(index, {"content": event.text})
                chunk["choices"][0]["logprobs"] = {"content": list(logprobs), "refusal": None}
                found[i] = frame(chunk)
                break
        return b"".join(found)

    def _delta(self, index: int, event: unrender.Event) -> bytes:
        if isinstance(event, unrender.ContentText):
            what = "content"
        elif isinstance(event, unrender.ReasoningText):
            what = self._completion.reasoning_field
        elif isinstance(event, unrender.ArgumentsText) and (index, event.index) not in self._inputs:
            what = str(event.index)
        else:
            custom = self._custom(index, event)
            written = [cast(Delta, custom)] if custom else deltas([event])
            return b"".join(frame(self._completion.chunk(index, delta)) for delta in written)
        before, after = self._splice(index, what)
        return before + json_bytes(event.text) + after

    def _custom(self, index: int, event: unrender.Event) -> dict[str, Any] | None:
        """Return the delta for an event in a custom tool call, or None for any other event."""
        call: dict[str, Any]
        match event:
            case unrender.ToolCallStarted(at, id, name) if name in self._ask.custom:
                self._inputs[index, at] = InputText()
                call = {"id": id, "type": "custom", "custom": {"name": name, "input": ""}}
            case unrender.ArgumentsText(at, text):
                call = {"custom": {"input": self._inputs[index, at].feed(text)}}
            # A complete call needs no delta at its end. A broken call reports its status, with empty text for clients that concatenate the
            # deltas.
            case unrender.ToolCallFinished(at, status) if (index, at) in self._inputs and status is not _COMPLETE:
                call = {"custom": {"input": ""}, "status": status}
            case _:
                return None
        return {"tool_calls": [{"index": at, **call}]}

    def _splice(self, index: int, what: str) -> tuple[bytes, bytes]:
        """Return the start and the end of a chunk, without the text between them. `what` is a field name or the index of a call."""
        # Chunks differ only in their text, so they are encoded once, with a placeholder for the text:
        # {"id":…,"choices":[{"delta":{"content":HOLE}…}]} is split at HOLE.
        found = self._spliced.get((index, what))
        if found is None:
            calls = [{"index": int(what), "function": {"arguments": _HOLE}}] if what.isdigit() else None
            delta = cast(Delta, {"tool_calls": calls} if calls else {what: _HOLE})
            before, _, after = frame(self._completion.chunk(index, delta)).partition(_HOLE_JSON)
            found = self._spliced[index, what] = (before, after)
        return found

    def end(self, index: int, outcome: ChoiceOutcome) -> bytes:
        """Return the chunk with the finish reason."""
        self._outcomes[index] = outcome
        chunk: dict[str, Any] = {**self._completion.chunk(index, {}, outcome.finish_reason)}
        if self._ask.token_ids:
            chunk = {**chunk, **self._prompt_ids(), "choices": [{**chunk["choices"][0], **self._ids(outcome)}]}
        return frame({**chunk, "warnings": list(outcome.warnings)} if outcome.warnings else chunk)

    def finish(self, usage: Usage) -> bytes:
        """Return the usage, if requested, and the end of the stream."""
        self._usage = usage
        return (frame(self._completion.usage_chunk(usage)) if self._ask.include_usage else b"") + _DONE

    def failed(self, failure: Failure) -> bytes:
        """Return the error as a chunk, and the end of the stream."""
        return frame(refusal(failure)) + _DONE

    def body(self) -> dict[str, Any]:
        """Return the `chat.completion` object."""
        outcomes = [self._outcomes[index] for index in sorted(self._outcomes)]
        reasons = [outcome.reason for outcome in outcomes]
        whole = self._completion.body([outcome.message for outcome in outcomes], reasons=reasons, usage=self._usage)
        body: dict[str, Any] = {**whole}
        for choice in body["choices"]:
            # `Completion` writes function calls. Custom tool calls are converted here, as in the stream.
            if calls := choice["message"].get("tool_calls"):
                choice["message"]["tool_calls"] = [self._call(call) for call in calls]
            if self._ask.token_ids:
                choice.update(self._ids(self._outcomes[choice["index"]]))
            elif self._ask.logprobs is not None:
                choice["logprobs"] = {"content": self._logprobs.get(choice["index"], []), "refusal": None}
        return {**body, **(self._prompt_ids() if self._ask.token_ids else {}), **self._warnings()}

    def _prompt_ids(self) -> dict[str, Any]:
        """Return the ids of the prompt, in the field that vLLM uses."""
        return {"prompt_token_ids": list(next(iter(self._outcomes.values())).prompt_ids)}

    def _ids(self, outcome: ChoiceOutcome) -> dict[str, Any]:
        """Return the sampled ids of a choice, in the field that vLLM uses, and the log probability of each id."""
        ids = {"token_ids": list(outcome.token_ids)}
        scores = {"logprobs": {"content": list(outcome.logprobs), "refusal": None}}
        return ids if self._ask.logprobs is None else {**ids, **scores}

    def _call(self, call: dict[str, Any]) -> dict[str, Any]:
        """Return a call for a completion. The arguments of a custom tool call are converted to text."""
        function = call["function"]
        if function["name"] not in self._ask.custom:
            return call
        custom = {"name": function["name"], "input": InputText().feed(function["arguments"])}
        plain = {name: value for name, value in call.items() if name != "function"}
        return plain | {"type": "custom", "custom": custom}


def refusal(failure: Failure) -> dict[str, Any]:
    """Return a failure in the format of OpenAI's errors."""
    told = {"message": failure.message, "type": failure.kind.openai, "param": failure.param, "code": failure.code}
    return {"error": told}


def frame(chunk: Mapping[str, Any]) -> bytes:
    """Return JSON as a server-sent event."""
    return b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n"


CHAT = Api("chat", read, ChatSurface, refusal, "chatcmpl-")
