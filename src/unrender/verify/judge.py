"""Judges what a template shows: answers in many chunkings, with and without the end of turn, and what surrounds them: thinking
switches, further turns, message shapes, hostile questions, the history.

Rules: a history that changes from turn to turn speaks against the template, not against the format. Caches and training want each
prompt to begin with the prompt and the answer before it; parsing does not need that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random
from typing import Any

from unrender.analysis.prove.claims import claims_to_read
from unrender.analysis.prove.readback import with_and_without_end
from unrender.format import Format
from unrender.machine.events import Malformed
from unrender.machine.ids import numbered_id
from unrender.messages.wire import Message
from unrender.parser.streaming import Parser
from unrender.verify.axes import TOOL_NAMES, ProofAnswer, proof_id
from unrender.verify.renditions import Candidate, Rendition, show, show_after_prompt
from unrender.verify.verdicts import CapabilityFinding, Counterexample, Verdict

NOT_WRITTEN = "the template does not render it"
NOT_CLAIMED = "the format does not claim to read it"


def judge_capability(
    candidate: Candidate, capability: str, answers: Sequence[ProofAnswer], random: Random
) -> CapabilityFinding:
    """Return the verdict on a capability from answers that use it."""
    shown = [found for answer in answers if (found := show(candidate, answer))]
    claimed = [found for found in shown if claims(candidate, found.expected)]
    reason = NOT_CLAIMED if shown else NOT_WRITTEN
    return finding(capability, [refute(candidate, found, random) for found in claimed], reason=reason)


def claims(candidate: Candidate, answer: ProofAnswer) -> bool:
    """Return whether the format claims to read such an answer.

    It does not claim capabilities that analysis gave up with a diagnostic.
    """
    if not candidate.gave_up:
        return True
    return claims_to_read(candidate.format, reasoning=bool(answer.reasoning), calls=len(answer.calls))


def finding(capability: str, tried: Sequence[Counterexample | None], *, reason: str = NOT_WRITTEN) -> CapabilityFinding:
    """Return the finding for what was tried: None stands for an answer that held.

    With nothing tried, the capability is skipped for the `reason` given.
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


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """What an answer was read as."""

    message: Message
    reported: bool
    """The parser reported a place that the format does not allow."""


Judge = Callable[[Candidate, Rendition, ReadAnswer], bool]
"""Returns whether an answer was read right."""


def as_meant(candidate: Candidate, shown: Rendition, reading: ReadAnswer) -> bool:
    """Return whether the answer was read as it was meant, or as something that the template writes alike."""
    return _same(reading.message, shown.expected) or _written_alike(candidate, reading.message, shown)


def as_meant_or_refused(candidate: Candidate, shown: Rendition, reading: ReadAnswer) -> bool:
    """Return whether the answer was read as it was meant, or no call was given and that was reported."""
    return as_meant(candidate, shown, reading) or (reading.reported and not reading.message.tool_calls)


def refute(candidate: Candidate, shown: Rendition, random: Random, judge: Judge = as_meant) -> Counterexample | None:
    """Return a counterexample if some chunking of the answer is not read as it must be; otherwise None."""
    for text in with_and_without_end(candidate.format, shown.text):
        for chunking, chunks in _chunkings(text, random):
            reading = read(candidate, shown.prompt, chunks)
            if not judge(candidate, shown, reading):
                return Counterexample(
                    answer=text,
                    expected=json.dumps(shown.expected.to_openai(), ensure_ascii=False),
                    found=message_json(reading.message),
                    chunking=chunking,
                )
    return None


def _written_alike(candidate: Candidate, message: Message, shown: Rendition) -> bool:
    """True when the template writes the calls that were parsed exactly as it wrote those that were meant: no reader could tell.

    Texts outside of calls are meant as they are written, so they are alike only if they are the same. So a call that was read
    as text is not excused, nor white space that the format left in a text, though a template trims both.
    """
    if message.failed_calls or not _same_texts(message, shown.expected):
        return False
    pairs = zip(message.tool_calls, shown.expected.calls, strict=False)
    if any(_padded(json.loads(call.arguments), arguments) for call, (_, arguments) in pairs):
        return False
    # `7` and `"7"` are both written `7` by a format without a schema's types: the same text, so no reader could tell.
    again = candidate.render(message.to_openai())
    return again is not None and again == shown.whole


def _padded(found: Any, meant: Any) -> bool:
    """Return whether a string in `found` is one of `meant` with white space around it that a template which trims does not write."""
    match found, meant:
        case str(), str():
            return found.strip() == meant.strip() and found not in (meant, meant.strip())
        case dict(), dict():
            return any(_padded(found[key], meant[key]) for key in found.keys() & meant.keys())
        case list(), list():
            return any(_padded(one, other) for one, other in zip(found, meant, strict=False))
        case _:
            return False


def _chunkings(text: str, random: Random) -> Iterator[tuple[str, list[str]]]:
    yield "whole", [text]
    # Single characters cut each marker everywhere; a few random cuts leave most of them whole.
    yield "every 1", list(text)
    cuts = sorted({0, len(text), *(random.randint(0, len(text)) for _ in range(5))})
    yield f"at {cuts}", [text[a:b] for a, b in pairwise(cuts)]


def parse(candidate: Candidate, prompt: str, chunks: Sequence[str]) -> Message:
    """Return the message that chunks mean after a prompt."""
    return read(candidate, prompt, chunks).message


def read(candidate: Candidate, prompt: str, chunks: Sequence[str]) -> ReadAnswer:
    """Read chunks after a prompt, as an answer to the candidate's request."""
    parser = Parser(candidate.format, candidate.request, grammar=candidate.grammar, prompt=prompt, ids=numbered_id)
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    events += parser.finish()
    return ReadAnswer(parser.message, any(isinstance(event, Malformed) for event in events))


def _same_texts(message: Message, expected: ProofAnswer) -> bool:
    """Return whether content and reasoning are as they were meant."""
    # The prompt may have begun reasoning with words of its own, which come back before those that were meant.
    reasoned = message.reasoning.endswith(expected.reasoning) and bool(message.reasoning) == bool(expected.reasoning)
    return message.content == expected.content and reasoned


def _same(message: Message, expected: ProofAnswer) -> bool:
    if not _same_texts(message, expected) or len(message.tool_calls) != len(expected.calls):
        return False
    return all(
        call.name == name
        # Some templates sort arguments: their order does not come back.
        and json.dumps(json.loads(call.arguments), sort_keys=True) == json.dumps(arguments, sort_keys=True)
        for call, (name, arguments) in zip(message.tool_calls, expected.calls, strict=True)
    )


def message_json(message: Message) -> str:
    """Return a message as JSON, with what is known of its failed calls."""
    failed = [f"{call.name}: {call.status}" for call in message.failed_calls]
    return json.dumps({**message.to_openai(), **({"failed_calls": failed} if failed else {})}, ensure_ascii=False)


# What surrounds an answer.


_RESULT = "It is 7 degrees."
_CALL = (TOOL_NAMES[0], {"text": "Rome"})
_QUESTION = ({"role": "user", "content": "And unicorns?"},)
_RESULTS = ({"role": "tool", "tool_call_id": proof_id(0), "content": _RESULT},)
_TURNS: Mapping[str, tuple[ProofAnswer, Sequence[Mapping[str, Any]]]] = {
    "content, then a question": (ProofAnswer(content="They are striped."), _QUESTION),
    "reasoning, then a question": (ProofAnswer(content="They are striped.", reasoning="Animals."), _QUESTION),
    "call, then its result": (ProofAnswer(calls=(_CALL,)), _RESULTS),
    "reasoning and call, then its result": (ProofAnswer(reasoning="Animals.", calls=(_CALL,)), _RESULTS),
}


def thinking(candidate: Candidate, answers: Sequence[ProofAnswer], random: Random, *, on: bool) -> CapabilityFinding:
    """Parse answers after real prompts with thinking switched on or off, from the end of the prompt."""
    capability = f"thinking {'on' if on else 'off'}"
    if not candidate.capabilities.supports_enable_thinking:
        return finding(capability, [], reason="the template has no switch for it")
    switched = replace(candidate, thinking=on)
    asked = [answer for answer in answers if on or not answer.reasoning]
    shown = [found for answer in asked if (found := show_after_prompt(switched, answer))]
    # Some prompts say in the model's name why there will be no reasoning.
    begun = parse(candidate, switched.prompt or "", []).reasoning
    expected = [replace(it, expected=replace(it.expected, reasoning=it.expected.reasoning or begun)) for it in shown]
    return finding(capability, [refute(switched, found, random) for found in expected])


def second_turn(candidate: Candidate, answers: Sequence[ProofAnswer]) -> CapabilityFinding:
    """Send parsed calls back with results.

    The next prompt must be the same as for the calls themselves.
    """
    shown = [(answer, found) for answer in answers if answer.calls and (found := show(candidate, answer))]
    tried = []
    for answer, found in shown:
        parsed = parse(candidate, found.prompt, [found.text]).to_openai()
        expected = _with_results(candidate, with_ids(answer.to_openai(), parsed))
        if expected is not None:
            # A call that was read and sent back must be written as the call itself was, e.g. with its arguments in the same order.
            tried.append(_unlike(found.text, expected, _with_results(candidate, parsed)))
    return finding("second turn", tried, reason="the template takes no results of calls")


def with_ids(message: Mapping[str, Any], parsed: Mapping[str, Any]) -> dict[str, Any]:
    """Give calls the ids that parsing gave them: what the format does not write cannot come back as it was."""
    ids = [call["id"] for call in parsed.get("tool_calls", ())]
    calls = [{**call, "id": id} for call, id in zip(message.get("tool_calls", ()), ids, strict=False)]
    return {**message, "tool_calls": calls} if calls else dict(message)


def _with_results(candidate: Candidate, message: Mapping[str, Any]) -> str | None:
    ids = [call["id"] for call in message.get("tool_calls", ())]
    return candidate.prompt_after(message, *({"role": "tool", "tool_call_id": id, "content": _RESULT} for id in ids))


def later_turns(candidate: Candidate, answers: Sequence[ProofAnswer], random: Random) -> Iterator[CapabilityFinding]:
    """Parse answers to a second question and to a tool's result.

    No text of an earlier turn may count as begun.
    """
    asked = {"role": "user", "content": "Are they striped?"}
    call, said = ProofAnswer(calls=(_CALL,)), ProofAnswer(content="Some are.", reasoning="Animals.")
    yield _later("after another answer", candidate, [asked, said.to_openai()], answers, random)
    reason = "" if show(candidate, call) else "the template does not render calls"
    before = [asked, call.to_openai()]
    yield _later("after a tool's result", candidate, before, () if reason else answers, random, reason)


def _later(
    capability: str,
    candidate: Candidate,
    before: Sequence[Mapping[str, Any]],
    answers: Sequence[ProofAnswer],
    random: Random,
    reason: str = NOT_WRITTEN,
) -> CapabilityFinding:
    later = replace(candidate, before=tuple(before))
    shown = [found for answer in answers if (found := show(later, answer))]
    begun = [_begun_content(later)] if shown else []
    return finding(capability, [*begun, *(refute(later, found, random) for found in shown)], reason=reason)


def _begun_content(candidate: Candidate) -> Counterexample | None:
    """Read nothing after the prompt: no content and no call may come of it."""
    message = parse(candidate, candidate.prompt or "", [])
    if not message.content and not message.tool_calls:
        return None
    return Counterexample(answer="", expected=message_json(Message()), found=message_json(message))


def message_shapes(candidate: Candidate) -> CapabilityFinding:
    """Render answers in all shapes that callers use; each must give the same text."""
    answers = (ProofAnswer(calls=((TOOL_NAMES[0], {"text": "Rome", "count": 3}),)), ProofAnswer(content="It rains."))
    usual = [answer.to_openai() for answer in answers if show(candidate, answer)]
    pairs = [(candidate.render(message), shape) for message in usual for shape in _shapes(message)]
    tried = [_unlike(json.dumps(shape), text, candidate.render(shape)) for text, shape in pairs if text]
    return finding("message shapes", tried)


def _shapes(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the same message with null, missing and typed content, and with arguments as objects."""
    if not message["content"]:
        yield {**message, "content": None}
        yield {key: value for key, value in message.items() if key != "content"}
    else:
        yield {**message, "content": [{"type": "text", "text": message["content"]}]}
    functions = [(call, call["function"]) for call in message.get("tool_calls", ())]
    objects = [
        {**call, "function": {**function, "arguments": json.loads(function["arguments"])}}
        for call, function in functions
    ]
    yield {**message, "tool_calls": objects}


def markers_in_question(candidate: Candidate, answers: Sequence[ProofAnswer], random: Random) -> CapabilityFinding:
    """Parse answers after a question that contains the format's own markers.

    They must mean the same as after any other question.
    """
    markers = markers_of(candidate.format)
    reason = "the template refuses or changes such questions"
    if not markers:
        return finding("markers in a question", [], reason="the format has no markers")
    # A question such as `What do <think> and </call> mean?` must not be taken for a part of the answer.
    asked = replace(candidate, question=f"What do {' and '.join(markers)} mean?")
    shown = [found for answer in answers if (found := show(asked, answer))]
    return finding("markers in a question", [refute(asked, found, random) for found in shown], reason=reason)


def markers_of(format: Format) -> list[str]:
    """Return the markers of all parts of an answer that are longer than one character."""
    tools, turn = format.tools, format.turn
    reasoning = (format.reasoning.start, format.reasoning.end)
    calls = (tools.section_start, tools.call_start, tools.call_end, tools.section_end)
    texts = (*turn.headers, *reasoning, format.content.start, *calls, turn.end)
    return [text.strip() for text in dict.fromkeys(texts) if len(text.strip()) > 1]


def _unlike(answer: str, expected: str, found: str | None) -> Counterexample | None:
    if found == expected:
        return None
    return Counterexample(answer=answer, expected=expected, found=found or "the template refuses it")


def check_history(candidate: Candidate) -> Iterator[CapabilityFinding]:
    """Yield for each kind of turn whether the next prompt begins with the last prompt and the answer to it."""
    for capability, (answer, following) in _TURNS.items():
        shown = show(candidate, answer)
        later = candidate.prompt_after(answer.to_openai(), *following) if shown else None
        if shown is None or later is None or candidate.prompt is None:
            yield finding(capability, [])
        else:
            # The next turn may begin with the white space that ends this one.
            kept = [candidate.prompt, (shown.begun + shown.text).rstrip()]
            yield finding(capability, [_unlike(shown.text, text, later[: len(text)]) for text in kept])
