"""A real vLLM without a model: a template's name → what its chat server makes of an answer, by its own classes.

Usable only where vLLM is installed (`python3 scripts/run.py plugins`).
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Iterable, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

from driven import USER, tokenizer


@cache
def parser_class(
    name: str, tools: str | None = "unrender", reasoning: str | None = "unrender", level: Any = None
) -> Any:
    """Return the class that the server makes its parsers of."""
    manager = importlib.import_module("vllm.parser").ParserManager
    return manager.get_parser(
        tools, reasoning, enable_auto_tools=True, model_name="m", tokenizer=tokenizer(name), tool_strict_level=level
    )


def chat(**more: Any) -> Any:
    """Return a chat request."""
    protocol = importlib.import_module("vllm.entrypoints.openai.chat_completion.protocol")
    return protocol.ChatCompletionRequest(**{"model": "m", "messages": USER} | more)


def responses(**more: Any) -> Any:
    """Return a request to the Responses API."""
    protocol = importlib.import_module("vllm.entrypoints.openai.responses.protocol")
    return protocol.ResponsesRequest(**{"model": "m", "input": "Hello"} | more)


def ids(name: str, text: str) -> list[int]:
    """Return the tokens of `text`."""
    return list(tokenizer(name).encode(text, add_special_tokens=False))


def streamed(
    name: str, request: Any, prompt: str, chunks: Sequence[str], cls: Any = None
) -> tuple[list[Any], str | None]:
    """Return the deltas and the finish reason that the chat server streams."""
    module = importlib.import_module("vllm.entrypoints.openai.chat_completion.stream_processor")
    cls = cls or parser_class(name)
    parser = cls(tokenizer(name), request.tools, model_config=None, chat_template_kwargs={})
    processor = module.ChatStreamProcessor(request, parser, enable_auto_tools=True, parser_cls=cls)
    deltas: list[Any] = []
    reason = None
    before = ids(name, prompt)
    for at, chunk in enumerate(chunks):
        last = "stop" if at == len(chunks) - 1 else None
        step = processor.step(chunk, ids(name, chunk), last, before)
        deltas += [step.delta] if step.delta else []
        reason = step.finish_reason
    return deltas, reason


def folded(deltas: Iterable[Any]) -> tuple[str, str, list[tuple[str, ...]]]:
    """Return what a client puts together."""
    calls: dict[int, list[str]] = {}
    for call in (call for delta in deltas for call in delta.tool_calls):
        known = calls.setdefault(call.index, ["", ""])
        known[0] += call.function.name or ""
        known[1] += call.function.arguments or ""
    reasoning = "".join(delta.reasoning or "" for delta in deltas)
    content = "".join(delta.content or "" for delta in deltas)
    return reasoning, content, [tuple(call) for call in calls.values()]


def items(
    name: str, request: Any, prompt: str, chunks: Sequence[str], cls: Any = None
) -> tuple[str, str, list[tuple[str, str]]]:
    """Return what the items of a streamed response hold."""
    serving = importlib.import_module("vllm.entrypoints.openai.responses.serving").OpenAIServingResponses
    context_of = importlib.import_module("vllm.entrypoints.openai.responses.context").SimpleContext
    outputs = importlib.import_module("vllm.outputs")
    context = context_of(
        parser_cls=cls or parser_class(name), tokenizer=tokenizer(name), request=request, chat_template_kwargs={}
    )

    async def generated() -> Any:
        for at, chunk in enumerate(chunks):
            last = "stop" if at == len(chunks) - 1 else None
            output = outputs.CompletionOutput(0, chunk, ids(name, chunk), None, None, finish_reason=last)
            context.append_output(
                outputs.RequestOutput("r", prompt, ids(name, prompt), None, [output], last is not None)
            )
            yield context

    async def run() -> Any:
        server = SimpleNamespace(_raise_if_error=lambda *_: None)
        stream = serving._process_simple_streaming_events(
            server, request, None, generated(), context, "m", tokenizer(name), None, 0, lambda event: event
        )
        return [event async for event in stream]

    asyncio.run(run())
    done = context.streamed_output_items
    texts = {
        kind: "".join(part.text for item in done if item.type == kind for part in item.content)
        for kind in ("reasoning", "message")
    }
    calls = [(_full_name(item), item.arguments) for item in done if item.type == "function_call"]
    return texts["reasoning"], texts["message"], calls


def _full_name(call: Any) -> str:
    """Return the tool's name with its namespace, as the model writes it."""
    space = getattr(call, "namespace", None)
    return f"{space}__{call.name}" if space else str(call.name)
