"""OpenAI's Responses: reads a request into an Ask, and writes events as output items.

Source: https://platform.openai.com/docs/api-reference/responses. Frames are spliced: of a delta only its number and its text
are encoded. `stored.py` puts the conversation that `previous_response_id` means into `input` before a request is read.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from unrender.gateway.ask import EFFORTS, Ask
from unrender.gateway.failure import Failure
from unrender.gateway.fields import Fields
from unrender.gateway.surfaces.chat import read_sampling, read_variables, refusal
from unrender.gateway.surfaces.items import Items, sealed
from unrender.gateway.surfaces.surface import Api, Head, Outcome, quoted
from unrender.gateway.surfaces.tools import InputText, plain_choice, read_tools
from unrender.limits import MOST_MESSAGES, MOST_TOKENS, MOST_TOP_LOGPROBS
from unrender.machine.events import ArgumentsText, ContentText, Event, ReasoningText, ToolCallFinished, ToolCallStarted
from unrender.messages.wire import CallStatus
from unrender.parser.completions import Usage, finish_reason

_STORED = {
    "conversation": "conversations are not stored; send the conversation itself",
    "prompt": "prompts are not stored; send the conversation itself",
}
_SEALED = "reasoning.encrypted_content"
_LOGPROBS = "message.output_text.logprobs"
_NEUTRAL = {"temperature": 1.0, "top_p": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}


def read(body: Any) -> Ask:
    """Read a request. Raises `Failure` that names the wrong field."""
    fields = Fields.of(body)
    fields.refuse(**_STORED)
    fields.without_effect(background=False, truncation="disabled", service_tier="auto")
    metadata, previous = fields.any("metadata"), fields.text("previous_response_id")
    labels = {name: fields.text(name) for name in ("safety_identifier", "prompt_cache_key")}
    given = fields.items("tools", MOST_MESSAGES)
    tools, items = read_tools(given), Items()
    items.read(fields)
    text, reasoning = fields.inside("text"), fields.inside("reasoning")
    include = fields.texts("include", MOST_MESSAGES)
    top = fields.integer("top_logprobs", 0, MOST_TOP_LOGPROBS)
    choice, limit = fields.any("tool_choice"), fields.integer("max_output_tokens", 1, MOST_TOKENS)
    sampling, parallel = read_sampling(fields), fields.flag("parallel_tool_calls", default=True)
    form, effort = text.any("format"), reasoning.word("effort", *EFFORTS)
    ask = Ask(
        model=fields.text("model") or "",
        messages=tuple(items.messages),
        tools=tuple(tools.functions),
        custom=frozenset(tools.custom),
        tool_choice=plain_choice(choice),
        parallel_tool_calls=parallel,
        response_format=form,
        template=read_variables(fields),
        effort=effort,
        stream=fields.flag("stream"),
        store=fields.typed("store", bool, "true or false"),
        limit=limit,
        sampling=sampling,
        logprobs=(top or 0) if _LOGPROBS in include or top else None,
        unheeded=(
            *(*tools.unheeded, *items.unheeded, *text.left(), *reasoning.left(), *fields.left()),
            *(f"include ({name:.60})" for name in include if name not in (_SEALED, _LOGPROBS)),
        ),
    )
    stated = {"metadata": metadata or {}, "previous_response_id": previous, **labels}
    echo = _echo(ask, instructions=items.instructions, stated=stated, top=top, choice=choice)
    tools_echoed = [_echoed(tool) for tool in given if tool.get("type") in ("function", "custom")]
    return replace(ask, echo=echo | {"tools": tools_echoed, "sealed": _SEALED in include})


def _echo(
    ask: Ask, *, instructions: str | None, stated: Mapping[str, Any], top: int | None, choice: Any
) -> dict[str, Any]:
    """Return the fields of the request that its response repeats, all but the tools."""
    return {
        "instructions": instructions,
        "max_output_tokens": ask.limit,
        "max_tool_calls": None,
        **stated,
        "parallel_tool_calls": ask.parallel_tool_calls,
        "reasoning": {"effort": ask.effort, "summary": None},
        **{name: ask.sampling.get(name, neutral) for name, neutral in _NEUTRAL.items()},
        "text": {"format": ask.response_format or {"type": "text"}},
        "top_logprobs": top or 0,
        "tool_choice": choice or "auto",
    }


def _echoed(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a tool with all fields that clients expect in an answer."""
    return {"description": None, "parameters": None, "strict": None, **tool} if tool.get("type") == "function" else tool


class _Item:
    """An output item that is being written."""

    __slots__ = ("body", "deltas", "index", "input", "name", "texts")

    def __init__(self, index: int, body: dict[str, Any], delta: str, fields: str) -> None:
        self.index = index
        self.body = body
        self.texts: list[str] = []
        self.name = f"response.{delta}"
        """The type of its deltas, without `.delta`."""
        self.deltas = (
            f'event: {self.name}.delta\ndata: {{"type":"{self.name}.delta","sequence_number":'.encode(),
            f',"item_id":{json.dumps(body["id"])},"output_index":{index},{fields}"delta":'.encode(),
        )
        self.input = InputText()
        """Reads the text out of a custom call's arguments."""


class ResponsesSurface:
    """The events of one answer, and the response that they add up to."""

    def __init__(self, ask: Ask, head: Head) -> None:
        self._ask = ask
        self._head = head
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
        self._outcome: Outcome | None = None
        self._completed = 0
        """When the outcome was known, in seconds since 1970."""
        self._usage: Usage | None = None

    def begin(self) -> bytes:
        """Return the response without output."""
        response = self._response("in_progress")
        return self._frame("response.created", response=response) + self._frame(
            "response.in_progress", response=response
        )

    def frames(self, index: int, events: Sequence[Event], logprobs: Sequence[Mapping[str, Any]] = ()) -> bytes:  # noqa: ARG002
        """Return a delta for each event, with the items' beginnings and ends."""
        self._logprobs += logprobs
        self._fresh += logprobs
        return b"".join([frame for event in events for frame in self._event(event)])

    def _event(self, event: Event) -> Iterator[bytes]:
        match event:
            case ContentText(text):
                yield from self._text("message", text)
            case ReasoningText(text):
                yield from self._text("reasoning", text)
            case ArgumentsText(call, text) if call == self._call and self._item is not None:
                item = self._item
                more = item.input.feed(text) if item.body["type"] == "custom_tool_call" else text
                if more:
                    yield self._delta(item, more)
            case ToolCallStarted(call, id, name):
                yield from self._start_call(id, name)
                self._call = call
            case ToolCallFinished(call, status) if call == self._call:
                yield from self._stop(complete=status is CallStatus.COMPLETE)
            case _:
                pass

    def _text(self, kind: str, text: str) -> Iterator[bytes]:
        if self._item is None or self._item.body["type"] != kind:
            yield from self._stop()
            if kind == "message":
                body = {
                    "id": self._id("msg"),
                    "type": kind,
                    "role": "assistant",
                    "status": "in_progress",
                    "content": [],
                }
                yield from self._start(body, "output_text", '"content_index":0,')
            else:
                body = {"id": self._id("rs"), "type": kind, "status": "in_progress", "summary": [], "content": []}
                yield from self._start(body, "reasoning_text", '"content_index":0,')
            yield self._part("added", _part(kind, ""))
        assert self._item is not None
        yield self._delta(self._item, text, self._carried() if kind == "message" else b"")

    def _carried(self) -> bytes:
        """Return the field of a text's delta that holds the log probabilities of its tokens."""
        if not self._fresh:
            return b',"logprobs":[]'
        carried = json.dumps(self._fresh, separators=(",", ":"))
        self._fresh = []
        return b',"logprobs":' + carried.encode()

    def _start_call(self, id: str, name: str) -> Iterator[bytes]:
        yield from self._stop()
        call = {"status": "in_progress", "call_id": id, "name": name}
        if name in self._ask.custom:
            body = {"id": self._id("ctc"), "type": "custom_tool_call", **call, "input": ""}
            yield from self._start(body, "custom_tool_call_input", "")
        else:
            body = {"id": self._id("fc"), "type": "function_call", **call, "arguments": ""}
            yield from self._start(body, "function_call_arguments", "")

    def _start(self, body: dict[str, Any], delta: str, fields: str) -> Iterator[bytes]:
        item = self._item = _Item(self._items, body, delta, fields)
        self._items += 1
        yield self._frame("response.output_item.added", output_index=item.index, item=body)

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
        text, kind = "".join(item.texts), item.body["type"]
        item.body = item.body | {"status": "completed" if complete else "incomplete"}
        if kind in ("message", "reasoning"):
            yield from self._close_text(item, kind, text)
        else:
            field = "input" if kind == "custom_tool_call" else "arguments"
            item.body = item.body | {field: text}
            name = {} if kind == "custom_tool_call" else {"name": item.body["name"]}
            if complete:
                where = {"item_id": item.body["id"], "output_index": item.index}
                yield self._frame(f"{item.name}.done", **where, **{field: text}, **name)
        self._output.append(item.body)
        yield self._frame("response.output_item.done", output_index=item.index, item=item.body)

    def _close_text(self, item: _Item, kind: str, text: str) -> Iterator[bytes]:
        part = _part(kind, text)
        logprobs = {}
        if kind == "message":
            part["logprobs"], self._logprobs = self._logprobs, []
            logprobs = {"logprobs": part["logprobs"]}
        where = {"item_id": item.body["id"], "output_index": item.index, "content_index": 0}
        yield self._frame(f"{item.name}.done", **where, text=text, **logprobs)
        yield self._frame("response.content_part.done", **where, part=part)
        item.body = item.body | {"content": [part]}
        if kind == "reasoning" and self._ask.echo["sealed"]:
            item.body = item.body | {"encrypted_content": sealed(text)}

    def _part(self, what: str, part: Mapping[str, Any]) -> bytes:
        assert self._item is not None
        where = {"item_id": self._item.body["id"], "output_index": self._item.index, "content_index": 0}
        return self._frame(f"response.content_part.{what}", **where, part=part)

    def end(self, index: int, outcome: Outcome) -> bytes:  # noqa: ARG002
        """Return the end of the item that is open."""
        self._outcome, self._completed = outcome, int(time.time())
        return b"".join(self._stop())

    def finish(self, usage: Usage) -> bytes:
        """Return the whole response, completed or cut off."""
        self._usage = usage
        response = self.body()
        return self._frame(f"response.{response['status']}", response=response)

    def body(self) -> dict[str, Any]:
        """Return the whole response."""
        assert self._outcome is not None
        reason = _INCOMPLETE.get(finish_reason(self._outcome.message, self._outcome.reason))
        response = self._response("incomplete" if reason else "completed")
        return response | {"incomplete_details": {"reason": reason} if reason else None}

    def failed(self, failure: Failure) -> bytes:
        """Return the response as failed."""
        error = {"code": "server_error", "message": failure.message}
        return self._frame("response.failed", response=self._response("failed") | {"error": error})

    def ping(self) -> bytes:
        """Return a comment, which clients ignore."""
        return b": ping\n\n"

    def _response(self, status: str) -> dict[str, Any]:
        echo = {name: value for name, value in self._ask.echo.items() if name != "sealed"}
        warnings = [*self._head.warnings, *(self._outcome.warnings if self._outcome else ())]
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
            **({"warnings": warnings} if warnings else {}),
        }

    def _id(self, kind: str) -> str:
        return f"{kind}_{self._head.id.removeprefix('resp_')}{self._items:03x}"

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


def _cost(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens or 0, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


def _new_id() -> str:
    return f"resp_{secrets.token_hex(16)}"


RESPONSES = Api("responses", read, ResponsesSurface, refusal, _new_id, stores=True)
