"""Verifies a template: renders random answers of every kind, parses them, and reports the result for each capability.

Strategy: `renditions` extracts the answer from a rendering. If the template drops part of the answer, the capability is skipped. Each
answer is parsed in one piece, character by character, and in random chunks, with and without the end-of-turn marker. Prompts, further
turns, grammars and the history are checked afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from os import PathLike
from random import Random

from unrender.analysis import Capabilities, stored
from unrender.chat_template import ChatTemplate, as_template
from unrender.format import Format
from unrender.rendering.template import Template
from unrender.signatures import checked
from unrender.verify import hostile, judge
from unrender.verify.axes import AXES, TOOL_NAMES, proof_answer, proof_id
from unrender.verify.forgery import forgeries
from unrender.verify.grammars import check_grammars
from unrender.verify.judge import Run
from unrender.verify.next_turns import NEXT_TURNS, check_append_only, check_next_turns
from unrender.verify.renditions import Candidate, show
from unrender.verify.verdicts import CapabilityFinding, Counterexample, Report

GRAMMARS = "grammars"
"""Name of the check that loads the installed engine libraries. Loading them takes seconds."""
_FEW = 2
"""Number of samples in `verify_quickly`."""


@checked
def verify(
    template: ChatTemplate | str | PathLike[str],
    *,
    samples: int = 8,
    seed: int = 0,
    only: Collection[str] = (),
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Check a template's derived format, or the format or grammar passed to it, against the template's own renderings.

    `template` may also be an argument of `ChatTemplate.from_pretrained`. `samples` answers are generated for each capability. The same `seed` gives the same answers. `progress` is called with the name of each
    completed capability. `only` names the `CHECKS` to run; by default, all are run. Grammars are checked with the installed engine
    libraries. If the template rejects a conversation, the capability is skipped. If the template renders no conversation, nothing is
    checked, and `Report.refusal` contains the reason. Raises `GrammarError` if a handwritten grammar doesn't allow the prefill of a prompt.
    """
    template = as_template(template)
    run = _run(template, samples, seed)
    if refusal := run.candidate.refusal:
        return Report(findings=(), refusal=refusal)
    findings = []
    for made in (check(run) for name, check in _CHECKS.items() if not only or name in only):
        for found in (made,) if isinstance(made, CapabilityFinding) else made:
            if progress:
                progress(found.capability)
            findings.append(found)
    history = () if only else (*judge.check_history(run.candidate), check_append_only(template))
    return Report(findings=tuple(findings), history=history, forgeries=() if only else forgeries(template))


def verify_quickly(template: ChatTemplate) -> Report:
    """Check a format in about a second, with few samples, and without grammars and the slowest checks.

    The report on a derived format is cached on disk, like the analysis.
    """
    derived = template._grammar is None and template.format == template.analysis.format
    found: Report | None = stored.load(template._with_tools, Report) if derived else None
    if found is None:
        found = verify(template, samples=_FEW, only=QUICK_CHECKS)
        if derived:
            stored.store(template._with_tools, found)
    return found


def verify_format(format: Format, *, seed: int = 0) -> Report:
    """Check a format without a template, e.g. one written by hand.

    The format has to parse the text that its own grammars generate, and engines have to accept that text. `passed` is always False for such
    a report, because no template was rendered.
    """
    candidate = Candidate(template=Template(""), format=format, capabilities=Capabilities())
    return Report(findings=tuple(check_grammars(candidate, seed)))


def _run(template: ChatTemplate, samples: int, seed: int) -> Run:
    candidate = Candidate.of(template)
    random = Random(seed)  # noqa: S311 - reproducible, not secret
    answers = [answer for axis in AXES.values() if candidate.claims(answer := axis(random))]
    return Run(template=template, candidate=candidate, random=random, samples=samples, seed=seed, answers=answers)


def _axis(capability: str, run: Run) -> CapabilityFinding:
    random = Random(f"{run.seed}:{capability}")  # noqa: S311 - as above
    return replace(run, random=random).judged(capability, [AXES[capability](random) for _ in range(run.samples)])


def _ids(run: Run) -> CapabilityFinding:
    """Check that call ids are recovered if the template writes them."""
    candidate, answer = run.candidate, proof_answer(calls=((TOOL_NAMES[0], {"text": "id"}),))
    shown = show(candidate, answer)
    if not shown or proof_id(0) not in shown.answer:
        return judge.finding("call ids", [], reason="the template doesn't write them")
    message = candidate.read(shown.read_after(candidate.format), [shown.answer]).message
    if [call.id for call in message.tool_calls] == [proof_id(0)]:
        return judge.finding("call ids", [None])
    wrong = Counterexample(answer=shown.answer, expected=proof_id(0), found=judge.message_json(message))
    return judge.finding("call ids", [wrong])


_CHECKS: Mapping[str, Callable[[Run], CapabilityFinding | Iterable[CapabilityFinding]]] = {
    **{capability: partial(_axis, capability) for capability in AXES},
    "call ids": _ids,
    "thinking": judge.thinking,
    "second turn": judge.second_turn,
    "later turns": judge.later_turns,
    "message shapes": judge.message_shapes,
    "markers in a question": judge.markers_in_question,
    "marker words in text": hostile.words_in_text,
    "calls of unknown tools": hostile.unknown_tools,
    "unusual names of tools": hostile.tool_names,
    "unusual names of arguments": hostile.argument_names,
    "tools without parameters": hostile.no_parameters,
    "text in strings": hostile.strings,
    "stop strings": hostile.stops,
    "stray closers": hostile.stray_closers,
    "empty results": hostile.empty_results,
    "structured results": lambda run: hostile.structured_results(run.template),
    NEXT_TURNS: lambda run: check_next_turns(run.template, run.random),
    GRAMMARS: lambda run: check_grammars(run.candidate, run.seed),
}
"""Maps the names of the checks to their functions, in the order in which they run. Each function may return several findings."""
CHECKS = tuple(_CHECKS)
"""Names of the checks, for `verify(only=…)`."""
QUICK_CHECKS = tuple(name for name in CHECKS if name not in (GRAMMARS, "text in strings", NEXT_TURNS))
"""Names of the checks in `verify_quickly`."""
