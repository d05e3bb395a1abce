"""Checks `Turn.next`: extends prompts with answers and messages, and compares the result with the template's own text.

Rules: the expected text is taken from a rendering of the complete conversation, after a word that ends the answer. This text is computed
without the code under test. An `ExtendError` raised by `Turn.next` isn't a failure.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from unrender.chat_template import ChatTemplate
from unrender.conversation.messages import Said, conversation_of
from unrender.errors import ExtendError, TemplateWarning, UnrenderError
from unrender.proof.reading import said_by, with_and_without_end
from unrender.turn import Turn
from unrender.verify.judge import finding, with_ids
from unrender.verify.renditions import PROOF_TOOLS, TOOL_NAMES, Candidate, proof_answer, prose, show_after_prompt
from unrender.verify.verdicts import CapabilityFinding, Counterexample, Verdict

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
