"""Verifies a template: renders random answers along all axes, parses them back, and reports per capability.

Strategy: the answer to be parsed is what the full rendering adds after the generation prompt, or after the header where
the prompt writes more than the history keeps. Only what the rendering shows is expected back; what it drops makes the
capability not observable. Each answer is parsed whole, character by character, and in random chunks, with and without the
end of turn. Then what surrounds an answer: prompts, further turns, grammars, and the history that grows from turn to turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Protocol

from unrender.analysis import Analysis, Capabilities, analyze
from unrender.format import Format
from unrender.grammar import Grammar
from unrender.rendering.template import Template
from unrender.verify.axes import AXES, NAMES, Answer, call_id
from unrender.verify.grammars import check_grammars
from unrender.verify.history import check_history
from unrender.verify.judge import claims, described, finding, judge_capability, parse
from unrender.verify.report import CapabilityFinding, Counterexample, Report
from unrender.verify.shown import Subject, show
from unrender.verify.turns import (
    later_turns,
    markers_in_question,
    message_shapes,
    second_turn,
    text_in_strings,
    thinking,
)


class Analysed(Protocol):
    """A template with its analysis; `unrender.ChatTemplate` is one."""

    @property
    def template(self) -> Template: ...
    @property
    def analysis(self) -> Analysis: ...
    @property
    def format(self) -> Format: ...
    @property
    def grammar(self) -> Grammar | None: ...


def verify(
    template: Template | Analysed,
    *,
    analysis: Analysis | None = None,
    samples: int = 8,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Check the format of a template against the template's own renderings.

    A `ChatTemplate` brings its analysis along, and the format or the grammar that it was given, if any; a bare template
    is analysed first. `samples` answers are made for each capability, the same for the same `seed`; `progress` is
    called with the name of each capability when it is done. Grammars are checked with the engines that are installed. A
    refusal of the template raises nothing: the capability is not observable. Raises `GrammarError` when a prompt begins
    an answer that a grammar made by hand does not allow.
    """
    grammar = None
    if not isinstance(template, Template):
        grammar = template.grammar
        analysis = analysis or replace(template.analysis, format=template.format)
        template = template.template
    known = analysis or analyze(template)
    subject = Subject(
        template=template,
        format=known.format.ended_by(template.eos_token),
        capabilities=known.capabilities,
        grammar=grammar,
        gave_up=bool(known.given_up),
    )
    findings = []
    for found in _findings(subject, samples, seed):
        if progress:
            progress(found.capability)
        findings.append(found)
    return Report(findings=tuple(findings), history=tuple(check_history(subject)))


def verify_format(format: Format, *, seed: int = 0) -> Report:
    """Check a format by itself, e.g. one written by hand.

    Text that its grammars generate must be read as meant, and engines must accept it.
    """
    subject = Subject(template=Template(""), format=format, capabilities=Capabilities())
    return Report(findings=tuple(check_grammars(subject, seed)))


def _findings(subject: Subject, samples: int, seed: int) -> Iterator[CapabilityFinding]:
    for capability, axis in AXES.items():
        random = Random(f"{seed}:{capability}")  # noqa: S311 - reproducible, not secret
        yield judge_capability(subject, capability, [axis(random) for _ in range(samples)], random)
    yield _ids(subject)
    random = Random(seed)  # noqa: S311 - as above
    answers = [answer for axis in AXES.values() if claims(subject, answer := axis(random))]
    yield from (thinking(subject, answers, random, on=on) for on in (True, False))
    yield second_turn(subject, answers)
    yield from later_turns(subject, answers, random)
    yield message_shapes(subject)
    yield markers_in_question(subject, answers, random)
    yield text_in_strings(subject, random)
    yield from check_grammars(subject, seed)


def _ids(subject: Subject) -> CapabilityFinding:
    """Check that a call's id comes back where the template writes it."""
    answer = Answer(calls=((NAMES[0], {"text": "id"}),))
    shown = show(subject, answer)
    if not shown or call_id(0) not in shown.text:
        return finding("call ids", [], reason="the template does not write the ids it is given")
    message = parse(subject, shown.prompt, [shown.text])
    if [call.id for call in message.tool_calls] == [call_id(0)]:
        return finding("call ids", [None])
    wrong = Counterexample(answer=shown.text, expected=call_id(0), found=described(message), chunking="whole")
    return finding("call ids", [wrong])
