"""Verifies a format: renders answers with the template, parses them, and compares the results.

The input is a `ChatTemplate`, a format, or a response template. The result is a `Report` with a verdict on each capability, and the
smallest counterexample of each failed one. `renditions` generates random answers, and extracts the model's text from their renderings. `judge` parses the text in one
piece, character by character, and in random chunks, and compares the messages. `grammars` tests grammars with engines, and checks that
generated text follows the template. `response_templates` checks transformers' own parser.

Rules: nothing is assumed about a template. A capability that the template renders passes or fails. A capability that the template doesn't
render is skipped, and listed in the report as skipped. A parser only has to recover text that the rendering contains.
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
from unrender.verify.forgery import forgeries
from unrender.verify.grammars import check_grammars
from unrender.verify.hostile import (
    argument_names,
    empty_results,
    no_parameters,
    stops,
    stray_closers,
    strings,
    structured_results,
    tool_names,
    unknown_tools,
    words_in_text,
)
from unrender.verify.judge import (
    Run,
    check_history,
    finding,
    later_turns,
    markers_in_question,
    message_json,
    message_shapes,
    second_turn,
    thinking,
)
from unrender.verify.next_turns import NEXT_TURNS, check_append_only, check_next_turns
from unrender.verify.renditions import AXES, TOOL_NAMES, Candidate, proof_answer, proof_id, show
from unrender.verify.verdicts import CapabilityFinding, Counterexample, Report, Verdict

__all__ = ["Report", "Verdict", "verify"]


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
    history = () if only else (*check_history(run.candidate), check_append_only(template))
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
        return finding("call ids", [], reason="the template doesn't write them")
    message = candidate.read(shown.read_after(candidate.format), [shown.answer]).message
    if [call.id for call in message.tool_calls] == [proof_id(0)]:
        return finding("call ids", [None])
    wrong = Counterexample(answer=shown.answer, expected=proof_id(0), found=message_json(message))
    return finding("call ids", [wrong])


_CHECKS: Mapping[str, Callable[[Run], CapabilityFinding | Iterable[CapabilityFinding]]] = {
    **{capability: partial(_axis, capability) for capability in AXES},
    "call ids": _ids,
    "thinking": thinking,
    "second turn": second_turn,
    "later turns": later_turns,
    "message shapes": message_shapes,
    "markers in a question": markers_in_question,
    "marker words in text": words_in_text,
    "calls of unknown tools": unknown_tools,
    "unusual names of tools": tool_names,
    "unusual names of arguments": argument_names,
    "tools without parameters": no_parameters,
    "text in strings": strings,
    "stop strings": stops,
    "stray closers": stray_closers,
    "empty results": empty_results,
    "structured results": lambda run: structured_results(run.template),
    NEXT_TURNS: lambda run: check_next_turns(run.template, run.random),
    GRAMMARS: lambda run: check_grammars(run.candidate, run.seed),
}
"""Maps the names of the checks to their functions, in the order in which they run. Each function may return several findings."""
CHECKS = tuple(_CHECKS)
"""Names of the checks, for `verify(only=…)`."""
QUICK_CHECKS = tuple(name for name in CHECKS if name not in (GRAMMARS, "text in strings", NEXT_TURNS))
"""Names of the checks in `verify_quickly`."""
