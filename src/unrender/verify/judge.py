"""Parses and compares rendered answers in many chunkings, and checks prompts, further turns, message shapes and the history.

Rules: a history that changes between turns is a problem of the template, not of the format. Caching and training need each prompt to start
with the previous prompt and its answer. Parsing doesn't need this.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random
from typing import Any

from unrender.analysis.ask import result, user
from unrender.chat_template import ChatTemplate
from unrender.conversation.messages import Conversation, Said, conversation_of
from unrender.format import Format
from unrender.messages import Message
from unrender.nodes import Role
from unrender.proof import (
    CutOut,
    ReadAnswer,
    as_message,
    misread_parts,
    said_by,
    with_and_without_end,
    written_alike,
)
from unrender.verify.renditions import TOOL_NAMES, Candidate, proof_answer, proof_id, show, show_after_prompt
from unrender.verify.verdicts import CapabilityFinding, Counterexample, Verdict

NOT_WRITTEN = "not rendered by the template"
NOT_CLAIMED = "not part of the format"


def finding(capability: str, tried: Sequence[Counterexample | None], *, reason: str = NOT_WRITTEN) -> CapabilityFinding:
    """Return the finding for a list of counterexamples, in which None stands for a success.

    If the list is empty, the capability is skipped for the given `reason`.
    """
    if not tried:
        return CapabilityFinding(capability=capability, verdict=Verdict.SKIPPED, reason=reason)
    failures = [failure for failure in tried if failure]
    return CapabilityFinding(
        capability=capability,
        verdict=Verdict.FAILED if failures else Verdict.PASSED,
        held=len(tried) - len(failures),
        total=len(tried),
        counterexample=min(failures, key=lambda failure: len(failure.answer), default=None),
    )


def as_meant(candidate: Candidate, shown: CutOut, reading: ReadAnswer) -> bool:
    """Return True if the answer was parsed as intended, or into a message with the same rendering."""
    # A sound format knows where reasoning starts. If only the end marker shows it, a stream can't be parsed correctly.
    if reading.split:
        return False
    # Text outside of calls must be equal, because it's rendered verbatim.
    own = reading.own
    return not misread_parts(shown.said, own) or written_alike(candidate.writes, shown, own, {Role.CALL})


def as_meant_or_refused(candidate: Candidate, shown: CutOut, reading: ReadAnswer) -> bool:
    """Return True if the answer was parsed as intended, or if an error was reported and there are no calls."""
    return as_meant(candidate, shown, reading) or (reading.reported and not reading.message.tool_calls)


def refute(candidate: Candidate, shown: CutOut, random: Random, judge: Judge = as_meant) -> Counterexample | None:
    """Return a counterexample if the answer is parsed incorrectly in any chunking, or else None."""
    for text in with_and_without_end(candidate.format, shown.answer):
        for chunking, chunks in _chunkings(text, random, in_letters=text == shown.answer):
            reading = candidate.read(shown.read_after(candidate.format), chunks)
            if not judge(candidate, shown, reading):
                expected, found = message_json(as_message(shown.said)), message_json(reading.message)
                return Counterexample(answer=text, expected=expected, found=found, chunking=chunking)
    return None


Judge = Callable[[Candidate, CutOut, ReadAnswer], bool]
"""Function that returns True if an answer was parsed correctly."""
Show = Callable[[Candidate, Said], CutOut | None]
"""Function that renders an answer. Returns None if the rendering doesn't show the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """State shared by all checks of one template."""

    template: ChatTemplate
    candidate: Candidate
    random: Random
    samples: int
    seed: int
    answers: Sequence[Said]
    """An answer for each capability that the format claims to parse."""

    def judged(
        self,
        capability: str,
        answers: Iterable[Said],
        judge: Judge = as_meant,
        *,
        render: Show = show,
        reason: str = NOT_WRITTEN,
    ) -> CapabilityFinding:
        """Return the verdict on a capability from answers that use it.

        If the template renders none of the answers, the capability is skipped, with `reason` as the reason.
        """
        shown = [found for answer in answers if (found := render(self.candidate, answer))]
        claimed = [found for found in shown if self.candidate.claims(found.said)]
        return finding(capability, self.refutations(claimed, judge), reason=NOT_CLAIMED if shown else reason)

    def refutations(self, shown: Iterable[CutOut], judge: Judge = as_meant) -> list[Counterexample | None]:
        """Return one element per answer: a counterexample, or None if the answer was parsed correctly."""
        return [refute(self.candidate, found, self.random, judge) for found in shown]

    def asking(self, candidate: Candidate) -> Run:
        """Return the run with another question, other tools or other earlier messages."""
        return replace(self, candidate=candidate)


def claimed(candidate: Candidate, answers: Iterable[Said], render: Show = show) -> list[CutOut]:
    """Return the answers that the format claims to parse and that the template renders."""
    return [found for answer in answers if candidate.claims(answer) and (found := render(candidate, answer))]


def _chunkings(text: str, random: Random, *, in_letters: bool) -> Iterator[tuple[str, Iterable[str]]]:
    yield "whole", [text]
    # Single characters split every marker. With and without its end marker, an answer contains the same other markers, so only one of these
    # two forms is tested in single characters.
    if in_letters:
        yield "every 1", text
    # Also split the text at a few random positions, which leaves most markers intact.
    cuts = sorted({0, len(text), *(random.randint(0, len(text)) for _ in range(5))})
    yield f"at {cuts}", [text[a:b] for a, b in pairwise(cuts)]


def message_json(message: Message) -> str:
    """Return a message as JSON, including its failed calls."""
    failed = [f"{call.name}: {call.status}" for call in message.failed_calls]
    return json.dumps({**message.to_openai(), **({"failed_calls": failed} if failed else {})}, ensure_ascii=False)


# Prompts, turns and history.


_RESULT = "It is 7 degrees."
_CALL = (TOOL_NAMES[0], {"text": "Rome"})
_QUESTION = (user("And unicorns?"),)
_RESULTS = (Said(role="tool", answers=proof_id(0), content=_RESULT),)
_TURNS: Mapping[str, tuple[Said, Conversation]] = {
    "content, then a question": (proof_answer(content="They are striped."), _QUESTION),
    "reasoning, then a question": (proof_answer(content="They are striped.", reasoning="Animals."), _QUESTION),
    "call, then its result": (proof_answer(calls=(_CALL,)), _RESULTS),
    "reasoning and call, then its result": (proof_answer(reasoning="Animals.", calls=(_CALL,)), _RESULTS),
}


def thinking(run: Run) -> Iterator[CapabilityFinding]:
    """Parse answers after real prompts, with thinking on and then off."""
    switch = run.candidate.prober.capabilities.supports_enable_thinking
    for on in (True, False):
        answers = [answer for answer in run.answers if switch and (on or not answer.reasoning)]
        reason = NOT_WRITTEN if switch else "the template has no thinking switch"
        switched = run.asking(replace(run.candidate, thinking=on))
        yield switched.judged(f"thinking {'on' if on else 'off'}", answers, render=show_after_prompt, reason=reason)


def second_turn(run: Run) -> CapabilityFinding:
    """Send parsed calls back with their results. The next prompt must be the same as it is for the original calls."""
    candidate, tried = run.candidate, []
    for answer in run.answers:
        if not answer.calls or not (found := show(candidate, answer)):
            continue
        parsed = said_by(candidate.read(found.read_after(candidate.format), [found.answer]).message)
        expected = _with_results(candidate, with_ids(answer, parsed))
        if expected is not None:
            # A parsed call must be rendered like the original one, e.g. with its arguments in the same order.
            tried.append(_unlike(found.answer, expected, _with_results(candidate, parsed)))
    return finding("second turn", tried, reason="the template doesn't support tool results")


def with_ids(said: Said, parsed: Said) -> Said:
    """Replace the ids of calls with the parsed ids, because a format without ids can't recover the original ones."""
    calls = tuple(replace(call, id=read.id) for call, read in zip(said.calls, parsed.calls, strict=False))
    return replace(said, calls=calls or said.calls)


def _with_results(candidate: Candidate, said: Said) -> str | None:
    return candidate.prompt_after(said, *(replace(result(call, _RESULT), name=None) for call in said.calls))


def later_turns(run: Run) -> Iterator[CapabilityFinding]:
    """Parse answers to a second question and to a tool result.

    Text of an earlier turn must not count as a prefill, so an empty answer must have no content and no calls.
    """
    call, said = proof_answer(calls=(_CALL,)), proof_answer(content="Some are.", reasoning="Animals.")
    after_result = run.answers if show(run.candidate, call) else ()
    for capability, last, asked in (
        ("after another answer", said, run.answers),
        ("after a tool's result", call, after_result),
    ):
        later = replace(run.candidate, before=(user("Are they striped?"), last))
        shown = [found for answer in asked if (found := show(later, answer))]
        message = later.read(later.prompt or "", []).message if shown else Message()
        wrong = Counterexample(answer="", expected=message_json(Message()), found=message_json(message))
        begun = [wrong if message.content or message.tool_calls else None] if shown else []
        yield finding(capability, [*begun, *run.asking(later).refutations(shown)])


def message_shapes(run: Run) -> CapabilityFinding:
    """Render the same answers in the different message forms that callers use. All forms must result in the same text."""
    candidate = run.candidate
    answers = (proof_answer(calls=((TOOL_NAMES[0], {"text": "Rome", "count": 3}),)), proof_answer(content="It rains."))
    usual = [answer for answer in answers if show(candidate, answer)]
    pairs = [(candidate.render(said), shape) for said in usual for shape in _shapes(as_message(said).to_openai())]
    tried = [
        _unlike(json.dumps(shape), text, candidate.render(*conversation_of([shape]))) for text, shape in pairs if text
    ]
    return finding("message shapes", tried)


def _shapes(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield variants of the message with null, missing and typed content, and with arguments as objects."""
    if not message["content"]:
        yield {**message, "content": None}
        yield {key: value for key, value in message.items() if key != "content"}
    else:
        yield {**message, "content": [{"type": "text", "text": message["content"]}]}
    calls = deepcopy(message.get("tool_calls", []))
    for function in (call["function"] for call in calls):
        function["arguments"] = json.loads(function["arguments"])
    yield {**message, "tool_calls": calls}


def markers_in_question(run: Run) -> CapabilityFinding:
    """Parse answers after a question that contains the format's own markers.

    These answers must have the same meaning as after any other question.
    """
    markers = markers_of(run.candidate.format)
    reason = "the template rejects or changes such questions" if markers else "the format has no markers"
    # A question such as `What do <think> and </call> mean?` must not be parsed as part of the answer.
    asked = replace(run.candidate, question=f"What do {' and '.join(markers)} mean?")
    return run.asking(asked).judged("markers in a question", run.answers if markers else (), reason=reason)


def markers_of(format: Format) -> list[str]:
    """Return the markers of all parts of an answer, except single characters."""
    tools, turn = format.tools, format.turn
    reasoning = (format.reasoning.start, format.reasoning.end)
    texts = (*turn.headers, *reasoning, format.content.start, *tools.markers, turn.end)
    return [text.strip() for text in dict.fromkeys(texts) if len(text.strip()) > 1]


def _unlike(answer: str, expected: str, found: str | None) -> Counterexample | None:
    wrong = Counterexample(answer=answer, expected=expected, found=found or "the template refuses it")
    return None if found == expected else wrong


def check_history(candidate: Candidate) -> Iterator[CapabilityFinding]:
    """Check for each kind of turn that the next prompt starts with the previous prompt and its answer."""
    for capability, (answer, following) in _TURNS.items():
        shown = show(candidate, answer)
        later = candidate.prompt_after(answer, *following) if shown else None
        if shown is None or later is None or candidate.prompt is None:
            yield finding(capability, [])
        else:
            # Ignore whitespace at the end of a turn, which may belong to the next turn.
            kept = [candidate.prompt, (shown.start + shown.answer).rstrip()]
            yield finding(capability, [_unlike(shown.answer, text, later[: len(text)]) for text in kept])
