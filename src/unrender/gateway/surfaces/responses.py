"""OpenAI's Responses: reads a request into an Ask, and writes events as output items.

Source: https://platform.openai.com/docs/api-reference/responses. Frames are spliced: of a delta only its number and its text
are encoded. `stored.py` puts the conversation that `previous_response_id` means into `input` before a request is read.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

import unrender
from unrender.gateway.failure import Failure
from unrender.gateway.schema import Object, Whole, texts
from unrender.gateway.surfaces.ask import Ask
from unrender.gateway.surfaces.chat import refusal
from unrender.gateway.surfaces.items import Item, Items, sealed
from unrender.gateway.surfaces.requests import Effort, Limit, Many, ResponseFormat, Sampling, ToolChoice
from unrender.gateway.surfaces.surface import Api, Head, Outcome, Surface, quoted
from unrender.gateway.surfaces.tools import InputText, plain_choice, read_tools
from unrender.limits import MOST_TOP_LOGPROBS

_SEALED = "reasoning.encrypted_content"
_LOGPROBS = "message.output_text.logprobs"
_NEUTRAL = {"temperature": 1.0, "top_p": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}


class _Text(Object):
    """How text is written."""

    format: ResponseFormat = None


class _Reasoning(Object):
    """How much is thought."""

    effort: Effort | None = None


class ResponsesRequest(Sampling):
    """A request."""

    neutral: ClassVar = {"background": False, "truncation": "disabled", "service_tier": "auto"}

    input: str | Annotated[list[Item], Many]
    instructions: str | None = None
    tools: Annotated[list[dict[str, Any]], Many] | None = None
    tool_choice: ToolChoice = None
    parallel_tool_calls: bool | None = None
    text: _Text | None = None
    reasoning: _Reasoning | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    include: str | Annotated[list[str], Many] | None = None
    max_output_tokens: Limit | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MOST_TOP_LOGPROBS), Whole] | None = None
    store: bool | None = None
    metadata: Any = None
    previous_response_id: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    conversation: None = Field(None, description="conversations are not stored; send the conversation itself")
    prompt: None = Field(None, description="prompts are not stored; send the conversation itself")


def read(body: Any) -> Ask:
    """Read a request. Raises `Failure` that names the wrong field."""
    request = ResponsesRequest.read(body)
    # The items come as the client sent them, with those of earlier responses before them, where they are stored.
    tools, items, include = read_tools(request.tools), Items(), texts(request.include)
    items.read(request.instructions, request.input)
    text, reasoning, top = request.text or _Text(), request.reasoning or _Reasoning(), request.top_logprobs
    return Ask(
        model=request.model or "",
        messages=tuple(items.messages),
        tools=tuple(tools.functions),
        custom=frozenset(tools.custom),
        tool_choice=plain_choice(request.tool_choice),
        parallel_tool_calls=request.parallel_tool_calls is not False,
        response_format=text.format,
        template=request.chat_template_kwargs or {},
        effort=reasoning.effort,
        stream=bool(request.stream),
        store=request.store,
        limit=request.max_output_tokens,
        sampling=request.sampling,
        logprobs=(top or 0) if _LOGPROBS in include or top else None,
        unheeded=(
            *(*tools.unheeded, *items.unheeded, *request.unheeded()),
            *(f"include ({name:.60})" for name in include if name not in (_SEALED, _LOGPROBS)),
        ),
        echo={**_echo(request), "sealed": _SEALED in include},
    )


def _echo(request: ResponsesRequest) -> dict[str, Any]:
    """Return the fields of the request that its response repeats."""
    effort = request.reasoning.effort if request.reasoning else None
    form = request.text.format if request.text else None
    return {
        "instructions": request.instructions,
        "max_output_tokens": request.max_output_tokens,
        "max_tool_calls": None,
        "metadata": request.metadata or {},
        **{name: getattr(request, name) for name in _REPEATED},
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "reasoning": {"effort": effort, "summary": None},
        **{name: request.sampling.get(name, neutral) for name, neutral in _NEUTRAL.items()},
        "text": {"format": form or {"type": "text"}},
        "top_logprobs": request.top_logprobs or 0,
        "tool_choice": request.tool_choice or "auto",
        "tools": [
            _WHOLE_TOOL.get(tool["type"], {}) | tool for tool in request.tools or () if tool.get("type") in _WHOLE_TOOL
        ],
    }


_REPEATED = ("previous_response_id", "safety_identifier", "prompt_cache_key")
_WHOLE_TOOL: Mapping[str, dict[str, Any]] = {
    "function": {"description": None, "parameters": None, "strict": None},
    "custom": {},
}
"""The tools that a response repeats, with all fields that clients expect."""


_KINDS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "message": ("msg", "output_text", {"role": "assistant", "content": []}),
    "reasoning": ("rs", "reasoning_text", {"summary": [], "content": []}),
    "function_call": ("fc", "function_call_arguments", {"arguments": ""}),
    "custom_tool_call": ("ctc", "custom_tool_call_input", {"input": ""}),
}
"""The kinds of output items: what their ids begin with, what their deltas are called, and their other fields."""


class _Item:
    """An output item that is being written."""

    def __init__(self, index: int, name: str, kind: str, more: Mapping[str, Any]) -> None:
        prefix, delta, fields = _KINDS[kind]
        self.index = index
        self.kind = kind
        self.texts: list[str] = []
        self.body: dict[str, Any] = {"id": f"{prefix}_{name}", "type": kind, "status": "in_progress", **fields, **more}
        self.where: dict[str, Any] = {"item_id": self.body["id"], "output_index": index}
        if "content" in fields:
            self.where["content_index"] = 0
        self.name = f"response.{delta}"
        """The type of its deltas, without `.delta`."""
        self.deltas = (
            f'event: {self.name}.delta\ndata: {{"type":"{self.name}.delta","sequence_number":'.encode(),
            f',{json.dumps(self.where, separators=(",", ":"))[1:-1]},"delta":'.encode(),
        )
        self.input = InputText()
        """Reads the text out of a custom call's arguments."""


class ResponsesSurface(Surface):
    """The events of one answer, and the response that they add up to."""

    def __init__(self, ask: Ask, head: Head) -> None:
        super().__init__(ask, head)
        self._sequence = 0
        self._output: list[dict[str, Any]] = []
        self._items = 0
        self._item: _Item | None = None
        self._call = -1
        """The index of the call that the open item is."""
        self._logprobs: list[Mapping[str, Any]] = []
        """Those of the open item."""
        self._fresh: list[Mapping[str, Any]] = []
        """Those that no delta has carried yet."""
        self._completed = 0
        """When the outcome was known, in seconds since 1970."""

    def begin(self) -> bytes:
        """Return the response without output."""
        kinds = ("response.created", "response.in_progress")
        return b"".join(self._frame(kind, response=self._response("in_progress")) for kind in kinds)

    def frames(self, index: int, events: Sequence[unrender.Event], logprobs: Sequence[Mapping[str, Any]] = ()) -> bytes:  # noqa: ARG002
        """Return a delta for each event, with the items' beginnings and ends."""
        self._logprobs += logprobs
        self._fresh += logprobs
        return b"".join([frame for event in events for frame in self._event(event)])

    def _event(self, event: unrender.Event) -> Iterator[bytes]:
        match event:
            case unrender.ContentText(text):
                yield from self._text("message", text)
            case unrender.ReasoningText(text):
                yield from self._text("reasoning", text)
            case unrender.ArgumentsText(call, text) if call == self._call and self._item is not None:
                if more := self._item.input.feed(text) if self._item.kind == "custom_tool_call" else text:
                    yield self._delta(self._item, more)
            case unrender.ToolCallStarted(call, id, name):
                kind = "custom_tool_call" if name in self._ask.custom else "function_call"
                yield from self._start(kind, call_id=id, name=name)
                self._call = call
            case unrender.ToolCallFinished(call, status) if call == self._call:
                yield from self._stop(complete=status is unrender.CallStatus.COMPLETE)
            case _:
                pass

    def _text(self, kind: str, text: str) -> Iterator[bytes]:
        item = self._item
        if item is None or item.kind != kind:
            item = yield from self._start(kind)
            yield self._frame("response.content_part.added", **item.where, part=_part(kind, ""))
        logprobs = b""
        # Tokens whose text came before the message had begun go with its first delta.
        if kind == "message":  # whose deltas always carry the field
            logprobs = b',"logprobs":' + json.dumps(self._fresh, separators=(",", ":")).encode()
            self._fresh = []
        yield self._delta(item, text, logprobs)

    def _start(self, kind: str, **more: Any) -> Generator[bytes, None, _Item]:
        yield from self._stop()
        name = f"{self._head.id.removeprefix('resp_')}{self._items:03x}"
        item = self._item = _Item(self._items, name, kind, more)
        self._items += 1
        yield self._frame("response.output_item.added", output_index=item.index, item=item.body)
        return item

    def _delta(self, item: _Item, text: str, more: bytes = b"") -> bytes:
        item.texts.append(text)
        before, middle = item.deltas
        return b"%b%d%b%b%b}\n\n" % (before, self._next(), middle, quoted(text), more)

    def _stop(self, *, complete: bool = True) -> Iterator[bytes]:
        """End the open item. A call that is not complete stays in the output as such."""
        item = self._item
        if item is None:
            return
        self._item, self._call = None, -1
        text, body = "".join(item.texts), item.body
        body["status"] = "completed" if complete else "incomplete"
        # Texts have parts, and their end is told twice: of the part, and of the item.
        if "content" in body:
            yield from self._close_text(item, text)
        else:
            field = "input" if item.kind == "custom_tool_call" else "arguments"
            body[field] = text
            if complete:
                name = {} if field == "input" else {"name": body["name"]}
                yield self._frame(f"{item.name}.done", **item.where, **{field: text}, **name)
        self._output.append(body)
        yield self._frame("response.output_item.done", output_index=item.index, item=body)

    def _close_text(self, item: _Item, text: str) -> Iterator[bytes]:
        part, logprobs = _part(item.kind, text), {}
        if item.kind == "message":
            logprobs = {"logprobs": self._logprobs}
            part |= logprobs
            self._logprobs = []
        yield self._frame(f"{item.name}.done", **item.where, text=text, **logprobs)
        yield self._frame("response.content_part.done", **item.where, part=part)
        item.body["content"] = [part]
        if item.kind == "reasoning" and self._ask.echo["sealed"]:
            item.body["encrypted_content"] = sealed(text)

    def end(self, index: int, outcome: Outcome) -> bytes:
        """Return the end of the item that is open."""
        self._outcomes[index], self._completed = outcome, int(time.time())
        return b"".join(self._stop())

    def finish(self, usage: unrender.Usage) -> bytes:
        """Return the whole response, completed or cut off."""
        self._usage = usage
        response = self.body()
        return self._frame(f"response.{response['status']}", response=response)

    def body(self) -> dict[str, Any]:
        """Return the whole response."""
        outcome = self._outcomes[0]
        reason = _INCOMPLETE.get(unrender.finish_reason(outcome.message, outcome.reason))
        response = self._response("incomplete" if reason else "completed")
        return response | {"incomplete_details": {"reason": reason} if reason else None}

    def failed(self, failure: Failure) -> bytes:
        """Return the response as failed."""
        error = {"code": "server_error", "message": failure.message}
        return self._frame("response.failed", response=self._response("failed") | {"error": error})

    def _response(self, status: str) -> dict[str, Any]:
        echo = {name: value for name, value in self._ask.echo.items() if name != "sealed"}
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
            **echo,
            **self._warnings(),
        }

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence - 1

    def _frame(self, kind: str, **fields: Any) -> bytes:
        data = json.dumps({"type": kind, "sequence_number": self._next(), **fields}, separators=(",", ":"))
        return f"event: {kind}\ndata: {data}\n\n".encode()


_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def _part(kind: str, text: str) -> dict[str, Any]:
    if kind == "reasoning":
        return {"type": "reasoning_text", "text": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _cost(usage: unrender.Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens or 0, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


def _new_id() -> str:
    return f"resp_{secrets.token_hex(16)}"


RESPONSES = Api("responses", ResponsesRequest, read, ResponsesSurface, refusal, _new_id, stores=True)
