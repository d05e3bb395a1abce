"""Checks a format's grammars: generated text must be read, and the template's text must be accepted.

Rules: an engine that is not installed makes its dialect not observable; nothing but the engine itself judges a dialect. Engines are
imported when they are asked, never before; each token is a byte, so that no vocabulary is needed.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from unrender.errors import GrammarError, SchemaWarning
from unrender.format import Format
from unrender.machine.events import Malformed
from unrender.messages.wire import Message
from unrender.parser.prompt_tail import prefill
from unrender.turn import Turn
from unrender.values.notations import encode_answer
from unrender.verify.axes import TOOL_NAMES, ProofAnswer
from unrender.verify.judge import REQUEST, claims, finding, with_and_without_end
from unrender.verify.renditions import Candidate, show_after_prompt
from unrender.verify.verdicts import CapabilityFinding, Counterexample

Accepts = Callable[[str], bool]
END_TOKEN = 256
"""The token that ends the output, after one token for each byte."""


def installed(engine: str) -> bool:
    """Return whether `engine` can be imported."""
    return importlib.util.find_spec(engine) is not None


def lark_reader(grammar: str) -> Accepts:
    """Return a function that tests texts with llguidance. Raises `ValueError` with its words for a refusal."""
    compiled = lark_matcher(grammar)

    def accepts(text: str) -> bool:
        walker, data = compiled.deep_copy(), text.encode()
        return bool(walker.try_consume_tokens(list(data)) == len(data) and walker.is_accepting())

    return accepts


def lark_matcher(grammar: str) -> Any:
    """Return llguidance's matcher for Lark, with one byte as a token.

    Raises `ValueError` with its words when it refuses the grammar.
    """
    matcher = importlib.import_module("llguidance").LLMatcher
    compiled = matcher(_tokenizer(), matcher.grammar_from_lark(grammar), log_level=0)
    if compiled.is_error():
        raise ValueError(compiled.get_error())
    return compiled


def gbnf_reader(grammar: str) -> Accepts:
    """Return a function that tests texts with xgrammar, which reads GBNF as EBNF.

    llguidance's own conversion of GBNF into Lark is not a judge: its lexemes are never empty.
    """
    return _xgrammar_reader(importlib.import_module("xgrammar").Grammar.from_ebnf(grammar))


def tag_reader(tag: Mapping[str, Any]) -> Accepts:
    """Return a function that tests texts with xgrammar's structural tag."""
    return _xgrammar_reader(importlib.import_module("xgrammar").Grammar.from_structural_tag(json.dumps(tag)))


def _xgrammar_reader(grammar: Any) -> Accepts:
    xgrammar = importlib.import_module("xgrammar")
    vocabulary = xgrammar.TokenizerInfo(list(_BYTES), stop_token_ids=[END_TOKEN])
    compiled = xgrammar.GrammarCompiler(vocabulary).compile_grammar(grammar)

    def accepts(text: str) -> bool:
        matcher = xgrammar.GrammarMatcher(compiled)
        return bool(matcher.accept_string(text) and matcher.is_completed())

    return accepts


_BYTES = (*(bytes([byte]) for byte in range(256)), b"<end>")


class _ByteTokenizer:
    """What llguidance asks of a tokenizer."""

    eos_token_id = END_TOKEN
    bos_token_id = None
    special_token_ids = (END_TOKEN,)
    tokens = _BYTES

    def __call__(self, text: str | bytes) -> list[int]:
        return list(text if isinstance(text, bytes) else text.encode())


@cache
def _tokenizer() -> Any:
    llguidance = importlib.import_module("llguidance")
    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(_ByteTokenizer()), eos_token=END_TOKEN)


_SAMPLES = 4
_ANSWERS = (
    ProofAnswer(content="Rain is likely."),
    ProofAnswer(content="Rain is likely.", reasoning="Look at the sky."),
    ProofAnswer(calls=((TOOL_NAMES[0], {"text": "Rome", "count": 3}),)),
    ProofAnswer(reasoning="Look it up.", calls=((TOOL_NAMES[1], {"flag": True}),)),
)


@dataclass(frozen=True, slots=True)
class _Dialect:
    engine: str
    write: Callable[[Turn], Any]
    read: Callable[..., Accepts]


_GRAMMAR = "grammar in "
_DIALECTS: Mapping[str, _Dialect] = {
    f"{_GRAMMAR}Lark": _Dialect("llguidance", Turn.lark, lark_reader),
    f"{_GRAMMAR}GBNF": _Dialect("xgrammar", Turn.gbnf, gbnf_reader),
    "structural tag": _Dialect("xgrammar", Turn.structural_tag, tag_reader),
}


def check_grammars(candidate: Candidate, seed: int) -> Iterator[CapabilityFinding]:
    """Yield whether generated answers are read, then for each dialect whether its engine accepts the right texts."""
    prompt = candidate.prompt or ""
    begun = prefill(candidate.format, prompt)
    turn = Turn(prompt=prompt, request=REQUEST, format=candidate.format, begun=begun, grammar=candidate.grammar)
    try:
        samples = [turn.sample(seed + i) for i in range(_SAMPLES)]
    except GrammarError as error:
        yield from (finding(name, [], reason=str(error)) for name in ("generated answers", *_DIALECTS))
        return
    yield finding("generated answers", [_misread(turn, text) for text in samples])
    # The engine must also take what the template writes, not only what our own sampler writes by the same grammar.
    claimed = [answer for answer in _ANSWERS if claims(candidate, answer)]
    shown = [found.text for answer in claimed if (found := show_after_prompt(candidate, answer))]
    for name, dialect in _DIALECTS.items():
        if installed(dialect.engine):
            yield _accepted(turn, name, dialect, [*samples, *shown])
        else:
            yield finding(name, [], reason=f"{dialect.engine} is not installed, which reads it")


def _misread(turn: Turn, text: str) -> Counterexample | None:
    """Read a generated answer: it must be read without a complaint, and its calls must be whole."""
    parser = turn.parser()
    events = [*parser.feed(text), *parser.finish()]
    malformed = next((event for event in events if isinstance(event, Malformed)), None)
    if malformed is None and not parser.message.dead_calls:
        return None
    found = f"at character {malformed.position}: expected {malformed.expected}" if malformed else "a call broke off"
    return Counterexample(answer=text, expected="an answer that is read", found=found)


def _accepted(turn: Turn, name: str, dialect: _Dialect, texts: Sequence[str]) -> CapabilityFinding:
    try:
        accepts = _reader(turn, dialect)
    except (GrammarError, ValueError) as error:
        return finding(name, [], reason=f"there is no such grammar: {error}")
    return finding(name, [_refused(turn.format, accepts, text) for text in texts])


def _reader(turn: Turn, dialect: _Dialect) -> Accepts:
    with warnings.catch_warnings(action="ignore", category=SchemaWarning):
        return dialect.read(dialect.write(turn))


def _refused(format: Format, accepts: Accepts, text: str) -> Counterexample | None:
    if any(accepts(form) for form in with_and_without_end(format, text)):
        return None
    return Counterexample(answer=text, expected="accepted", found="refused by the grammar")


def refusals(turn: Turn, output: str, message: Message) -> list[str]:
    """Return the dialects whose grammar allows neither `output` nor `message` as the format writes it.

    A difference only in layout, such as an extra line break, does not count as refused. An engine that is not
    installed, and a turn that has no grammar, refuse nothing.
    """
    candidates = [_without_stop(turn, output), *_rewritten(turn, message)]
    refused = []
    for name, dialect in _DIALECTS.items():
        if installed(dialect.engine):
            with suppress(GrammarError):
                accepts = _reader(turn, dialect)
                refused += [] if any(map(accepts, candidates)) else [name.removeprefix(_GRAMMAR)]
    return refused


def _without_stop(turn: Turn, output: str) -> str:
    """Return the output without the end of turn, at which an engine stops and of which grammars know nothing."""
    ended = output.rstrip()
    return next((ended.removesuffix(end) for end in turn.stop if ended.endswith(end)), output)


def _rewritten(turn: Turn, message: Message) -> Iterator[str]:
    """Yield the message as the format writes it, after what the prompt has written; a grammar made by hand writes none."""
    if turn.grammar is not None or message.dead_calls:
        return
    calls = [(call.name, json.loads(call.arguments), call.id) for call in message.tool_calls]
    text = encode_answer(turn.format, content=message.content, reasoning=message.reasoning, calls=calls)
    # Begun `<think>`, message without reasoning: as the format writes it, it does not follow this prompt.
    if text.startswith(turn.begun):
        yield text.removeprefix(turn.begun)
