"""A real vLLM without a model: the classes of its chat server read an answer.

It needs an installed vLLM (`python3 scripts/run.py plugins`), in each release that the plug-in supports. Parsers get
only the information that a server of that release passes.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
from collections.abc import Iterable, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

from driven import USER, tokenizer


@cache
def parser_class(
    name: str, tools: str | None = "unrender", reasoning: str | None = "unrender", level: Any = None
) -> Any:
    """Return the class of the server's parsers."""
    manager = importlib.import_module("vllm.parser").ParserManager
    more = {"tokenizer": tokenizer(name)} if is_told("vllm.renderers.online_derenderer") else {}
    more |= {"tool_strict_level": level} if level else {}
    return manager.get_parser(tools, reasoning, enable_auto_tools=True, model_name="m", **more)


@cache
def is_told(server: str) -> bool:
    """Return whether a server of this release passes the prompt to its parsers."""
    return ".set_prompt_token_ids(" in inspect.getsource(importlib.import_module(server))


def parser_of(name: str, request: Any, prompt: str, server: str, cls: Any = None) -> Any:
    """Return the parser for a request, with the prompt if the server passes it."""
    cls = cls or parser_class(name)
    parser = cls(tokenizer(name), request.tools, model_config=None, chat_template_kwargs={})
    if is_told(server):
        parser.set_prompt_token_ids(ids(name, prompt))
    return parser


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
    cls = cls or parser_class(name)
    parser = cls(tokenizer(name), request.tools, model_config=None, chat_template_kwargs={})
    try:
        module = importlib.import_module("vllm.entrypoints.openai.chat_completion.stream_processor")
        processor = module.ChatStreamProcessor(request, parser, enable_auto_tools=True, parser_cls=cls)
    except ModuleNotFoundError:
        processor = _Older(request, parser)
    deltas: list[Any] = []
    reason = None
    before = ids(name, prompt)
    for at, chunk in enumerate(chunks):
        last = "stop" if at == len(chunks) - 1 else None
        step = processor.step(chunk, ids(name, chunk), last, before)
        deltas += [step.delta] if step.delta else []
        reason = step.finish_reason
    return deltas, reason


class _Older:
    """The stream of the chat server before 0.33, which has no class for it."""

    def __init__(self, request: Any, parser: Any) -> None:
        self._request, self._parser = request, parser
        self._called = False

    def step(self, text: str, tokens: list[int], reason: str | None, before: list[int]) -> Any:
        """Return a chunk's delta and the finish reason."""
        delta = self._parser.parse_delta(text, tokens, self._request, before, finished=reason is not None)
        self._called = self._called or bool(delta and delta.tool_calls)
        return SimpleNamespace(delta=delta, finish_reason="tool_calls" if reason and self._called else reason)


def folded(deltas: Iterable[Any]) -> tuple[str, str, list[tuple[str, ...]]]:
    """Return the answer that a client assembles."""
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
    """Return the content of a streamed response's items."""
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

    async def run() -> list[Any]:
        server = SimpleNamespace(_raise_if_error=lambda *_: None)
        stream = serving._process_simple_streaming_events(
            server, request, None, generated(), context, "m", tokenizer(name), None, 0, lambda event: event
        )
        return [event async for event in stream]

    done = [event.item for event in asyncio.run(run()) if event.type == "response.output_item.done"]
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
