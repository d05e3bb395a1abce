"""Verify a template: render random answers along all axes, parse them back, compare, and report per capability.

Strategy: the answer to be parsed is what the full rendering adds behind the generation prompt, or behind the header where
the prompt writes more than the history keeps. Only what the rendering shows is expected back; what it drops makes the
capability not observable. Each answer is parsed whole, character by character, and in random chunks, with and without the
end of turn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from random import Random

from unrender.analysis import Analysis, analyze
from unrender.format import Format
from unrender.messages import CallStatus, Message, Request, read_tools
from unrender.parsing.parser import Parser
from unrender.template.rendering import Template
from unrender.verify.axes import AXES, TOOLS, Answer, call_id
from unrender.verify.report import Counterexample, Finding, Report, Verdict
from unrender.verify.shown import Shown, Subject, show

_REQUEST = Request(tools=read_tools(TOOLS))


def verify(
    template: Template,
    *,
    analysis: Analysis | None = None,
    samples: int = 8,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Check the format of a template against the template's own renderings.

    `samples` answers are made per capability, the same for the same `seed`; `progress` is called with the name of each
    capability as it begins. Raises nothing: what a template refuses to render is not observable.
    """
    known = analysis or analyze(template)
    subject = Subject(
        template=template, format=known.format.ended_by(template.eos_token), capabilities=known.capabilities
    )
    findings = []
    for capability, axis in AXES.items():
        if progress:
            progress(capability)
        random = Random(f"{seed}:{capability}")  # noqa: S311 - reproducible, not secret
        findings.append(_find(subject, capability, [axis(random) for _ in range(samples)], random))
    findings.append(_find_ids(subject))
    return Report(findings=tuple(findings))


def _find(subject: Subject, capability: str, answers: list[Answer], random: Random) -> Finding:
    shown = [found for answer in answers if (found := show(subject, answer))]
    if not shown:
        return Finding(capability=capability, verdict=Verdict.NOT_OBSERVABLE, reason="the template does not render it")
    failures = [failure for found in shown if (failure := _refute(subject, found, random))]
    smallest = min(failures, key=lambda failure: len(failure.answer), default=None)
    return Finding(
        capability=capability,
        verdict=Verdict.REFUTED if failures else Verdict.PROVED,
        held=len(shown) - len(failures),
        total=len(shown),
        counterexample=smallest,
    )


def _refute(subject: Subject, shown: Shown, random: Random) -> Counterexample | None:
    for text in _with_and_without_end(subject.format, shown.text):
        for chunking, chunks in _chunkings(text, random):
            message = _parse(subject.format, shown.prompt, chunks)
            if not _same(message, shown.expected) and not _written_alike(subject, message, shown):
                return Counterexample(
                    answer=text, expected=_describe(shown.expected), found=_describe_message(message), chunking=chunking
                )
    return None


def _written_alike(subject: Subject, message: Message, shown: Shown) -> bool:
    """True when the template writes what was parsed exactly as it wrote what was meant: no reader could tell."""
    if any(call.status is not CallStatus.COMPLETE for call in message.tool_calls):
        return False
    again = subject.render(message.to_openai())
    return again is not None and again == shown.begun + shown.text


def _with_and_without_end(format: Format, text: str) -> Iterator[str]:
    yield text
    for end in (format.turn.end, *format.turn.ends):
        if end.strip() and text.rstrip().endswith(end.strip()):
            yield text[: text.rindex(end.strip())].removesuffix(end[: len(end) - len(end.lstrip())])
            return


def _chunkings(text: str, random: Random) -> Iterator[tuple[str, list[str]]]:
    yield "whole", [text]
    yield "every 1", list(text)
    cuts = sorted({0, len(text), *(random.randint(0, len(text)) for _ in range(5))})
    yield f"at {cuts}", [text[a:b] for a, b in pairwise(cuts)]


def _parse(format: Format, prompt: str, chunks: list[str]) -> Message:
    parser = Parser(format, _REQUEST, prompt=prompt)
    for chunk in chunks:
        parser.feed(chunk)
    parser.finish()
    return parser.message


def _same(message: Message, expected: Answer) -> bool:
    if message.content != expected.content or not message.reasoning.endswith(expected.reasoning):
        return False
    if bool(message.reasoning) != bool(expected.reasoning) or len(message.tool_calls) != len(expected.calls):
        return False
    return all(
        call.status is CallStatus.COMPLETE
        and call.name == name
        and json.dumps(json.loads(call.arguments), sort_keys=True) == json.dumps(arguments, sort_keys=True)
        for call, (name, arguments) in zip(message.tool_calls, expected.calls, strict=True)
    )


def _describe(answer: Answer) -> str:
    return json.dumps(answer.to_openai(), ensure_ascii=False)


def _describe_message(message: Message) -> str:
    statuses = [str(call.status) for call in message.tool_calls]
    return json.dumps({**message.to_openai(), **({"statuses": statuses} if statuses else {})}, ensure_ascii=False)


def _find_ids(subject: Subject) -> Finding:
    """Check that a call's id comes back where the template writes it."""
    answer = Answer(calls=((TOOLS[0]["function"]["name"], {"text": "id"}),))
    shown = show(subject, answer)
    if not shown or call_id(0) not in shown.text:
        return Finding(
            capability="call ids",
            verdict=Verdict.NOT_OBSERVABLE,
            reason="the template does not write the ids it is given",
        )
    message = _parse(subject.format, shown.prompt, [shown.text])
    held = [call.id for call in message.tool_calls] == [call_id(0)]
    counterexample = Counterexample(
        answer=shown.text, expected=call_id(0), found=_describe_message(message), chunking="whole"
    )
    return Finding(
        capability="call ids",
        verdict=Verdict.PROVED if held else Verdict.REFUTED,
        held=int(held),
        total=1,
        counterexample=None if held else counterexample,
    )
