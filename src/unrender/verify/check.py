"""Verifies a template: renders random answers along all axes, parses them back, and reports per capability.

Strategy: `renditions` cuts the answer out of a rendering. Only what the rendering shows is expected back; what it drops makes
the capability not observable. Each answer is parsed whole, character by character, and in random chunks, with and without the
end of turn. Then comes what surrounds an answer: prompts, further turns, grammars, and the history that grows from turn to turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from unrender.analysis import Capabilities
from unrender.chat_template import ChatTemplate
from unrender.format import Format
from unrender.rendering.template import Template
from unrender.verify import judge
from unrender.verify.axes import AXES, TOOL_NAMES, ProofAnswer, proof_id
from unrender.verify.grammars import check_grammars
from unrender.verify.renditions import Candidate, show
from unrender.verify.verdicts import CapabilityFinding, Counterexample, Report


def verify(
    template: ChatTemplate, *, samples: int = 8, seed: int = 0, progress: Callable[[str], None] | None = None
) -> Report:
    """Check the format of a template, or the format or grammar that it was given, against the template's own renderings.

    `samples` answers are made for each capability, the same for the same `seed`; `progress` is called with the name of each
    capability when it is done. Grammars are checked with the engines that are installed. A refusal of the template raises
    nothing: the capability is not observable. Raises `GrammarError` when a prompt begins an answer that a grammar made by
    hand does not allow.
    """
    candidate = Candidate.of(template)
    findings = []
    for found in _findings(candidate, samples, seed):
        if progress:
            progress(found.capability)
        findings.append(found)
    return Report(findings=tuple(findings), history=tuple(judge.check_history(candidate)))


def verify_format(format: Format, *, seed: int = 0) -> Report:
    """Check a format by itself, e.g. one written by hand.

    Text that its grammars generate must be read as meant, and engines must accept it.
    """
    candidate = Candidate(template=Template(""), format=format, capabilities=Capabilities())
    return Report(findings=tuple(check_grammars(candidate, seed)))


def _findings(candidate: Candidate, samples: int, seed: int) -> Iterator[CapabilityFinding]:
    for capability, axis in AXES.items():
        random = Random(f"{seed}:{capability}")  # noqa: S311 - reproducible, not secret
        yield judge.judge_capability(candidate, capability, [axis(random) for _ in range(samples)], random)
    yield _ids(candidate)
    random = Random(seed)  # noqa: S311 - as above
    answers = [answer for axis in AXES.values() if judge.claims(candidate, answer := axis(random))]
    yield from (judge.thinking(candidate, answers, random, on=on) for on in (True, False))
    yield judge.second_turn(candidate, answers)
    yield from judge.later_turns(candidate, answers, random)
    yield judge.message_shapes(candidate)
    yield judge.markers_in_question(candidate, answers, random)
    yield judge.text_in_strings(candidate, random)
    yield from check_grammars(candidate, seed)


def _ids(candidate: Candidate) -> CapabilityFinding:
    """Check that a call's id comes back where the template writes it."""
    answer = ProofAnswer(calls=((TOOL_NAMES[0], {"text": "id"}),))
    shown = show(candidate, answer)
    if not shown or proof_id(0) not in shown.text:
        return judge.finding("call ids", [], reason="the template does not write the ids it is given")
    message = judge.parse(candidate, shown.prompt, [shown.text])
    if [call.id for call in message.tool_calls] == [proof_id(0)]:
        return judge.finding("call ids", [None])
    wrong = Counterexample(answer=shown.text, expected=proof_id(0), found=judge.message_json(message))
    return judge.finding("call ids", [wrong])
