"""Would the grammars of a turn let a model write this answer? Asked of the engine that reads them, when it is installed.

Strategy: llguidance reads Lark, and GBNF by way of its own converter. It is given a tokenizer with one token for each byte.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from unrender.chat_template import Turn
from unrender.errors import GrammarError, SchemaWarning
from unrender.grammar.encode import encode_answer
from unrender.messages import CallStatus, Message
from unrender.parsing.parser import prefill

ENGINE = "llguidance"
_END = 256
"""The token that ends the output, behind one token for each byte."""


def refusals(turn: Turn, output: str, message: Message) -> list[str]:
    """Return the dialects whose grammar allows neither `output` nor `message` as the format writes it.

    Layout that parsers read and grammars do not write, say a line break too many, is no refusal. Without the engine, and
    for a turn that has no grammar, nothing is refused.
    """
    if importlib.util.find_spec(ENGINE) is None:
        return []
    candidates = [_without_end(turn, output), *_rewritten(turn, message)]
    return [name for name, accepts in _readers(turn) if not any(map(accepts, candidates))]


def _readers(turn: Turn) -> Iterator[tuple[str, Callable[[str], bool]]]:
    dialects: tuple[tuple[str, Callable[[], str], Callable[[str], str]], ...] = (
        ("Lark", turn.lark, str),
        ("GBNF", turn.gbnf, _lark_of),
    )
    for name, write, convert in dialects:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SchemaWarning)
            try:
                grammar = write()
            except GrammarError:
                continue
        yield name, _reader(convert(grammar))


def _without_end(turn: Turn, output: str) -> str:
    """Return the output without the end of turn, at which an engine stops and of which grammars know nothing."""
    ended = output.rstrip()
    return next((ended.removesuffix(end) for end in turn.stop if ended.endswith(end)), output)


def _rewritten(turn: Turn, message: Message) -> Iterator[str]:
    """Yield the message as the format writes it, behind what the prompt has written."""
    if any(call.status is not CallStatus.COMPLETE for call in message.tool_calls):
        return
    calls = [(call.name, json.loads(call.arguments), call.id) for call in message.tool_calls]
    text = encode_answer(turn.format, content=message.content, reasoning=message.reasoning, calls=calls)
    begun = prefill(turn.format, turn.prompt)
    if text.startswith(begun):
        yield text.removeprefix(begun)


class _Bytes:
    """A tokenizer with one token for each byte."""

    eos_token_id = _END
    bos_token_id = None
    special_token_ids = (_END,)
    tokens = (*(bytes([byte]) for byte in range(_END)), b"<end>")

    def __call__(self, text: str | bytes) -> list[int]:
        return list(text if isinstance(text, bytes) else text.encode())


@cache
def _tokenizer() -> Any:
    engine = importlib.import_module(ENGINE)
    return engine.LLTokenizer(engine.TokenizerWrapper(_Bytes()), eos_token=_END)


def _lark_of(gbnf: str) -> str:
    return str(importlib.import_module(f"{ENGINE}.gbnf_to_lark").gbnf_to_lark(gbnf))


def _reader(lark: str) -> Callable[[str], bool]:
    kind = importlib.import_module(ENGINE).LLMatcher
    matcher = kind(_tokenizer(), kind.grammar_from_lark(lark), log_level=0)
    if matcher.is_error():
        raise GrammarError(f"{ENGINE} does not read the grammar: {matcher.get_error()}")

    def accepts(text: str) -> bool:
        walker, tokens = matcher.deep_copy(), list(text.encode())
        return bool(walker.try_consume_tokens(tokens) == len(tokens) and walker.is_accepting())

    return accepts
