"""Checks a format's grammars: the parser must read generated text, and the grammars must accept the template's text.

Rules: generated text is checked with unrender's parser. Each dialect is checked with its engine, and skipped if the engine isn't installed.
Engines are imported only on use. Each token is one byte long, so no vocabulary is needed.

Generated text is also checked against the template. The answer is parsed, the template renders the parsed message, and the markers of the
answer and the rendering are compared in order. Grammars allow some deviations that don't affect parsing: they may leave out a marker, or
generate an empty part with its markers. So an answer's markers may be missing, and markers of an empty part are accepted if the template
writes them around text. Whitespace, values, the order of arguments, and a header at the start are ignored. Messages that the template
doesn't render are accepted.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

from unrender.answer import tokens
from unrender.answer.encode import encode_answer
from unrender.conversation.messages import Said
from unrender.dialects import Engine
from unrender.dialects.remainder import Remainder
from unrender.errors import GrammarError, SchemaWarning
from unrender.format import ToolMode
from unrender.machine import Malformed
from unrender.messages import Message, Request
from unrender.nodes import Role
from unrender.parser.prompt_tail import generated_format, read_prefill
from unrender.proof import CutOut, disallowed, said_by, with_and_without_end
from unrender.turn import Turn
from unrender.verify.judge import NOT_WRITTEN, claimed, finding, message_json
from unrender.verify.renditions import (
    PROOF_TOOLS,
    REQUEST,
    TOOL_NAMES,
    Candidate,
    pairs,
    proof_answer,
    show_after_prompt,
)
from unrender.verify.verdicts import CapabilityFinding, Counterexample

Accepts = Callable[[str], bool]
END_TOKEN = 256
"""Id of the token that ends the output. Lower ids are bytes."""


def installed(engine: str) -> bool:
    """Return True if `engine` can be imported."""
    return importlib.util.find_spec(engine) is not None


def lark_reader(grammar: str) -> Accepts:
    """Return a function that tests strings with llguidance. If llguidance rejects the grammar, raises `ValueError` with its message."""
    compiled = lark_matcher(grammar)

    def accepts(text: str) -> bool:
        walker, data = compiled.deep_copy(), text.encode()
        return bool(walker.try_consume_tokens(list(data)) == len(data) and walker.is_accepting())

    return accepts


def lark_matcher(grammar: str) -> Any:
    """Return llguidance's matcher for a Lark grammar, with one token per byte.

    If llguidance rejects the grammar, raises `ValueError` with its message.
    """
    matcher = importlib.import_module("llguidance").LLMatcher
    compiled = matcher(_tokenizer(), matcher.grammar_from_lark(grammar), log_level=0)
    if compiled.is_error():
        raise ValueError(compiled.get_error())
    return compiled


def gbnf_reader(grammar: str) -> Accepts:
    """Return a function that tests strings with xgrammar, which parses GBNF as EBNF.

    llguidance can convert GBNF to Lark, but its result can't contain empty lexemes, and would reject valid strings.
    """
    return _xgrammar_reader(importlib.import_module("xgrammar").Grammar.from_ebnf(grammar))


def tag_reader(tag: str | Mapping[str, Any]) -> Accepts:
    """Return a function that tests strings with a structural tag in xgrammar."""
    return _xgrammar_reader(
        importlib.import_module("xgrammar").Grammar.from_structural_tag(
            tag if isinstance(tag, str) else json.dumps(tag)
        )
    )


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
    """The tokenizer interface that llguidance needs, with one token per byte."""

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


_SAMPLES = 2
_SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_REQUESTS: Mapping[str, Request] = {
    "tools": REQUEST,
    "no tools": Request(),
    "one call at most": replace(REQUEST, parallel_tool_calls=False),
    "no call": replace(REQUEST, tool_choice="none"),
    "some call": replace(REQUEST, tool_choice="required"),
    "this call": replace(REQUEST, tool_choice="named", named_tool=TOOL_NAMES[0]),
    "a schema": Request(response_schema=_SCHEMA),
}
"""Maps descriptions to the requests whose grammars are checked."""
_CALLS = ((TOOL_NAMES[0], {"text": "Rome", "count": 3}), (TOOL_NAMES[1], {"flag": True}))
_ANSWERS = (
    proof_answer(content="Rain is likely."),
    proof_answer(content="Rain is likely.", reasoning="Look at the sky."),
    proof_answer(calls=_CALLS[:1]),
    proof_answer(reasoning="Look it up.", calls=_CALLS[1:]),
    proof_answer(calls=_CALLS),
    proof_answer(content="Let me see.", calls=_CALLS[:1]),
    proof_answer(content='{"city": "Rome"}'),
    proof_answer(content='{"city": "Rome"}', reasoning="Look at the map."),
)


@dataclass(frozen=True, slots=True)
class _Dialect:
    engine: str
    target: Engine
    read: Callable[..., Accepts]

    def reader(self, turn: Turn, known: dict[str, Accepts]) -> Accepts:
        """Return a function that tests strings with the grammar of a turn. `known` caches these functions by grammar."""
        with warnings.catch_warnings(action="ignore", category=SchemaWarning):
            grammar = turn.constraint(self.target).grammar
        if grammar not in known:
            known[grammar] = self.read(grammar)
        return known[grammar]


_GENERATED, _WRITTEN = "generated answers", "written answers"
_GRAMMAR = "grammar in "
_DIALECTS: Mapping[str, _Dialect] = {
    f"{_GRAMMAR}Lark": _Dialect("llguidance", "llguidance", lark_reader),
    f"{_GRAMMAR}GBNF": _Dialect("xgrammar", "llama.cpp", gbnf_reader),
    "structural tag": _Dialect("xgrammar", "xgrammar", tag_reader),
}


@dataclass(frozen=True, slots=True)
class _Variant:
    """A prompt with a particular request, and answers that the request allows."""

    name: str
    asked: Candidate
    turn: Turn
    samples: tuple[str, ...]
    shown: tuple[str, ...]
    """Answers as the template renders them after the prompt."""


def check_grammars(candidate: Candidate, seed: int) -> Iterator[CapabilityFinding]:
    """Yield the findings on generated answers, on the template's answers, and on each engine.

    Every kind of request is checked, with thinking on and off. A derived format without a grammar fails.
    """
    try:
        variants = list(_variants(candidate, seed))
    except GrammarError as error:
        failed = Counterexample(answer="", expected="a grammar", found=str(error))
        # If a handwritten grammar doesn't allow the prefill, the checks are skipped, because the format isn't at fault.
        tried = [] if candidate.grammar is not None else [failed]
        yield from (finding(name, tried, reason=str(error)) for name in (_GENERATED, _WRITTEN, *_DIALECTS))
        return
    misread = [_misread(variant, text) for variant in variants for text in variant.samples]
    asked = f"asked for {', '.join(variant.name for variant in variants)}"
    yield replace(finding(_GENERATED, misread), reason=asked)
    refused = [found for variant in variants for found in _not_allowed(variant)]
    yield replace(finding(_WRITTEN, refused), reason=asked if refused else NOT_WRITTEN)
    for name, dialect in _DIALECTS.items():
        if installed(dialect.engine):
            yield _accepted(name, dialect, variants, asked)
        else:
            yield finding(name, [], reason=f"{dialect.engine} is not installed")


def _variants(candidate: Candidate, seed: int) -> Iterator[_Variant]:
    by_hand, calls = candidate.grammar is not None, candidate.format.tools.mode is not ToolMode.NONE
    requests = {name: request for name, request in _REQUESTS.items() if calls or not request._call_required}
    known: set[tuple[str, str]] = set()
    switches = (None, True, False) if candidate.prober.capabilities.supports_enable_thinking else (None,)
    for thinking, tools in product(switches, (PROOF_TOOLS, ())):
        asked = replace(candidate, thinking=thinking, tools=tools)
        prompt = asked.prompt or ""
        if not prompt and candidate.prompt:  # The template rejects prompts without tools.
            continue
        prefill = read_prefill(candidate.format, prompt)
        # The engine must also accept the template's own text, not only text generated from the same grammar.
        written = claimed(asked, [said for said in _ANSWERS if tools or not said.calls], show_after_prompt)
        for name, request in requests.items():
            # A handwritten grammar is the same for every request, so check it with only one of them.
            other = bool(request.tools) != bool(tools) or (by_hand and request is not REQUEST)
            if other or (name, prefill) in known:
                continue
            known.add((name, prefill))
            turn = Turn(
                prompt=prompt, request=request, format=candidate.format, prefill=prefill, grammar=candidate.grammar
            )
            yield _Variant(
                name=name if thinking is None else f"{name} with thinking {'on' if thinking else 'off'}",
                asked=replace(asked, request=request),
                turn=turn,
                samples=tuple(turn.sample(seed + i) for i in range(_SAMPLES)),
                shown=tuple(found.answer for found in written if by_hand or _may_be_said(turn, found)),
            )


def _may_be_said(turn: Turn, found: CutOut) -> bool:
    """Return True if the turn's request allows the template's answer, and if the model can generate it in one turn."""
    said, request = found.said, turn.request
    # Generation ends at a stop string, so a model can't generate text after it.
    bare = min(with_and_without_end(turn.format, found.answer), key=len)
    apart = bool(said.content) and request._call_required
    # Content that a marker separates from calls is a separate turn, e.g. `Action: f` followed by `Final Answer: Hi`.
    apart |= bool(said.content and said.calls and turn.format.turn.tools_to_content.strip())
    names = [call.name for call in said.calls]
    return _allows(request, said.content, names) and not apart and not any(stop in bare for stop in turn.stop)


def _allows(request: Request, content: str, names: list[str]) -> bool:
    """Return True if a request allows an answer with this content and calls to these tools."""
    if request.response_schema is not None:
        with suppress(ValueError):
            return list(json.loads(content)) == ["city"]
        return False
    named = names == [request.named_tool] if request.named_tool else bool(names)
    wanted = named or not request._call_required
    return wanted and (request._calls_allowed or not names) and (len(names) < 2 or not request._one_call)


def _misread(variant: _Variant, text: str) -> Counterexample | None:
    """Return a counterexample if the generated answer is parsed incorrectly, violates the request, or deviates from the template."""
    turn = variant.turn
    parser = turn.parser()
    events, message = [*parser.feed(text), *parser.finish()], parser.message
    if malformed := next((event for event in events if isinstance(event, Malformed)), None):
        found = f"at character {malformed.position}: expected {malformed.expected}"
    elif message.failed_calls:
        found = "a call is incomplete"
    elif turn.grammar is not None:
        return None
    elif not _allows(turn.request, message.content, [call.name for call in message.tool_calls]):
        found = f"asked for {variant.name}, read as {message_json(message)}"
    elif marker := unwritten(variant.asked, turn, text):
        found = f"the template does not write {marker!r} there"
    else:
        return None
    return Counterexample(answer=text, expected="an answer that is read", found=found)


def _not_allowed(variant: _Variant) -> Iterator[Counterexample | None]:
    """For each of the template's answers, yield a counterexample if the grammar rejects it both with and without its end of turn, and None
    otherwise.
    """
    turn = variant.turn
    format = generated_format(turn.format, turn.prefill)
    answer = Remainder(format=format, request=turn.request, prefill=turn.prefill, handmade=turn.grammar)
    refused = disallowed(answer, {text: tuple(with_and_without_end(turn.format, text)) for text in variant.shown})
    yield from (_refusal(variant, text) if text in refused else None for text in dict.fromkeys(variant.shown))


def _accepted(name: str, dialect: _Dialect, variants: Sequence[_Variant], asked: str) -> CapabilityFinding:
    readers: dict[str, Accepts] = {}
    tried: list[Counterexample | None] = []
    for variant in variants:
        try:
            accepts = dialect.reader(variant.turn, readers)
        except (GrammarError, ValueError) as error:
            tried.append(Counterexample(answer="", expected=f"a grammar for {variant.name}", found=str(error)))
            continue
        for text in (*variant.samples, *variant.shown):
            accepted = any(map(accepts, with_and_without_end(variant.turn.format, text)))
            tried.append(None if accepted else _refusal(variant, text))
    return replace(finding(name, tried), reason=asked)


def _refusal(variant: _Variant, text: str) -> Counterexample:
    return Counterexample(answer=text, expected=f"accepted, asked for {variant.name}", found="refused by the grammar")


def refusals(turn: Turn, output: str, message: Message) -> list[str]:
    """Return the dialects whose grammar allows neither `output` nor `message` as rendered by the format.

    Differences in layout, such as an extra line break, are ignored. The result is empty if the engine isn't installed or there's no
    grammar.
    """
    # Grammars don't include the end of turn, because engines stop there.
    ended = output.rstrip()
    bare = next((ended.removesuffix(end) for end in turn.stop if ended.endswith(end)), output)
    candidates, refused = [bare, *_rewritten(turn, message)], []
    for name, dialect in _DIALECTS.items():
        if installed(dialect.engine):
            with suppress(GrammarError):
                allowed = any(map(dialect.reader(turn, {}), candidates))
                refused += [] if allowed else [name.removeprefix(_GRAMMAR)]
    return refused


def _rewritten(turn: Turn, message: Message) -> Iterator[str]:
    """Yield the message as rendered by the format, without the prefill. Yields nothing for a handwritten grammar."""
    if turn.grammar is not None or message.failed_calls:
        return
    calls = [(call.name, call.arguments, call.id) for call in message.tool_calls]
    text = encode_answer(turn.format, content=message.content, reasoning=message.reasoning, calls=calls)
    # Yield nothing if the message can't follow the prefill, e.g. if it has no reasoning and the prefill is `<think>`.
    if text.startswith(turn.prefill):
        yield text.removeprefix(turn.prefill)


_CONTENT, _THOUGHT, _ARGUMENTS = "Quite so.", "Let me see.", {"text": "Rome"}


def unwritten(asked: Candidate, turn: Turn, text: str) -> str:
    """Return the first marker of the answer `text` that the template doesn't write for the answer's message, or "". `asked` is the
    candidate that renders the message.
    """
    # The template may write a second call even if the request allows only one.
    turn = replace(turn, request=replace(turn.request, tool_choice="auto", parallel_tool_calls=True))
    headers, bare = (turn.format.turn.unasked, *turn.format.turn.headers), text.lstrip()
    header = next((core for core in map(str.strip, headers) if core and bare.startswith(core)), "")
    message, markers = _markers(turn, bare.removeprefix(header))
    first, filled = "", set[str]()
    for fills, answer in _answers(message):
        if shown := show_after_prompt(asked, answer):
            filled |= fills
            missing = _missing(markers, _markers(turn, shown.answer)[1])
            if not missing:
                return ""
            first = first or missing
    return first if filled == _empty(message) else ""


def _answers(message: Message) -> Iterator[tuple[set[str], Said]]:
    """Yield variants of a message in which empty parts contain text, each with the names of these parts. The first variant is the unchanged
    message.
    """
    calls = pairs(said_by(message))
    said: Mapping[str, Any] = {"content": message.content, "reasoning": message.reasoning, "calls": calls}
    # Include each call that has no arguments twice, with and without arguments, because either form may match.
    both = [(name, given) for name, arguments in calls for given in ((arguments,) if arguments else (_ARGUMENTS, {}))]
    filled: Mapping[str, Any] = {"content": _CONTENT, "reasoning": _THOUGHT, "calls": both}
    for which in product((False, True), repeat=3):
        fills = {part for part, fill in zip(filled, which, strict=True) if fill}
        if fills <= _empty(message):
            yield fills, proof_answer(**{**said, **{part: filled[part] for part in fills}})


def _empty(message: Message) -> set[str]:
    """Return the names of a message's empty parts. They include "calls" if a call has no arguments."""
    bare = any(not call.arguments for call in message.tool_calls)
    parts = {"content": message.content, "reasoning": message.reasoning, "calls": not bare}
    return {part for part, said in parts.items() if not said}


def _markers(turn: Turn, text: str) -> tuple[Message, list[str]]:
    """Parse an answer, and return its message and its markers. Layout, argument names and the end-of-turn marker are left out."""
    text = min(with_and_without_end(turn.format, text), key=len)
    parser = turn.parser()
    parser.feed(text)
    parser.finish()
    runs, last = [""], Role.MARKER
    for span in parser.spans:
        said = text[span.start : span.end]
        if span.role is Role.MARKER:
            runs += [] if last is Role.MARKER else [""]
            runs[-1] += said
        elif span.role is Role.LAYOUT:
            runs[-1] += said if last is Role.MARKER else ""
            continue
        last = span.role
    # Normalize markers to the format's main variant, without argument names. For example, `</a>` may be the end marker of `<a>` for any
    # `a`.
    tools, keys = (
        turn.format.tools,
        {key for call in parser.message.tool_calls for key in call.arguments},
    )
    spelled = {closer.strip(): tools.value_suffix.strip() for closer in tools.arguments.closers}
    nameless = dict.fromkeys(sorted(keys, key=len, reverse=True), "")
    pieces = (piece for run in runs for piece in tokens(_replaced(run, spelled)))
    return parser.message, [_replaced(piece, nameless) for piece in pieces]


def _replaced(text: str, others: Mapping[str, str]) -> str:
    for old, new in others.items():
        text = text.replace(old, new)
    return text


def _missing(markers: Sequence[str], written: Sequence[str]) -> str:
    """Return the first marker that doesn't occur in `written` after the previous markers, or "" if all of them do."""
    rest = iter(written)
    return next((marker for marker in markers if marker not in rest), "")
