"""Verifies a format: renders answers with the template, parses them, and compares the results.

The input is a `ChatTemplate`, a format, or a response template. The result is a `Report` with a verdict on each capability, and the
smallest counterexample of each failed one. `renditions` generates random answers, and extracts the model's text from their renderings. `judge` parses the text in one
piece, character by character, and in random chunks, and compares the messages. `grammars` tests grammars with engines, and checks that
generated text follows the template. `response_templates` checks transformers' own parser. `Turn.next` is
tested by extending prompts with answers and messages: the expected text is taken from a rendering of the complete conversation, without the
code under test. An `ExtendError` isn't a failure.

Rules: nothing is assumed about a template. A capability that the template renders passes or fails. A capability that the template doesn't
render is skipped, and listed in the report as skipped. A parser only has to recover text that the rendering contains.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from random import Random
from typing import Any

from unrender.analysis import stored
from unrender.analysis.ask import Prober
from unrender.chat_template import ChatTemplate, as_template
from unrender.conversation.messages import Said, conversation_of
from unrender.errors import ExtendError, TemplateWarning, UnrenderError
from unrender.format import Format
from unrender.proof import said_by, with_and_without_end
from unrender.rendering import Template
from unrender.signatures import checked
from unrender.turn import Turn
from unrender.verify.grammars import check_grammars
from unrender.verify.hostile import (
    argument_names,
    empty_results,
    forgeries,
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
    with_ids,
)
from unrender.verify.renditions import (
    AXES,
    PROOF_TOOLS,
    TOOL_NAMES,
    Candidate,
    proof_answer,
    proof_id,
    prose,
    show,
    show_after_prompt,
)
from unrender.verify.verdicts import CapabilityFinding, Counterexample, Report, Verdict

__all__ = ["Report", "Verdict", "verify"]


_WORD = "Quorndal"
_ASKED: Mapping[str, Any] = {"role": "user", "content": "What about zebra crossings?"}
_NEXT: Mapping[str, Any] = {"role": "user", "content": "And what about unicorns?"}
_CALLS = ((TOOL_NAMES[0], {"text": "to Rome"}), (TOOL_NAMES[1], {"note": f"near {_WORD}"}))
NEXT_TURNS, APPEND_ONLY = "next turns", "append-only"
_TRIES = 3
"""Maximum number of attempts to get two identical renderings of a prompt, which may contain the current time."""


def check_next_turns(template: ChatTemplate, random: Random) -> CapabilityFinding:
    """Compare the text that follows answers of all kinds, when results or questions are added."""
    asked = (offered for tools in (PROOF_TOOLS, ()) if (offered := _asked(template, tools)))
    if template._grammar or (found := next(asked, None)) is None:
        return finding(NEXT_TURNS, [], reason="the prompt isn't the template's own")
    candidate, prepared = found
    bare = template.prepare_rendered(prepared.prompt, tools=candidate.tools)
    extended = [_extended(turn, case) for case in _cases(candidate, prepared, random) for turn in (prepared, bare)]
    tried = [found for found in extended if not isinstance(found, ExtendError)]
    reason = str(extended[0]) if extended else "no rendering shows the text after answers"
    return finding(NEXT_TURNS, tried, reason=reason)


def check_append_only(template: ChatTemplate) -> CapabilityFinding:
    """Check that the template is append-only. If it isn't, the finding contains the shortest conversation that the template rewrites."""
    witness = template.continuation.witness
    verdict = Verdict.PASSED if witness is None else Verdict.FAILED
    return CapabilityFinding(capability=APPEND_ONLY, verdict=verdict, reason="" if witness is None else str(witness))


def _asked(template: ChatTemplate, tools: tuple[dict[str, Any], ...]) -> tuple[Candidate, Turn] | None:
    """Return a candidate and its prepared turn. Returns None unless `prepare` returns exactly the template's own prompt."""
    for _ in range(_TRIES):
        # Use the end-of-sequence token that turns use, without a placeholder.
        candidate = Candidate.of(template, template._with_tools.eos_token).offering(tools)
        try:
            turn = template.prepare([_ASKED], tools=tools)
        except UnrenderError:
            return None
        if turn.prompt == candidate.prompt:
            return candidate, turn
    return None


def _answers(random: Random) -> Iterator[Said]:
    said, thought = f"{prose(random)} {_WORD}", prose(random)
    yield proof_answer(content=said)
    yield proof_answer(content=said, reasoning=thought)
    yield proof_answer(calls=_CALLS[1:])
    yield proof_answer(calls=_CALLS)
    yield proof_answer(content=prose(random), calls=_CALLS[1:])
    yield proof_answer(reasoning=thought, calls=_CALLS[1:])


_Case = tuple[str, Sequence[Mapping[str, Any]], str]
"""An answer, the messages after it, and the template's text after the answer."""


def _cases(candidate: Candidate, turn: Turn, random: Random) -> Iterator[_Case]:
    for answer in _answers(random):
        shown = show_after_prompt(candidate, answer)
        bare = min(with_and_without_end(candidate.format, shown.answer), key=len) if shown else ""
        if bare.count(_WORD) != 1:
            continue
        said = with_ids(answer, said_by(turn.parse(bare)))
        results: list[Mapping[str, Any]] = [
            {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": f"{prose(random)} {i}"}
            for i, call in enumerate(said.calls)
        ]
        closers = bare.rpartition(_WORD)[2]
        for following in ([*results, _NEXT], results or [_NEXT, _NEXT]):
            whole = candidate.prompt_after(said, *conversation_of(following)) or ""
            behind = whole.rpartition(_WORD)[2]
            shows = all(str(message["content"]) in behind for message in following)
            # Skip the case if the template moves or leaves out part of the answer, because the text after the answer then isn't visible.
            if whole.count(_WORD) == 1 and behind.startswith(closers) and shows:
                yield bare, following, behind[len(closers) :]


def _extended(turn: Turn, case: _Case) -> Counterexample | ExtendError | None:
    """Return a counterexample, or None if the appended text is right. If `Turn.next` raises an `ExtendError`, return that error."""
    answer, following, right = case
    with warnings.catch_warnings(action="ignore", category=TemplateWarning):
        try:
            found = turn.next(answer, following).prompt
        except ExtendError as error:
            return error
    kept = turn.prompt + answer
    return None if found == kept + right else Counterexample(answer=answer, expected=right, found=found[len(kept) :])


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
    candidate = Candidate(prober=Prober(template=Template("")), format=format)
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
