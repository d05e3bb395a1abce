"""A real vLLM without a model: a template's name → what its chat server makes of an answer, by its own classes.

Usable only where vLLM is installed (`scripts/plugins.sh`).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from answers import all_template_paths
from byte_tokenizer import byte_tokenizer

from unrender import ChatTemplate

EOS = "</s>"
USER: Any = [{"role": "user", "content": "Hello"}]


@cache
def template(name: str) -> ChatTemplate:
    """Return a template, analysed once."""
    return ChatTemplate.from_file(all_template_paths()[name], eos_token=EOS)


@cache
def tokenizer(name: str) -> Any:
    """Return a tokenizer with the template, and with its special tokens."""
    special = (*template(name).format.preserved_tokens, EOS)
    return byte_tokenizer(special, eos=EOS, template=all_template_paths()[name].read_text(encoding="utf-8"))


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
