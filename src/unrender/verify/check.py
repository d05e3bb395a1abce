"""Verifies a template: renders random answers along all axes, parses them back, and reports per capability.

Strategy: `renditions` cuts the answer out of a rendering. Only what the rendering shows is expected back; what it drops makes
the capability skipped. Each answer is parsed whole, character by character, and in random chunks, with and without the
end of turn. Then comes what surrounds an answer: prompts, further turns, grammars, and the history that grows from turn to turn.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from random import Random
from typing import Self

from unrender.analysis import Capabilities
from unrender.chat_template import ChatTemplate
from unrender.conversation.messages import Said
from unrender.format import Format
from unrender.rendering.template import Template
from unrender.verify import hostile, judge
from unrender.verify.axes import AXES, TOOL_NAMES, proof_answer, proof_id
from unrender.verify.grammars import check_grammars
from unrender.verify.next_turns import NEXT_TURNS, check_append_only, check_next_turns
from unrender.verify.renditions import Candidate, show
from unrender.verify.verdicts import CapabilityFinding, Counterexample, Report

GRAMMARS = "grammars"
"""The check that loads engines, which takes seconds where they are installed."""


def verify(
    template: ChatTemplate,
    *,
    samples: int = 8,
    seed: int = 0,
    only: Collection[str] = (),
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Check the format of a template, or the format or grammar that it was given, against the template's own renderings.

    `samples` answers are made for each capability, the same for the same `seed`; `progress` is called with the name of each
    capability when it is done. `only` names the `CHECKS` to make, instead of all. Grammars are checked with the engines that
    are installed. A refusal of the template raises nothing: the capability is skipped, and a template that renders no conversation
    at all is not checked, as `Report.refusal` says. Raises `GrammarError` when a prompt begins an answer that a grammar made by
    hand does not allow.
    """
    run = _Run.of(template, samples, seed)
    if refusal := run.candidate.refusal:
        return Report(findings=(), refusal=refusal)
    findings = []
    for found in chain.from_iterable(check(run) for name, check in _CHECKS.items() if not only or name in only):
        if progress:
            progress(found.capability)
        findings.append(found)
    history = () if only else (*judge.check_history(run.candidate), check_append_only(template))
    return Report(findings=tuple(findings), history=history)


def verify_format(format: Format, *, seed: int = 0) -> Report:
    """Check a format by itself, e.g. one written by hand.

    Text that its grammars generate must be read as meant, and engines must accept it. Such a report never has `passed`: no
    template has written anything.
    """
    candidate = Candidate(template=Template(""), format=format, capabilities=Capabilities())
    return Report(findings=tuple(check_grammars(candidate, seed)))


@dataclass(frozen=True, slots=True)
class _Run:
    """What the checks of one run share."""

    template: ChatTemplate
    candidate: Candidate
    samples: int
    seed: int
    random: Random
    answers: Sequence[Said]
    """An answer of each axis that the format claims to read."""

    @classmethod
    def of(cls, template: ChatTemplate, samples: int, seed: int) -> Self:
        candidate = Candidate.of(template)
        random = Random(seed)  # noqa: S311 - reproducible, not secret
        answers = [answer for axis in AXES.values() if candidate.claims(answer := axis(random))]
        return cls(template, candidate, samples, seed, random, answers)


def _axis(capability: str, run: _Run) -> Iterator[CapabilityFinding]:
    random = Random(f"{run.seed}:{capability}")  # noqa: S311 - as above
    answers = [AXES[capability](random) for _ in range(run.samples)]
    yield judge.judge_capability(run.candidate, capability, answers, random)


def _ids(candidate: Candidate) -> CapabilityFinding:
    """Check that a call's id comes back where the template writes it."""
    answer = proof_answer(calls=((TOOL_NAMES[0], {"text": "id"}),))
    shown = show(candidate, answer)
    if not shown or proof_id(0) not in shown.answer:
        return judge.finding("call ids", [], reason="the template does not write the ids it is given")
    message = candidate.read(shown.read_after(candidate.format), [shown.answer]).message
    if [call.id for call in message.tool_calls] == [proof_id(0)]:
        return judge.finding("call ids", [None])
    wrong = Counterexample(answer=shown.answer, expected=proof_id(0), found=judge.message_json(message))
    return judge.finding("call ids", [wrong])


_CHECKS: Mapping[str, Callable[[_Run], Iterable[CapabilityFinding]]] = {
    **{capability: partial(_axis, capability) for capability in AXES},
    "call ids": lambda run: [_ids(run.candidate)],
    "thinking": lambda run: (judge.thinking(run.candidate, run.answers, run.random, on=on) for on in (True, False)),
    "second turn": lambda run: [judge.second_turn(run.candidate, run.answers)],
    "later turns": lambda run: judge.later_turns(run.candidate, run.answers, run.random),
    "message shapes": lambda run: [judge.message_shapes(run.candidate)],
    "markers in a question": lambda run: [judge.markers_in_question(run.candidate, run.answers, run.random)],
    "marker words in text": lambda run: [hostile.words_in_text(run.candidate, run.random)],
    "calls of unknown tools": lambda run: [hostile.unknown_tools(run.candidate, run.random)],
    "unusual names of tools": lambda run: [hostile.tool_names(run.candidate, run.random)],
    "unusual names of arguments": lambda run: [hostile.argument_names(run.candidate, run.random)],
    "tools without parameters": lambda run: [hostile.no_parameters(run.candidate, run.random)],
    "text in strings": lambda run: hostile.strings(run.candidate, run.random),
    "stop texts": lambda run: [hostile.stops(run.candidate)],
    "stray closers": lambda run: [hostile.stray_closers(run.candidate)],
    "empty results": lambda run: [hostile.empty_results(run.candidate, run.random)],
    "structured results": lambda run: [hostile.structured_results(run.template)],
    NEXT_TURNS: lambda run: [check_next_turns(run.template, run.random)],
    GRAMMARS: lambda run: check_grammars(run.candidate, run.seed),
}
"""The checks, in the order in which they are made; a check may have several findings."""
CHECKS = tuple(_CHECKS)
"""The names of the checks, for those who make them one by one."""
