"""Anthropic's Messages: reads a request into an Ask, and writes events as content blocks.

Source: https://docs.anthropic.com/en/api/messages. Frames are spliced: of a delta only its text is encoded.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from unrender.gateway.ask import EFFORTS, Ask
from unrender.gateway.failure import CONTEXT, Failure, Kind, invalid
from unrender.gateway.fields import Fields, wrong
from unrender.gateway.surfaces.chat import read_sampling, read_variables
from unrender.gateway.surfaces.surface import Api, Head, Outcome, quoted
from unrender.gateway.surfaces.tools import read_tools
from unrender.limits import MOST_MESSAGES, MOST_STOPS, MOST_TOKENS
from unrender.machine.events import ArgumentsText, ContentText, Event, ReasoningText, ToolCallFinished, ToolCallStarted
from unrender.messages.earlier_calls import arguments_text
from unrender.parser.completions import Usage, finish_reason

_SIGNATURE = "unrender"
"""What signs a thinking block: clients keep signed ones only, and no one checks ours."""
_CHOICES: Mapping[str, Any] = {"auto": "auto", "any": "required", "none": "none"}


def read(body: Any) -> Ask:
    """Read a request. Raises `Failure` that names the wrong field."""
    ask = read_conversation(body)
    if ask.limit is None:
        raise invalid("max_tokens: expected an integer, found none", param="max_tokens")
    return ask


def read_conversation(body: Any) -> Ask:
    """Read a request in which `max_tokens` may be missing, as in one that only counts tokens."""
    fields = Fields.of(body)
    tools = read_tools(fields.items("tools", MOST_MESSAGES))
    choice = fields.inside("tool_choice")
    thinking, output = fields.inside("thinking"), fields.inside("output_config")
    conversation = _Conversation()
    conversation.read(fields)
    effort = output.word("effort", *EFFORTS) or _effort(thinking)
    fields.any("metadata")  # names the caller for statistics; the answer is the same
    fields.without_effect(service_tier="auto")
    return Ask(
        model=fields.text("model") or "",
        messages=tuple(conversation.messages),
        tools=tuple(tools.functions),
        custom=frozenset(tools.custom),
        tool_choice=_choice(choice),
        parallel_tool_calls=not choice.flag("disable_parallel_tool_use"),
        response_format=_response_format(output.any("format") or fields.any("output_format")),
        template=read_variables(fields),
        effort=effort,
        continues=conversation.continues,
        stream=fields.flag("stream"),
        stop=fields.texts("stop_sequences", MOST_STOPS),
        limit=fields.integer("max_tokens", 1, MOST_TOKENS),
        sampling=read_sampling(fields),
        unheeded=(
            *(*tools.unheeded, *conversation.unheeded),
            *(*choice.left(), *thinking.left(), *output.left(), *fields.left()),
        ),
    )


def _choice(choice: Fields) -> Any:
    kind = choice.word("type", "auto", "any", "tool", "none")
    name = choice.text("name")
    return {"type": "function", "function": {"name": name}} if kind == "tool" else _CHOICES.get(kind or "")


def _effort(thinking: Fields) -> str | None:
    """Return the effort that `thinking` means; "high" only says that there is some."""
    kind = thinking.word("type", "enabled", "disabled", "adaptive")
    return {"enabled": "high", "disabled": "none"}.get(kind or "")


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

    def read(self, fields: Fields) -> None:
        system = fields.any("system")
        if system:
            self._add("system", self._texts(system, "system"))
        for i, item in enumerate(fields.items("messages", MOST_MESSAGES)):
            message = Fields(item, f"messages[{i}]")
            role, content = message.word("role", "user", "assistant", "system"), message.any("content")
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            if role is None or not isinstance(blocks, list):
                at = message.place("role" if role is None else "content")
                raise wrong(at, "a role" if role is None else "text or a list of blocks", content)
            read = self._assistant if role == "assistant" else self._others
            read(role, [Fields(block, f"{message.where}.content[{k}]") for k, block in enumerate(blocks)])
            self.continues = role == "assistant" and "tool_calls" not in self.messages[-1]

    def _add(self, role: str, content: Any, **more: Any) -> None:
        self.messages.append({"role": role, "content": content, **more})

    def _others(self, role: str, blocks: Sequence[Fields]) -> None:
        texts: list[str] = []
        for block in blocks:
            if (kind := block.text("type")) == "tool_result":
                self._flush(role, texts)
                self._result(block)
            else:
                texts.append(self._text(block, kind))
        self._flush(role, texts)

    def _flush(self, role: str, texts: list[str]) -> None:
        if texts:
            parts = [{"type": "text", "text": text} for text in texts]
            self._add(role, texts[0] if len(texts) == 1 else parts)
            texts.clear()

    def _result(self, block: Fields) -> None:
        id = block.text("tool_use_id") or ""
        content = block.any("content")
        if block.flag("is_error"):
            self.unheeded.append(block.place("is_error"))
        name = {"name": self._names[id]} if id in self._names else {}
        self._add(
            "tool", "" if content is None else self._texts(content, block.place("content")), tool_call_id=id, **name
        )

    def _assistant(self, role: str, blocks: Sequence[Fields]) -> None:
        content: list[str] = []
        reasoning: list[str] = []
        calls = []
        for block in blocks:
            match kind := block.text("type"):
                case "thinking":
                    reasoning.append(block.text("thinking") or "")
                case "redacted_thinking":
                    self.unheeded.append(block.where)
                case "tool_use":
                    calls.append(self._call(block))
                case _:
                    content.append(self._text(block, kind))
        more: dict[str, Any] = {"reasoning_content": "\n".join(reasoning)} if reasoning else {}
        self._add(role, "".join(content), **more, **({"tool_calls": calls} if calls else {}))

    def _call(self, block: Fields) -> dict[str, Any]:
        id, name = block.text("id") or "", block.text("name") or ""
        self._names[id] = name
        arguments = arguments_text(block.any("input"))
        return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}

    def _texts(self, content: Any, where: str) -> str:
        if isinstance(content, str):
            return content
        if not isinstance(content, list):
            raise wrong(where, "text or a list of blocks", content)
        blocks = [Fields(block, f"{where}[{i}]") for i, block in enumerate(content)]
        return "\n".join(self._text(block, block.text("type")) for block in blocks)

    def _text(self, block: Fields, kind: str | None) -> str:
        text = block.text("text")
        if kind != "text" or text is None:
            found = kind if kind != "text" else text
            raise wrong(block.place("type" if kind != "text" else "text"), "text, since prompts are text alone", found)
        return text


class MessagesSurface:
    """The events of one answer, and the message that they add up to."""

    def __init__(self, _: Ask, head: Head) -> None:
        self._head = head
        self._blocks: list[dict[str, Any]] = []
        self._texts: list[str] = []
        """The open block's deltas."""
        self._call = -1
        """The index of the call that the open block holds."""
        self._open = ""
        self._before = b""
        """The open block's deltas up to their text."""
        self._outcome: Outcome | None = None
        self._usage = Usage(prompt_tokens=head.prompt_tokens, completion_tokens=0)

    def begin(self) -> bytes:
        """Return the message without content, followed by a ping."""
        message = self._message([]) | {"stop_reason": None, "stop_sequence": None}
        return _frame("message_start", message=message) + self.ping()

    def frames(self, index: int, events: Sequence[Event], logprobs: Sequence[Mapping[str, Any]] = ()) -> bytes:  # noqa: ARG002
        """Return a delta for each event, with the blocks' beginnings and ends."""
        return b"".join([frame for event in events for frame in self._event(event)])

    def _event(self, event: Event) -> Iterator[bytes]:
        match event:
            case ContentText(text):
                yield from self._delta("text", text)
            case ReasoningText(text):
                yield from self._delta("thinking", text)
            case ArgumentsText(call, text) if call == self._call:
                self._texts.append(text)
                yield self._before + quoted(text) + b"}}\n\n"
            case ToolCallStarted(call, id, name):
                yield from self._start("input_json", {"type": "tool_use", "id": id, "name": name, "input": {}})
                self._call = call
            case ToolCallFinished(call) if call == self._call:
                yield from self._stop()
            case _:
                pass

    def _delta(self, kind: str, text: str) -> Iterator[bytes]:
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
        if kind == "thinking":
            yield _frame("content_block_delta", index=index, delta={"type": "signature_delta", "signature": _SIGNATURE})
        yield _frame("content_block_stop", index=index)

    def end(self, index: int, outcome: Outcome) -> bytes:  # noqa: ARG002
        """Return the end of the block that is open."""
        self._outcome = outcome
        return b"".join(self._stop())

    def finish(self, usage: Usage) -> bytes:
        """Return the reason why the message ended, its usage, and its end."""
        self._usage = usage
        assert self._outcome is not None
        lacking = {"warnings": list(self._outcome.warnings)} if self._outcome.warnings else {}
        return _frame("message_delta", delta=self._ending(), usage=self._cost(), **lacking) + _frame("message_stop")

    def body(self) -> dict[str, Any]:
        """Return the whole message: what the stream's blocks add up to."""
        return self._message(self._blocks) | self._ending()

    def _message(self, content: list[dict[str, Any]]) -> dict[str, Any]:
        head = self._head
        said = [*head.warnings, *(self._outcome.warnings if self._outcome else ())]
        warnings = {"warnings": said} if said else {}
        body = {"id": head.id, "type": "message", "role": "assistant", "model": head.model, "content": content}
        return body | {"usage": self._cost()} | warnings

    def _ending(self) -> dict[str, Any]:
        assert self._outcome is not None
        stopped_by = self._outcome.stopped_by
        reason = "stop_sequence" if stopped_by else _REASONS[finish_reason(self._outcome.message, self._outcome.reason)]
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
    open_: list[str] = []
    whole, at, is_key = "{}", 0, False
    while token := _TOKEN.match(arguments, at):
        at, mark = token.end(), token[1]
        if mark in ",:":
            is_key = mark == "," and open_[-1:] == ["}"]
            continue
        if mark in "{[":
            open_.append("}" if mark == "{" else "]")
        elif mark in "}]":
            open_.pop()
        if not is_key or mark[0] != '"':
            whole = arguments[:at] + "".join(reversed(open_))
        is_key = mark == "{"
    try:
        return json.loads(whole)
    except (ValueError, RecursionError):
        return {}


_TOKEN = re.compile(
    r'\s*+("(?:[^"\\]|\\.)*+"|[{}\[\],:]|(?:-?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?|true|false|null)(?=[\s,\]}]|\Z))'
)
"""What is whole of a JSON text: a string, a bracket, a comma or colon, a number, a word."""

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


MESSAGES = Api("messages", read, MessagesSurface, refusal, _new_id, {Kind.BUSY: 529}, counts=True)
