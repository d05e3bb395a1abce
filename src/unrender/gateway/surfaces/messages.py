"""Anthropic's Messages: reads a request into an Ask, and writes events as content blocks.

Source: https://docs.anthropic.com/en/api/messages. Frames are spliced: of a delta only its text is encoded.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any, ClassVar, Literal

from pydantic import WithJsonSchema
from pydantic_core import from_json

import unrender
from unrender.gateway.failure import CONTEXT, Failure, Kind
from unrender.gateway.schema import Object, texts, wrong
from unrender.gateway.surfaces.ask import Ask
from unrender.gateway.surfaces.requests import BLOCK_TOOL, Effort, Limit, Many, Sampling, Stop
from unrender.gateway.surfaces.surface import Api, Head, Outcome, Surface, quoted
from unrender.gateway.surfaces.tools import read_tools

_SIGNATURE = "unrender"
"""What signs a thinking block: clients keep signed ones only, and no one checks ours."""
_CHOICES: Mapping[str, Any] = {"auto": "auto", "any": "required", "none": "none"}
_EFFORTS = {"enabled": "high", "disabled": "none"}
"""What `thinking` means; "high" only says that there is some."""


class Block(Object):
    """A content block of any type, in a conversation that a client sends."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    tool_use_id: str | None = None
    content: str | list[Block] | None = None
    is_error: bool | None = None


class _Message(Object):
    role: Literal["user", "assistant", "system"]
    content: str | list[Block]


class _Choice(Object):
    type: Literal["auto", "any", "tool", "none"] | None = None
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class _Thinking(Object):
    type: Literal["enabled", "disabled", "adaptive"] | None = None


class _Output(Object):
    effort: Effort | None = None
    format: Any = None


class CountRequest(Sampling):
    """A request whose tokens are counted."""

    neutral: ClassVar = {"service_tier": "auto"}

    messages: Annotated[list[_Message], Many]
    system: str | list[Block] | None = None
    tools: Annotated[list[Annotated[Any, WithJsonSchema(BLOCK_TOOL)]], Many] | None = None
    tool_choice: _Choice | None = None
    thinking: _Thinking | None = None
    output_config: _Output | None = None
    output_format: Any = None
    chat_template_kwargs: dict[str, Any] | None = None
    stop_sequences: Stop | None = None
    metadata: Any = None
    """Names the caller for statistics; the answer is the same."""


class MessagesRequest(CountRequest):
    """A request."""

    max_tokens: Limit


def read(body: Any) -> Ask:
    """Read a request. Raises `Failure` that names the wrong field."""
    return _ask(MessagesRequest.read(body))


def read_conversation(body: Any) -> Ask:
    """Read a request in which `max_tokens` may be missing, as in one that only counts tokens."""
    return _ask(CountRequest.read(body))


def _ask(request: CountRequest) -> Ask:
    tools, conversation = read_tools(request.tools), _Conversation()
    conversation.read(request)
    choice, thinking = request.tool_choice or _Choice(), request.thinking or _Thinking()
    output = request.output_config or _Output()
    named = {"type": "function", "function": {"name": choice.name}}
    return Ask(
        model=request.model or "",
        messages=tuple(conversation.messages),
        tools=tuple(tools.functions),
        custom=frozenset(tools.custom),
        tool_choice=named if choice.type == "tool" else _CHOICES.get(choice.type or ""),
        parallel_tool_calls=not choice.disable_parallel_tool_use,
        response_format=_response_format(output.format or request.output_format),
        template=request.chat_template_kwargs or {},
        effort=output.effort or _EFFORTS.get(thinking.type or ""),
        continues=conversation.continues,
        stream=bool(request.stream),
        stop=texts(request.stop_sequences),
        limit=request.max_tokens if isinstance(request, MessagesRequest) else None,
        sampling=request.sampling,
        unheeded=(*tools.unheeded, *conversation.unheeded, *request.unheeded()),
    )


def _response_format(form: Any) -> Any:
    if not isinstance(form, Mapping) or form.get("type") != "json_schema":
        return form
    return {"type": "json_schema", "json_schema": {"name": "output", "schema": form.get("schema")}}


class _Conversation:
    """Messages of content blocks → messages in OpenAI's form."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.unheeded: list[str] = []
        self.continues = False
        """The last message is the assistant's, and the answer goes on with it."""
        self._names: dict[str, str] = {}
        """The ids of calls → the tools' names, which results do not say."""

    def read(self, request: CountRequest) -> None:
        if request.system:
            self._add("system", _text_of(request.system, "system"))
        for i, message in enumerate(request.messages):
            content, where = message.content, f"messages[{i}].content"
            blocks = [Block(type="text", text=content)] if isinstance(content, str) else content
            # A user's message may hold results of tools: each of them is a message of its own in OpenAI's form, in its place.
            read = self._assistant if message.role == "assistant" else self._others
            read(message.role, [(block, f"{where}[{k}]") for k, block in enumerate(blocks)])
            self.continues = message.role == "assistant" and "tool_calls" not in self.messages[-1]

    def _add(self, role: str, content: Any, **more: Any) -> None:
        self.messages.append({"role": role, "content": content, **more})

    def _others(self, role: str, blocks: Sequence[tuple[Block, str]]) -> None:
        for is_result, group in groupby(blocks, lambda placed: placed[0].type == "tool_result"):
            if is_result:
                for block, where in group:
                    self._result(block, where)
            else:
                found = [_text(block, where) for block, where in group]
                parts = [{"type": "text", "text": text} for text in found]
                self._add(role, found[0] if len(found) == 1 else parts)

    def _result(self, block: Block, where: str) -> None:
        id = block.tool_use_id or ""
        if block.is_error:
            self.unheeded.append(f"{where}.is_error")
        name = {"name": self._names[id]} if id in self._names else {}
        self._add("tool", _text_of(block.content or "", f"{where}.content"), tool_call_id=id, **name)

    def _assistant(self, role: str, blocks: Sequence[tuple[Block, str]]) -> None:
        content: list[str] = []
        reasoning: list[str] = []
        calls = []
        for block, where in blocks:
            match block.type:
                case "thinking":
                    reasoning.append(block.thinking or "")
                case "redacted_thinking":
                    self.unheeded.append(where)
                case "tool_use":
                    calls.append(self._call(block))
                case _:
                    content.append(_text(block, where))
        more: dict[str, Any] = {"reasoning_content": "\n".join(reasoning)} if reasoning else {}
        self._add(role, "".join(content), **more, **({"tool_calls": calls} if calls else {}))

    def _call(self, block: Block) -> dict[str, Any]:
        id, name = block.id or "", block.name or ""
        self._names[id] = name
        # What a model wrote for a broken call comes back as the text that it was.
        given = {} if block.input is None else block.input
        arguments = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _text_of(content: str | Sequence[Block], where: str) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(_text(block, f"{where}[{i}]") for i, block in enumerate(content))


def _text(block: Block, where: str) -> str:
    if block.type != "text" or block.text is None:
        raise wrong(f"{where}.type", "text, since prompts are text alone", block.type)
    return block.text


class MessagesSurface(Surface):
    """The events of one answer, and the message that they add up to."""

    def __init__(self, ask: Ask, head: Head) -> None:
        super().__init__(ask, head)
        self._blocks: list[dict[str, Any]] = []
        self._texts: list[str] = []
        """The open block's deltas."""
        self._call = -1
        """The index of the call that the open block holds."""
        self._open = ""
        self._before = b""
        """The open block's deltas up to their text."""
        self._usage: unrender.Usage = unrender.Usage(prompt_tokens=head.prompt_tokens, completion_tokens=0)

    def begin(self) -> bytes:
        """Return the message without content, followed by a ping."""
        message = self._message([]) | {"stop_reason": None, "stop_sequence": None}
        return _frame("message_start", message=message) + self.ping()

    def frames(self, index: int, events: Sequence[unrender.Event], logprobs: Sequence[Mapping[str, Any]] = ()) -> bytes:  # noqa: ARG002
        """Return a delta for each event, with the blocks' beginnings and ends."""
        return b"".join([frame for event in events for frame in self._event(event)])

    def _event(self, event: unrender.Event) -> Iterator[bytes]:
        match event:
            case unrender.ContentText(text):
                yield from self._delta("text", text)
            case unrender.ReasoningText(text):
                yield from self._delta("thinking", text)
            case unrender.ArgumentsText(call, text) if call == self._call:
                self._texts.append(text)
                yield self._before + quoted(text) + b"}}\n\n"
            case unrender.ToolCallStarted(call, id, name):
                yield from self._start("input_json", {"type": "tool_use", "id": id, "name": name, "input": {}})
                self._call = call
            case unrender.ToolCallFinished(call) if call == self._call:
                yield from self._stop()
            case _:
                pass

    def _delta(self, kind: str, text: str) -> Iterator[bytes]:
        # Text after thinking is another block; the deltas of one kind that follow each other are one.
        if self._open != kind:
            signature = {"signature": ""} if kind == "thinking" else {}
            yield from self._start(kind, {"type": kind, kind: "", **signature})
        self._texts.append(text)
        yield self._before + quoted(text) + b"}}\n\n"

    def _start(self, kind: str, block: dict[str, Any]) -> Iterator[bytes]:
        yield from self._stop()
        index = len(self._blocks)
        self._blocks.append(block)
        self._open = kind
        field = "partial_json" if kind == "input_json" else kind
        self._before = (
            b"event: content_block_delta\ndata: "
            + f'{{"type":"content_block_delta","index":{index},"delta":{{"type":"{kind}_delta","{field}":'.encode()
        )
        yield _frame("content_block_start", index=index, content_block=block)

    def _stop(self) -> Iterator[bytes]:
        if not self._open:
            return
        kind, index, text = self._open, len(self._blocks) - 1, "".join(self._texts)
        self._open, self._call = "", -1
        self._texts.clear()
        self._blocks[index] = self._blocks[index] | _filled(kind, text)
        # Clients send a thinking block back only if it is signed.
        if kind == "thinking":
            yield _frame("content_block_delta", index=index, delta={"type": "signature_delta", "signature": _SIGNATURE})
        yield _frame("content_block_stop", index=index)

    def end(self, index: int, outcome: Outcome) -> bytes:
        """Return the end of the block that is open."""
        self._outcomes[index] = outcome
        return b"".join(self._stop())

    def finish(self, usage: unrender.Usage) -> bytes:
        """Return the reason why the message ended, its usage, and its end."""
        self._usage = usage
        lacking = {"warnings": list(self._outcomes[0].warnings)} if self._outcomes[0].warnings else {}
        return _frame("message_delta", delta=self._ending(), usage=self._cost(), **lacking) + _frame("message_stop")

    def body(self) -> dict[str, Any]:
        """Return the whole message: what the stream's blocks add up to."""
        return self._message(self._blocks) | self._ending()

    def _message(self, content: list[dict[str, Any]]) -> dict[str, Any]:
        head = self._head
        body = {"id": head.id, "type": "message", "role": "assistant", "model": head.model, "content": content}
        return body | {"usage": self._cost()} | self._warnings()

    def _ending(self) -> dict[str, Any]:
        outcome = self._outcomes[0]
        stopped_by = outcome.stopped_by
        reason = "stop_sequence" if stopped_by else _REASONS[unrender.finish_reason(outcome.message, outcome.reason)]
        return {"stop_reason": reason, "stop_sequence": stopped_by or None}

    def _cost(self) -> dict[str, int]:
        cached = self._usage.cached_tokens or 0
        return {
            "input_tokens": max(self._usage.prompt_tokens - cached, 0),
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 0,
            "output_tokens": self._usage.completion_tokens,
        }

    def failed(self, failure: Failure) -> bytes:
        """Return the error event."""
        return b"event: error\ndata: " + json.dumps(refusal(failure)).encode() + b"\n\n"

    def ping(self) -> bytes:
        """Return a ping event, which clients ignore."""
        return _frame("ping")


_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


def _filled(kind: str, text: str) -> dict[str, Any]:
    """Return what a block's deltas add to it."""
    if kind == "thinking":
        return {"thinking": text, "signature": _SIGNATURE}
    return {"text": text} if kind == "text" else {"input": _values(text)}


def _values(arguments: str) -> Any:
    """Return the values of a call's arguments; of arguments that break off those that are whole, as Anthropic's SDK does.

    >>> _values('{"path": "a.txt", "lines": [1, 2], "text": "once up')
    {'path': 'a.txt', 'lines': [1, 2]}
    """
    try:
        return json.loads(arguments)  # which reads half a surrogate pair as well
    except (ValueError, RecursionError):
        pass
    try:
        return from_json(arguments.encode(errors="replace"), allow_partial=True)
    except ValueError:
        return {}


_TYPES = {
    Kind.UNAUTHENTICATED: "authentication_error",
    Kind.NOT_FOUND: "not_found_error",
    Kind.TOO_LARGE: "request_too_large",
    Kind.BUSY: "overloaded_error",
    Kind.ENGINE: "api_error",
    Kind.TIMEOUT: "timeout_error",
    Kind.INTERNAL: "api_error",
}


def refusal(failure: Failure) -> dict[str, Any]:
    """Return a failure in the shape of Anthropic's errors."""
    kind = _TYPES.get(failure.kind, "invalid_request_error")
    said = f"prompt is too long: {failure.message}" if failure.code == CONTEXT else failure.message
    return {"type": "error", "error": {"type": kind, "message": said}}


def _frame(kind: str, **fields: Any) -> bytes:
    data = json.dumps({"type": kind, **fields}, separators=(",", ":"))
    return f"event: {kind}\ndata: {data}\n\n".encode()


def _new_id() -> str:
    return f"msg_{secrets.token_hex(12)}"


MESSAGES = Api("messages", MessagesRequest, read, MessagesSurface, refusal, _new_id, {Kind.BUSY: 529}, counts=True)
