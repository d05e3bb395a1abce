"""OpenAI's Responses API: reads a request into an `Ask`, and writes events as output items.

Source: https://platform.openai.com/docs/api-reference/responses. To save time, only the number and the text of each delta are encoded.
Before a request is read, `stored.py` adds the conversation of `previous_response_id` to `input`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

import unrender
from unrender.gateway.failure import CONTEXT_LENGTH, Failure, invalid
from unrender.gateway.schema import Effort, JsonObject, Limit, Many, TopLogprobs, texts, wrong_field
from unrender.gateway.surfaces import (
    Api,
    Ask,
    BlockSurface,
    ChoiceOutcome,
    Head,
    MessageBuilder,
    Sampling,
    event,
    image,
    json_bytes,
)
from unrender.gateway.surfaces.chat import refusal
from unrender.gateway.surfaces.tools import InputText, check_strict, custom_arguments, plain_choice, read_api_tools
from unrender.openai import Usage

_ENCRYPTED = "reasoning.encrypted_content"
_LOGPROBS = "message.output_text.logprobs"
_SEALED = "unrender-reasoning:"
"""Prefix of the gateway's own encrypted content. The reasoning follows this prefix in plain text, since the client may read it."""


class InputItem(JsonObject):
    """An input item or a content part, of any type."""

    type: str | None = None
    role: Literal["user", "assistant", "system", "developer"] | None = None
    content: Any = None
    summary: Any = None
    encrypted_content: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: Any = None
    input: Any = None
    output: Any = None
    text: Any = None
    refusal: Any = None
    image_url: Any = None


class _Text(JsonObject):
    """Text options."""

    format: Any = None


class _Reasoning(JsonObject):
    """Reasoning options."""

    effort: Effort | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    """If set, reasoning is returned as a summary, whatever the value, since more clients show summaries than reasoning."""


class ResponsesRequest(Sampling):
    """A Responses API request."""

    neutral: ClassVar = {"truncation": "disabled", "service_tier": "auto"}

    input: str | Annotated[list[InputItem], Many]
    instructions: str | None = None
    tools: Annotated[list[dict[str, Any]], Many] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    text: _Text | None = None
    reasoning: _Reasoning | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    include: str | Annotated[list[str], Many] | None = None
    max_output_tokens: Limit | None = None
    top_logprobs: TopLogprobs | None = None
    store: bool | None = None
    metadata: Any = None
    previous_response_id: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    background: Literal[False] | None = Field(None, description="background mode is not supported; omit it")
    conversation: None = Field(None, description="conversations are not stored; send the conversation itself")
    prompt: None = Field(None, description="prompts are not stored; send the conversation itself")


def read(body: Any) -> Ask:
    """Read a request. Raises `Failure` with the name of the invalid field."""
    request = ResponsesRequest.read(body)
    # If answers are stored, `input` already contains the items of earlier responses.
    items, include, top = _Items(), texts(request.include), request.top_logprobs
    items.read(request.instructions, request.input)
    text, reasoning = request.text or _Text(), request.reasoning or _Reasoning()
    check_strict(text.format, "text.format", param="text.format.schema", code="invalid_json_schema")
    unknown = [f"include ({name:.60})" for name in include if name not in (_ENCRYPTED, _LOGPROBS)]
    return request.ask(
        read_api_tools(request.tools),
        (*items.unheeded, *unknown),
        messages=tuple(items.messages),
        tool_choice=plain_choice(request.tool_choice),
        parallel_tool_calls=request.parallel_tool_calls is not False,
        response_format=text.format,
        template=request.chat_template_kwargs or {},
        effort=reasoning.effort,
        store=request.store,
        limit=request.max_output_tokens,
        logprobs=(top or 0) if _LOGPROBS in include or top else None,
        echo={**_echo(request, text.format, reasoning), "sealed": _ENCRYPTED in include},
    )


_NEUTRAL = {"temperature": 1.0, "top_p": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
_REPEATED = ("instructions", "max_output_tokens", "previous_response_id", "safety_identifier", "prompt_cache_key")
_WHOLE_TOOL: Mapping[str, dict[str, Any]] = {
    "function": {"description": None, "parameters": None, "strict": None},
    "custom": {},
}
"""Types of tools that a response repeats, with the fields that clients expect."""


def _echo(request: ResponsesRequest, form: Any, reasoning: _Reasoning) -> dict[str, Any]:
    """Return the request fields that the response repeats."""
    tools = [tool for tool in request.tools or () if tool.get("type") in _WHOLE_TOOL]
    return {
        **{name: getattr(request, name) for name in _REPEATED},
        **{name: request.sampling.get(name, neutral) for name, neutral in _NEUTRAL.items()},
        "max_tool_calls": None,
        "metadata": request.metadata or {},
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "reasoning": {"effort": reasoning.effort, "summary": reasoning.summary},
        "text": {"format": form or {"type": "text"}},
        "top_logprobs": request.top_logprobs or 0,
        "tool_choice": request.tool_choice or "auto",
        "tools": [_WHOLE_TOOL[tool["type"]] | tool for tool in tools],
    }


class _Items(MessageBuilder):
    """Converts input items to messages in OpenAI's format.

    Consecutive reasoning, text and calls become one assistant message, as templates write it.
    """

    def read(self, instructions: str | None, given: str | Sequence[InputItem]) -> None:
        """Read `instructions` and `input`."""
        if instructions:
            self.add("system", instructions)
        if isinstance(given, str):
            self.add("user", given)
            return
        for i, item in enumerate(given):
            kind, where = item.type or "message", f"input[{i}]"
            if kind == "item_reference":
                raise invalid(f"{where}: items are not stored; send the item itself", param=where)
            if kind in _READERS:
                _READERS[kind](self, item, where)
            else:
                self.unheeded.append(f"{where} ({kind:.60})")

    def _message(self, item: InputItem, where: str) -> None:
        if item.role is None:
            raise wrong_field(f"{where}.role", "a role", None)
        said = _texts(item.content, f"{where}.content", _shown if item.role == "user" else _text)
        if item.role == "assistant":
            self._answer()["content"] += "".join(said)
        else:
            self.add_parts(item.role, said)

    def _answer(self) -> dict[str, Any]:
        """Return the assistant message to continue, or a new one."""
        if not self.messages or self.messages[-1]["role"] != "assistant":
            self.add("assistant", "")
        return self.messages[-1]

    def _reasoning(self, item: InputItem, where: str) -> None:
        opaque = item.encrypted_content or ""
        text = opaque.removeprefix(_SEALED)
        if text == opaque:
            # Encrypted content from another server can't be read, so use the item's plain text.
            text = "\n".join(_texts(item.content or item.summary or [], where))
        if opaque and not text:
            self.unheeded.append(f"{where}.encrypted_content")
        if text:
            answer = self._answer()
            answer["reasoning_content"] = "\n".join(filter(None, (answer.get("reasoning_content"), text)))

    def _call(self, item: InputItem, where: str) -> None:
        arguments = "{}" if item.arguments is None else item.arguments
        if item.type == "custom_tool_call":
            # The text of a custom call, `ls`, becomes the only argument of a function: `{"input": "ls"}`.
            arguments = custom_arguments("".join(_texts(item.input or "", f"{where}.input")))
        if not item.name:
            raise wrong_field(f"{where}.name", "the tool's name", item.name)
        self._answer().setdefault("tool_calls", []).append(self.call(item.call_id, item.name, arguments))

    def _output(self, item: InputItem, where: str) -> None:
        self.add_result(item.call_id, "\n".join(_texts(item.output, f"{where}.output")))


_READERS: Mapping[str, Callable[[_Items, InputItem, str], None]] = {
    "message": _Items._message,
    "reasoning": _Items._reasoning,
    "function_call": _Items._call,
    "custom_tool_call": _Items._call,
    "function_call_output": _Items._output,
    "custom_tool_call_output": _Items._output,
}
_TEXTS = ("input_text", "output_text", "text", "reasoning_text", "summary_text")


def _text(part: InputItem, where: str) -> str:
    text = part.refusal if part.type == "refusal" else part.text if part.type in _TEXTS else None
    if not isinstance(text, str):
        raise wrong_field(f"{where}.type", "text, since prompts can only contain text", part.type)
    return text


def _texts(content: Any, where: str, read: Callable[[InputItem, str], Any] = _text) -> Sequence[Any]:
    """Return the parts of an item's content, which is a string or a list. `read` converts each part of a list."""
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        raise wrong_field(where, "text or a list of parts", content)
    return [read(InputItem.read(part, f"{where}[{i}]"), f"{where}[{i}]") for i, part in enumerate(content)]


def _shown(part: InputItem, where: str) -> str | Mapping[str, Any]:
    """Return the text of a part, or the image as a message part."""
    return image(part.image_url) if part.type == "input_image" and part.image_url else _text(part, where)


_THOUGHT: Mapping[str, Any] = {"type": "reasoning", "summary": [], "content": []}
_KINDS: Mapping[str, tuple[str, str, str, Mapping[str, Any]]] = {
    "message": ("msg", "output_text", "content", {"role": "assistant", "content": []}),
    "reasoning": ("rs", "reasoning_text", "content", _THOUGHT),
    "summary": ("rs", "reasoning_summary_text", "summary", _THOUGHT),
    "function_call": ("fc", "function_call_arguments", "arguments", {"arguments": ""}),
    "custom_tool_call": ("ctc", "custom_tool_call_input", "input", {"input": ""}),
}
"""Kinds of output items, each with its id prefix, delta name, text field and initial fields."""
_PARTS = {"content": "response.content_part", "summary": "response.reasoning_summary_part"}
"""Fields that contain parts, with the names of their events. The text of any other field is directly in the item."""


class _Item:
    """An open output item."""

    def __init__(self, index: int, name: str, kind: str, more: Mapping[str, Any]) -> None:
        prefix, delta, self.field, empty = _KINDS[kind]
        self.index = index
        self.kind = kind
        self.body: dict[str, Any] = {"id": f"{prefix}_{name}", "type": kind, "status": "in_progress", **empty, **more}
        self.where: dict[str, Any] = {"item_id": self.body["id"], "output_index": index}
        # Text is in a part of its item, while a call is in the item itself. So only deltas of text have a `content_index`.
        if self.field in _PARTS:
            self.where[f"{self.field}_index"] = 0
        self.name = f"response.{delta}"
        """Event type of the item's deltas, without `.delta`."""
        # The deltas of an item differ only in number and text, so the rest is encoded once per item.
        self.deltas = (
            f'event: {self.name}.delta\ndata: {{"type":"{self.name}.delta","sequence_number":'.encode(),
            f',{json.dumps(self.where, separators=(",", ":"))[1:-1]},"delta":'.encode(),
        )
        self.input = InputText()
        """Extracts the text from a custom call's arguments."""


class ResponsesSurface(BlockSurface):
    """Writes the events of one answer, and the response that they add up to."""

    content: str = "message"
    reasoning: str = "reasoning"

    def __init__(self, ask: Ask, head: Head) -> None:
        super().__init__(ask, head)
        if ask.echo["reasoning"]["summary"]:
            self.reasoning = "summary"
        self._sequence = 0
        self._output: list[dict[str, Any]] = []
        self._items = 0
        self._item: _Item
        """The open item."""
        self._logprobs: list[Mapping[str, Any]] = []
        """Log probabilities of the open item."""
        self._fresh: list[Mapping[str, Any]] = []
        """Log probabilities that have not been sent in a delta."""
        self._completed = 0
        """Time of completion, in seconds since 1970."""

    def begin(self) -> bytes:
        """Return the response without output."""
        kinds = ("response.created", "response.in_progress")
        return b"".join(self._frame(kind, response=self._response("in_progress")) for kind in kinds)

    def frames(self, index: int, events: Sequence[unrender.Event], logprobs: Sequence[Mapping[str, Any]] = ()) -> bytes:
        """Return a delta for each event, and the start and end of each item."""
        self._logprobs += logprobs
        self._fresh += logprobs
        return super().frames(index, events)

    def _kind_of_call(self, name: str) -> str:
        return "custom_tool_call" if name in self._ask.custom else "function_call"

    def _started(self, kind: str, call: Mapping[str, str]) -> Iterator[bytes]:
        # The response's id makes item ids unique across responses, e.g. `msg_` + `4f…` + `000`.
        name = f"{self._head.id.removeprefix('resp_')}{self._items:03x}"
        own = {"call_id": call["id"], "name": call["name"]} if call else {}
        item = self._item = _Item(self._items, name, kind, own)
        self._items += 1
        yield self._frame("response.output_item.added", output_index=item.index, item=item.body)
        if item.field in _PARTS:
            yield self._frame(f"{_PARTS[item.field]}.added", **item.where, part=_part(kind, ""))

    def _delta(self, text: str) -> bytes:
        item, logprobs = self._item, b""
        if item.kind == "custom_tool_call" and not (text := item.input.feed(text)):
            return b""
        # Log probabilities of tokens before the message started are sent with its first delta.
        if item.kind == "message":  # message deltas always have the field `logprobs`
            logprobs = b',"logprobs":' + json.dumps(self._fresh, separators=(",", ":")).encode()
            self._fresh = []
        self._texts.append(text)
        before, middle = item.deltas
        # Join the encoded fields and the new values: `…"sequence_number":7,"item_id":…,"delta":"Hi"`, then the log probabilities, if there
        # are any.
        return b"%b%d%b%b%b}\n\n" % (before, self._next(), middle, json_bytes(text), logprobs)

    def _stopped(self, kind: str, text: str, *, complete: bool) -> Iterator[bytes]:
        item, body = self._item, self._item.body
        body["status"] = "completed" if complete else "incomplete"
        # Report the end of a text twice: for its part, and for its item.
        if item.field in _PARTS:
            yield from self._close_text(item, text)
        else:
            body[item.field] = text
            if complete:
                name = {"name": body["name"]} if kind == "function_call" else {}
                yield self._frame(f"{item.name}.done", **item.where, **{item.field: text}, **name)
        self._output.append(body)
        yield self._frame("response.output_item.done", output_index=item.index, item=body)

    def _close_text(self, item: _Item, text: str) -> Iterator[bytes]:
        part, logprobs = _part(item.kind, text), {}
        if item.kind == "message":
            logprobs = {"logprobs": self._logprobs}
            part |= logprobs
            self._logprobs = []
        yield self._frame(f"{item.name}.done", **item.where, text=text, **logprobs)
        yield self._frame(f"{_PARTS[item.field]}.done", **item.where, part=part)
        item.body[item.field] = [part]
        # Clients that don't use stored answers send this text back, so that the model sees its earlier reasoning.
        if item.body["type"] == "reasoning" and self._ask.echo["sealed"]:
            item.body["encrypted_content"] = _SEALED + text

    def end(self, index: int, outcome: ChoiceOutcome) -> bytes:
        """Return the frames that end the open item."""
        # Set the time here, since the answer is complete, while `finish` still waits for the engine's token count.
        self._completed = int(time.time())
        self._outcomes[index] = outcome
        return b"".join(self._stop(complete=outcome.finish_reason not in _INCOMPLETE))

    def finish(self, usage: Usage) -> bytes:
        """Return the complete response, finished or truncated."""
        self._usage = usage
        response = self.body()
        return self._frame(f"response.{response['status']}", response=response)

    def body(self) -> dict[str, Any]:
        """Return the complete response."""
        reason = _INCOMPLETE.get(self._outcomes[0].finish_reason)
        response = self._response("incomplete" if reason else "completed")
        return response | {"incomplete_details": {"reason": reason} if reason else None}

    def failed(self, failure: Failure) -> bytes:
        """Return the frames for a failed response."""
        # Agents shorten the conversation when they receive this code.
        error = {
            "code": CONTEXT_LENGTH if failure.code == CONTEXT_LENGTH else "server_error",
            "message": failure.message,
        }
        stopped = b"".join(self._stop(complete=False))
        return stopped + self._frame("response.failed", response=self._response("failed") | {"error": error})

    def _response(self, status: str) -> dict[str, Any]:
        return {
            "id": self._head.id,
            "object": "response",
            "created_at": self._head.created,
            "completed_at": self._completed if status == "completed" else None,
            "status": status,
            "model": self._head.model,
            "output": list(self._output),
            "error": None,
            "incomplete_details": None,
            "usage": self._usage and _cost(self._usage),
            "background": False,
            "service_tier": "default",
            "store": self._head.stored,
            "truncation": "disabled",
            **{name: value for name, value in self._ask.echo.items() if name != "sealed"},
            **self._warnings(),
        }

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence - 1

    def _frame(self, kind: str, **fields: Any) -> bytes:
        return event(kind, sequence_number=self._next(), **fields)


_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


_THOUGHTS = {"reasoning": "reasoning_text", "summary": "summary_text"}


def _part(kind: str, text: str) -> dict[str, Any]:
    if kind in _THOUGHTS:
        return {"type": _THOUGHTS[kind], "text": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _cost(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens or 0, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


RESPONSES = Api("responses", read, ResponsesSurface, refusal, "resp_", stores=True, conversation="input")
