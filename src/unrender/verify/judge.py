"""Judges answers that a template shows: parsed in many chunkings, with and without the end of turn, and compared."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random

from unrender.analysis.prove.claims import claims_to_read
from unrender.format import Format
from unrender.machine.ids import numbered_id
from unrender.messages.wire import Message, Request, read_tools
from unrender.parser.streaming import Parser
from unrender.verify.axes import PROOF_TOOLS, ProofAnswer
from unrender.verify.renditions import Candidate, Rendition, show
from unrender.verify.verdicts import CapabilityFinding, Counterexample, Verdict

REQUEST = Request(tools=read_tools(PROOF_TOOLS))
"""All tools that answers call."""
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

    With nothing tried, the capability is not observable for the `reason` given.
    """
    if not tried:
        return CapabilityFinding(capability=capability, verdict=Verdict.NOT_OBSERVABLE, reason=reason)
    failures = [failure for failure in tried if failure]
    return CapabilityFinding(
        capability=capability,
        verdict=Verdict.REFUTED if failures else Verdict.PROVED,
        held=len(tried) - len(failures),
        total=len(tried),
        counterexample=min(failures, key=lambda failure: len(failure.answer), default=None),
    )


def refute(candidate: Candidate, shown: Rendition, random: Random) -> Counterexample | None:
    """Return a counterexample if some chunking of the answer is not read as it must be; otherwise None."""
    for text in with_and_without_end(candidate.format, shown.text):
        for chunking, chunks in _chunkings(text, random):
            message = parse(candidate, shown.prompt, chunks)
            if not _same(message, shown.expected) and not _written_alike(candidate, message, shown):
                return Counterexample(
                    answer=text, expected=_describe(shown.expected), found=message_json(message), chunking=chunking
                )
    return None


def _written_alike(candidate: Candidate, message: Message, shown: Rendition) -> bool:
    """True when the template writes what was parsed exactly as it wrote what was meant: no reader could tell.

    A call that is read as text is also written as it was; that does not excuse it.
    """
    # `<call>f {}</call>` that was read as content is written back as the same text, and yet the call is lost.
    missed = len(message.tool_calls) != len(shown.expected.calls)
    if missed and message.content.strip() != shown.expected.content.strip():
        return False
    if message.dead_calls:
        return False
    # `7` and `"7"` are both written `7` by a format without a schema's types: the same text, so no reader could tell.
    again = candidate.render(message.to_openai())
    return again is not None and again == shown.whole


def with_and_without_end(format: Format, text: str) -> Iterator[str]:
    """Yield the text, and when it ends with the end of a turn, several, or the next header, the text without."""
    yield text
    bare = text
    while (shorter := _without_end(format, bare)) is not None:
        bare = shorter
    if bare != text:
        # `It rains.<end><user>` is read as `It rains.` is: an engine may stop before the end of turn, at it, or behind it.
        yield bare


def _without_end(format: Format, text: str) -> str | None:
    # A template that always asks for the next answer writes its header after the end.
    for end in (format.turn.end, *format.turn.ends, *format.turn.headers):
        if end.strip() and text.rstrip().endswith(end.strip()):
            return text[: text.rindex(end.strip())].removesuffix(end[: len(end) - len(end.lstrip())])
    return None


def _chunkings(text: str, random: Random) -> Iterator[tuple[str, list[str]]]:
    yield "whole", [text]
    yield "every 1", list(text)
    cuts = sorted({0, len(text), *(random.randint(0, len(text)) for _ in range(5))})
    yield f"at {cuts}", [text[a:b] for a, b in pairwise(cuts)]


def parse(candidate: Candidate, prompt: str, chunks: Sequence[str]) -> Message:
    """Return the message that chunks mean after a prompt."""
    parser = Parser(candidate.format, REQUEST, grammar=candidate.grammar, prompt=prompt, ids=numbered_id)
    for chunk in chunks:
        parser.feed(chunk)
    parser.finish()
    return parser.message


def _same(message: Message, expected: ProofAnswer) -> bool:
    if message.content != expected.content or not message.reasoning.endswith(expected.reasoning):
        return False
    if bool(message.reasoning) != bool(expected.reasoning) or len(message.tool_calls) != len(expected.calls):
        return False
    return all(
        call.name == name
        and json.dumps(json.loads(call.arguments), sort_keys=True) == json.dumps(arguments, sort_keys=True)
        for call, (name, arguments) in zip(message.tool_calls, expected.calls, strict=True)
    )


def _describe(answer: ProofAnswer) -> str:
    return json.dumps(answer.to_openai(), ensure_ascii=False)


def message_json(message: Message) -> str:
    """Return a message as JSON, with what is known of its dead calls."""
    dead = [f"{call.name}: {call.status}" for call in message.dead_calls]
    return json.dumps({**message.to_openai(), **({"dead_calls": dead} if dead else {})}, ensure_ascii=False)
