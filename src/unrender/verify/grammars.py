"""Checks a format's grammars: generated text must be read, and the template's text must be accepted.

Rules: an engine that is not installed makes its dialect not observable; nothing but the engine itself judges a dialect.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from unrender.dialects.remainder import Answer as Emitted
from unrender.errors import GrammarError, SchemaWarning
from unrender.machine.events import Malformed
from unrender.parser.prompt_tail import prefill
from unrender.parser.streaming import Parser
from unrender.verify.axes import NAMES, Answer
from unrender.verify.engines import Accepts, gbnf_reader, installed, lark_reader, tag_reader
from unrender.verify.judge import REQUEST, claims, finding, with_and_without_end
from unrender.verify.report import CapabilityFinding, Counterexample
from unrender.verify.shown import Subject, show_after_prompt

_SAMPLES = 4
_ANSWERS = (
    Answer(content="Rain is likely."),
    Answer(content="Rain is likely.", reasoning="Look at the sky."),
    Answer(calls=((NAMES[0], {"text": "Rome", "count": 3}),)),
    Answer(reasoning="Look it up.", calls=((NAMES[1], {"flag": True}),)),
)


@dataclass(frozen=True, slots=True)
class _Dialect:
    engine: str
    write: Callable[[Emitted], object]
    read: Callable[..., Accepts]


_DIALECTS: Mapping[str, _Dialect] = MappingProxyType(
    {
        "grammar in Lark": _Dialect("llguidance", Emitted.lark, lark_reader),
        "grammar in GBNF": _Dialect("xgrammar", Emitted.gbnf, gbnf_reader),
        "structural tag": _Dialect("xgrammar", Emitted.structural_tag, tag_reader),
    }
)


def check_grammars(subject: Subject, seed: int) -> Iterator[CapabilityFinding]:
    """Yield whether generated answers are read, then for each dialect whether its engine accepts the right texts."""
    begun = prefill(subject.format, subject.prompt or "")
    emitted = Emitted(format=subject.format, request=REQUEST, begun=begun, handmade=subject.grammar)
    try:
        samples = [emitted.sample(seed + i) for i in range(_SAMPLES)]
    except GrammarError as error:
        yield from (finding(name, [], reason=str(error)) for name in ("generated answers", *_DIALECTS))
        return
    yield finding("generated answers", [_misread(subject, text) for text in samples])
    shown = [
        found.text for answer in _ANSWERS if claims(subject, answer) and (found := show_after_prompt(subject, answer))
    ]
    for name, dialect in _DIALECTS.items():
        if installed(dialect.engine):
            yield _accepted(subject, name, dialect, emitted, [*samples, *shown])
        else:
            yield finding(name, [], reason=f"{dialect.engine} is not installed, which reads it")


def _misread(subject: Subject, text: str) -> Counterexample | None:
    """Read a generated answer: it must be read without a complaint, and its calls must be whole."""
    parser = Parser(subject.format, REQUEST, grammar=subject.grammar, prompt=subject.prompt or "")
    events = [*parser.feed(text), *parser.finish()]
    malformed = next((event for event in events if isinstance(event, Malformed)), None)
    if malformed is None and not parser.message.dead_calls:
        return None
    found = f"at character {malformed.position}: expected {malformed.expected}" if malformed else "a call broke off"
    return Counterexample(answer=text, expected="an answer that is read", found=found, chunking="whole")


def _accepted(
    subject: Subject, name: str, dialect: _Dialect, emitted: Emitted, texts: Sequence[str]
) -> CapabilityFinding:
    try:
        with warnings.catch_warnings(action="ignore", category=SchemaWarning):
            accepts = dialect.read(dialect.write(emitted))
    except (GrammarError, ValueError) as error:
        return finding(name, [], reason=f"there is no such grammar: {error}")
    return finding(name, [_refused(subject, accepts, text) for text in texts])


def _refused(subject: Subject, accepts: Accepts, text: str) -> Counterexample | None:
    if any(accepts(form) for form in with_and_without_end(subject.format, text)):
        return None
    return Counterexample(answer=text, expected="accepted", found="refused by the grammar", chunking="whole")
