"""A real SGLang without a model: its two parsers read an answer as its servers use them.

It needs an installed SGLang (`python3 scripts/run.py plugins`).
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from driven import USER, tokenizer

Read = tuple[str, str, list[tuple[str, ...]]]
"""Reasoning, content, and the name and arguments of each call."""


def request_of(prompt: str, tools: Any = None, **more: Any) -> Any:
    """Return a chat request in the state after its prompt was rendered."""
    protocol = importlib.import_module("sglang.srt.entrypoints.openai.protocol")
    request = protocol.ChatCompletionRequest(model="m", messages=USER, tools=tools, **more)
    request._response_parser_prefix = prompt
    return request


def calls_parser(name: str, request: Any, **more: Any) -> Any:
    """Return SGLang's tool call parser with our detector."""
    module = importlib.import_module("sglang.srt.function_call.function_call_parser")
    prefix = request._response_parser_prefix
    return module.FunctionCallParser(request.tools, "unrender", tokenizer=tokenizer(name), prefix=prefix, **more)


def reasoning_parser(name: str, request: Any, *, active: bool, stream_reasoning: bool = True) -> Any:
    """Return SGLang's reasoning parser with our detector; `active` means that calls are parsed as well."""
    module = importlib.import_module("sglang.srt.parser.reasoning_parser")
    return module.ReasoningParser(
        "unrender", stream_reasoning, True, request, tokenizer=tokenizer(name), tool_call_parser_active=active
    )


def streamed(name: str, request: Any, chunks: Sequence[str], *, reasons: bool = True) -> Read:
    """Return the answer that a client assembles from both of SGLang's parsers in sequence."""
    first = reasoning_parser(name, request, active=bool(request.tools)) if reasons else None
    second = calls_parser(name, request) if request.tools else None
    thoughts, texts, calls = [], [], dict[int, list[str]]()
    for at, chunk in enumerate(chunks):
        last, rest = at == len(chunks) - 1, chunk
        if first:
            thought, rest = first.parse_stream_chunk(chunk)
            ends = first.parse_stream_end() if last else ("", "")
            thoughts += [thought or "", ends[0] or ""]
            rest = (rest or "") + ends[1] if ends[1] else rest
        if second is None:
            texts.append(rest or "")
            continue
        text, items = second.parse_stream_chunk(rest)
        end, more = second.parse_stream_end() if last else ("", [])
        texts += [text, end]
        for item in [*items, *more]:
            known = calls.setdefault(item.tool_index, ["", ""])
            known[0] += item.name or ""
            known[1] += item.parameters
    detector = second.detector if second else None
    assert (
        detector is None
        or [call["arguments"] for call in detector.prev_tool_call_arr] == detector.streamed_args_for_tool
    )
    return "".join(thoughts), "".join(texts), [tuple(call) for call in calls.values()]


def whole(name: str, request: Any, answer: str, *, reasons: bool = True) -> Read:
    """Return SGLang's reading of a whole answer."""
    thought, rest = (
        reasoning_parser(name, request, active=bool(request.tools)).parse_non_stream(answer)
        if reasons
        else ("", answer)
    )
    if not request.tools:
        return thought, rest, []
    parser = calls_parser(name, request)
    if not parser.has_tool_call(rest):
        return thought, parser.parse_non_stream(rest)[0], []
    text, calls = parser.parse_non_stream(rest)
    return thought, text, [(call.name, call.parameters) for call in calls]
