"""Asks the installed engines whether the grammars of a turn allow an answer."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from unrender.errors import GrammarError, SchemaWarning
from unrender.messages.wire import Message
from unrender.parser.streaming import prefill
from unrender.turn import Turn
from unrender.values.encode import encode_answer
from unrender.verify.engines import Accepts, gbnf_reader, installed, lark_reader, tag_reader


@dataclass(frozen=True, slots=True)
class _Dialect:
    engine: str
    write: Callable[[Turn], Any]
    read: Callable[..., Accepts]


_DIALECTS = MappingProxyType(
    {
        "Lark": _Dialect("llguidance", Turn.lark, lark_reader),
        "GBNF": _Dialect("xgrammar", Turn.gbnf, gbnf_reader),
        "structural tag": _Dialect("xgrammar", Turn.structural_tag, tag_reader),
    }
)


def refusals(turn: Turn, output: str, message: Message) -> list[str]:
    """Return the dialects whose grammar allows neither `output` nor `message` as the format writes it.

    A difference only in layout, such as an extra line break, does not count as refused. An engine that is not
    installed, and a turn that has no grammar, refuse nothing.
    """
    candidates = [_without_end(turn, output), *_rewritten(turn, message)]
    return [name for name, accepts in _readers(turn) if not any(map(accepts, candidates))]


def _readers(turn: Turn) -> Iterator[tuple[str, Accepts]]:
    for name, dialect in _DIALECTS.items():
        if not installed(dialect.engine):
            continue
        with warnings.catch_warnings(action="ignore", category=SchemaWarning):
            try:
                grammar = dialect.write(turn)
            except GrammarError:
                continue
        yield name, dialect.read(grammar)


def _without_end(turn: Turn, output: str) -> str:
    """Return the output without the end of turn, at which an engine stops and of which grammars know nothing."""
    ended = output.rstrip()
    return next((ended.removesuffix(end) for end in turn.stop if ended.endswith(end)), output)


def _rewritten(turn: Turn, message: Message) -> Iterator[str]:
    """Yield the message as the format writes it, after what the prompt has written; a grammar made by hand writes none."""
    if turn.grammar is not None or message.dead_calls:
        return
    calls = [(call.name, json.loads(call.arguments), call.id) for call in message.tool_calls]
    text = encode_answer(turn.format, content=message.content, reasoning=message.reasoning, calls=calls)
    begun = prefill(turn.format, turn.prompt)
    if text.startswith(begun):
        yield text.removeprefix(begun)
