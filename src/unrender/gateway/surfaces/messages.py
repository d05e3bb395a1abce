"""Anthropic's Messages API: reads a request into an `Ask`, and writes events as content blocks.

Source: https://docs.anthropic.com/en/api/messages. To save time, only the text of each delta is encoded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from pydantic_core import from_json

from unrender.gateway.failure import Failure, FailureKind
from unrender.gateway.schema import Effort, JsonObject, Limit, Many, StopField, texts, wrong_field
from unrender.gateway.surfaces import Api, Ask, BlockSurface, Head, MessageBuilder, Sampling, event, image, json_bytes
from unrender.gateway.surfaces.tools import read_api_tools
from unrender.openai import Usage

_BILLING = "x-anthropic-billing-header:"
"""Start of a system block with which a client identifies itself to Anthropic's servers."""
_SIGNATURE = "unrender"
"""Signature of thinking blocks. Clients drop blocks without a signature, but nobody checks this one."""
_UNTHREADED = "thread_unsupported_request"
"""Error code that makes Anthropic's SDK send the complete conversation, as its tool runner does."""
_CHOICES: Mapping[str, Any] = {"auto": "auto", "any": "required", "none": "none"}


class Block(JsonObject):
    """A content block of any type, in a client's conversation."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    tool_use_id: str | None = None
    content: str | list[Block] | None = None
    is_error: bool | None = None
    source: Any = None


class _Message(JsonObject):
    role: Literal["user", "assistant", "system"]
    content: str | list[Block]


class _Choice(JsonObject):
    type: Literal["auto", "any", "tool", "none"] | None = None
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class _Thinking(JsonObject):
    type: Literal["enabled", "disabled", "adaptive"] | None = None
    budget_tokens: Limit | None = None


class _Output(JsonObject):
    effort: Effort | None = None
    format: Any = None


class CountRequest(Sampling):
    """A token counting request."""

    neutral: ClassVar = {"service_tier": "auto"}

    temperature: Annotated[float, Field(ge=0, le=1)] | None = None
    messages: Annotated[list[_Message], Many]
    system: str | list[Block] | None = None
    tools: Annotated[list[Any], Many] | None = None
    tool_choice: _Choice | None = None
    thinking: _Thinking | None = None
    output_config: _Output | None = None
    output_format: Any = None
    thread: Any = None
    """Conversation that the server should keep, so that later requests contain only new messages. This field is rejected, since the gateway
    keeps no conversations.
    """
    chat_template_kwargs: dict[str, Any] | None = None
    stop_sequences: StopField | None = None
    metadata: Any = None
    """Identifies the caller for statistics, and doesn't affect the answer."""


class MessagesRequest(CountRequest):
    """A Messages API request."""

    max_tokens: Limit


def read(body: Any) -> Ask:
    """Read a request. Raises `Failure` with the name of the invalid field."""
    request = MessagesRequest.read(body)
    budget = (request.thinking and request.thinking.budget_tokens) or 0
    if budget >= request.max_tokens:
        raise wrong_field("max_tokens", f"more than `thinking.budget_tokens`, {budget}", request.max_tokens)
    return _ask(request, limit=request.max_tokens)


def read_count_request(body: Any) -> Ask:
    """Read a request in which `max_tokens` may be missing, e.g. one that only counts tokens."""
    return _ask(CountRequest.read(body))


def _ask(request: CountRequest, limit: int | None = None) -> Ask:
    if request.thread is not None:
        said = "thread: not supported; send the complete conversation"
        raise Failure(FailureKind.INVALID, said, param="thread", code=_UNTHREADED)
    conversation = _Blocks()
    conversation.read(request)
    choice, thinking = request.tool_choice or _Choice(), request.thinking or _Thinking()
    # "adaptive" lets the model decide, so leave the template's default unchanged.
    told = {} if thinking.type in (None, "adaptive") else {"thinking": thinking.model_dump(exclude_none=True)}
    output = request.output_config or _Output()
    # Convert `{"type": "tool", "name": "f"}` to OpenAI's format. The name is validated later, when the tools are known.
    named = {"type": "function", "function": {"name": choice.name}}
    return request.ask(
        read_api_tools(request.tools),
        conversation.unheeded,
        messages=tuple(conversation.messages),
        tool_choice=named if choice.type == "tool" else _CHOICES.get(choice.type or ""),
        parallel_tool_calls=not choice.disable_parallel_tool_use,
        response_format=_response_format(output.format or request.output_format),
        template=told | (request.chat_template_kwargs or {}),
        effort=output.effort,
        continues=conversation.continues,
        stop=texts(request.stop_sequences),
        limit=limit,
    )


def _response_format(form: Any) -> Any:
    if not isinstance(form, Mapping) or form.get("type") != "json_schema":
        return form
    return {"type": "json_schema", "json_schema": {"name": "output", "schema": form.get("schema")}}


class _Blocks(MessageBuilder):
    """Converts messages with content blocks to messages in OpenAI's format."""

    continues = False
    """True if the answer continues the last message, which is the assistant's."""

    def read(self, request: CountRequest) -> None:
        """Read `system` and `messages`."""
        system = request.system or ""
        # This block changes in every request. At the start of the prompt, it would keep engines from reusing anything.
        if isinstance(system, list) and (system[0].text or "").startswith(_BILLING):
            system = system[1:]
            self.unheeded.append("system[0] (a billing header, which isn't meant for the model)")
        if system:
            self.add("system", _text_of(system, "system"))
        for i, message in enumerate(request.messages):
            content, where = message.content, f"messages[{i}].content"
            blocks = [Block(type="text", text=content)] if isinstance(content, str) else content
            placed = [(block, f"{where}[{k}]") for k, block in enumerate(blocks)]
            if message.role == "assistant":
                self._assistant(placed)
            else:
                self._others(message.role, placed)
            # A call is followed by its result, so only a message without calls can be continued.
            self.continues = message.role == "assistant" and "tool_calls" not in self.messages[-1]

    def _others(self, role: str, blocks: Sequence[tuple[Block, str]]) -> None:
        # A user message may contain tool results: `[text, result, result, text]` becomes four messages in OpenAI's format.
        for is_result, group in groupby(blocks, lambda placed: placed[0].type == "tool_result"):
            if not is_result:
                self.add_parts(role, [_shown(block, where) for block, where in group])
                continue
            for block, where in group:
                if block.is_error:
                    self.unheeded.append(f"{where}.is_error")
                self.add_result(block.tool_use_id, _text_of(block.content or "", f"{where}.content"))

    def _assistant(self, blocks: Sequence[tuple[Block, str]]) -> None:
        content, reasoning, calls = [], [], []
        for block, where in blocks:
            match block.type:
                case "thinking":
                    reasoning.append(block.thinking or "")
                case "redacted_thinking":
                    self.unheeded.append(where)
                case "tool_use":
                    given = {} if block.input is None else block.input
                    # Accept arguments that are text, since clients send the arguments of a broken call back as text.
                    arguments = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
                    calls.append(self.call(block.id, block.name or "", arguments))
                case _:
                    content.append(_text(block, where))
        more: dict[str, Any] = {"reasoning_content": "\n".join(reasoning)} if reasoning else {}
        self.add("assistant", "".join(content), **more, **({"tool_calls": calls} if calls else {}))


def _text_of(content: str | Sequence[Block], where: str) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(_text(block, f"{where}[{i}]") for i, block in enumerate(content))


def _text(block: Block, where: str) -> str:
    if block.type != "text" or block.text is None:
        raise wrong_field(f"{where}.type", "text, since prompts can only contain text", block.type)
    return block.text


def _shown(block: Block, where: str) -> str | Mapping[str, Any]:
    """Return the text in a block, or the image as a message part."""
    if block.type != "image" or not isinstance(block.source, Mapping):
        return _text(block, where)
    kind, data = block.source.get("media_type"), block.source.get("data")
    return image(str(block.source.get("url") or f"data:{kind};base64,{data}"))


class MessagesSurface(BlockSurface):
    """Writes the events of one answer, and the message that they add up to."""

    def __init__(self, ask: Ask, head: Head) -> None:
        super().__init__(ask, head)
        self._blocks: list[dict[str, Any]] = []
        self._before = b""
        """Encoded start of the open block's deltas, up to their text."""
        self._usage: Usage = Usage(prompt_tokens=head.prompt_tokens, completion_tokens=0)

    def begin(self) -> bytes:
        """Return the message without content, followed by a ping."""
        message = self._message([]) | {"stop_reason": None, "stop_sequence": None}
        return event("message_start", message=message) + self.ping()

    def _started(self, kind: str, call: Mapping[str, str]) -> Iterator[bytes]:
        signature = {"signature": ""} if kind == "thinking" else {}
        block = {"type": "tool_use", **call, "input": {}} if call else {"type": kind, kind: "", **signature}
        # The index is the block's position in the message, so `body` returns the blocks in the streamed order.
        index = len(self._blocks)
        self._blocks.append(block)
        field = "partial_json" if call else kind
        # The deltas of a block differ only in their text, so the rest is encoded once per block.
        begun = f'{{"type":"content_block_delta","index":{index},"delta":{{"type":"{kind}_delta","{field}":'
        self._before = f"event: content_block_delta\ndata: {begun}".encode()
        yield event("content_block_start", index=index, content_block=block)

    def _delta(self, text: str) -> bytes:
        self._texts.append(text)
        return self._before + json_bytes(text) + b"}}\n\n"

    def _stopped(self, kind: str, text: str, *, complete: bool) -> Iterator[bytes]:  # noqa: ARG002 - a broken call keeps its complete values
        index = len(self._blocks) - 1
        filled = {"input": _values(text)} if kind == "input_json" else {kind: text}
        # Sign thinking blocks, since clients only send back signed ones.
        if kind == "thinking":
            filled["signature"] = _SIGNATURE
            yield event("content_block_delta", index=index, delta={"type": "signature_delta", "signature": _SIGNATURE})
        self._blocks[index] = self._blocks[index] | filled
        yield event("content_block_stop", index=index)

    def finish(self, usage: Usage) -> bytes:
        """Return the stop reason, the usage, and the end of the message."""
        self._usage = usage
        # Add warnings about violations of the request, which are known only at the end. Other warnings were in `message_start`.
        lacking = {"warnings": list(self._outcomes[0].warnings)} if self._outcomes[0].warnings else {}
        return event("message_delta", delta=self._ending(), usage=self._cost(), **lacking) + event("message_stop")

    def body(self) -> dict[str, Any]:
        """Return the complete message, the sum of the stream's blocks."""
        return self._message(self._blocks) | self._ending()

    def _message(self, content: list[dict[str, Any]]) -> dict[str, Any]:
        head = self._head
        body = {"id": head.id, "type": "message", "role": "assistant", "model": head.model, "content": content}
        return body | {"usage": self._cost()} | self._warnings()

    def _ending(self) -> dict[str, Any]:
        outcome = self._outcomes[0]
        reason = "stop_sequence" if outcome.stopped_by else _REASONS[outcome.finish_reason]
        return {"stop_reason": reason, "stop_sequence": outcome.stopped_by or None}

    def _cost(self) -> dict[str, int]:
        # Anthropic's input tokens don't include cached ones: if 80 of 100 tokens are cached, OpenAI reports 100 and 80, and Anthropic 20
        # and 80.
        cached = self._usage.cached_tokens or 0
        return {
            "input_tokens": max(self._usage.prompt_tokens - cached, 0),
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 0,
            "output_tokens": self._usage.completion_tokens,
        }

    def failed(self, failure: Failure) -> bytes:
        """Return the error event."""
        return event("error", error=refusal(failure)["error"])

    def ping(self) -> bytes:
        """Return a ping event, which clients ignore."""
        return event("ping")


_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


def _values(arguments: str) -> Any:
    """Return the values of a call's arguments. For truncated arguments, returns the complete values, like Anthropic's SDK.

    >>> _values('{"path": "a.txt", "lines": [1, 2], "text": "once up')
    {'path': 'a.txt', 'lines': [1, 2]}
    """
    try:
        return json.loads(arguments)  # unlike `from_json`, this accepts unpaired surrogates
    except (ValueError, RecursionError):
        pass
    try:
        return from_json(arguments.encode(errors="replace"), allow_partial=True)
    except ValueError:
        return {}


def refusal(failure: Failure) -> dict[str, Any]:
    """Return a failure in the format of Anthropic's errors."""
    details = {"details": {"error_code": _UNTHREADED}} if failure.code == _UNTHREADED else {}
    return {"type": "error", "error": {"type": failure.kind.anthropic, "message": failure.message, **details}}


MESSAGES = Api("messages", read, MessagesSurface, refusal, "msg_", {FailureKind.BUSY: 529}, counts=True)
