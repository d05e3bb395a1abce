"""Checks what surrounds an answer: thinking switches, further turns, message shapes, hostile questions, the history.

Rules: whether each prompt begins with the prompt and the answer before it is about the template, not about the format: caches and
training want it, parsing does not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from types import MappingProxyType
from typing import Any

from unrender.format import Format
from unrender.messages.wire import Message
from unrender.verify.axes import TOOL_NAMES, ProofAnswer, proof_id
from unrender.verify.judge import NOT_WRITTEN, claims, finding, message_json, parse, refute
from unrender.verify.renditions import Candidate, show, show_after_prompt
from unrender.verify.verdicts import CapabilityFinding, Counterexample

_RESULT = "It is 7 degrees."
_QUOTES = (
    "it's",
    'say "hi"',
    """both ' and \"""",
    "C:\\new\\",
    "two\n'lines'",
    "a\\'b\\\"c",
    'f("x")',
    '{"a": "b"}',
)
"""Texts with what strings are put into, and what that is escaped with."""
_SAID = ProofAnswer(content="Some are.", reasoning="Animals.")

_CALL = (TOOL_NAMES[0], {"text": "Rome"})
_NEXT = ({"role": "user", "content": "And unicorns?"},)
_RESULTS = ({"role": "tool", "tool_call_id": proof_id(0), "content": "It is 7 degrees."},)

_TURNS: Mapping[str, tuple[ProofAnswer, Sequence[Mapping[str, Any]]]] = MappingProxyType(
    {
        "content, then a question": (ProofAnswer(content="They are striped."), _NEXT),
        "reasoning, then a question": (ProofAnswer(content="They are striped.", reasoning="Animals."), _NEXT),
        "call, then its result": (ProofAnswer(calls=(_CALL,)), _RESULTS),
        "reasoning and call, then its result": (ProofAnswer(reasoning="Animals.", calls=(_CALL,)), _RESULTS),
    }
)


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
        expected = _with_results(candidate, _with_ids(answer.to_openai(), parsed))
        if expected is not None:
            # A call that was read and sent back must be written as the call itself was, e.g. with its arguments in the same order.
            tried.append(_unlike(found.text, expected, _with_results(candidate, parsed), "whole"))
    return finding("second turn", tried, reason="the template takes no results of calls")


def _with_ids(message: Mapping[str, Any], parsed: Mapping[str, Any]) -> dict[str, Any]:
    """Give calls the ids that parsing gave them: what the format does not write cannot come back as it was."""
    ids = [call["id"] for call in parsed.get("tool_calls", ())]
    calls = [{**call, "id": id} for call, id in zip(message["tool_calls"], ids, strict=False)]
    return {**message, "tool_calls": calls or message["tool_calls"]}


def _with_results(candidate: Candidate, message: Mapping[str, Any]) -> str | None:
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": _RESULT} for call in message.get("tool_calls", ())
    ]
    return candidate.prompt_after(message, *results)


def later_turns(candidate: Candidate, answers: Sequence[ProofAnswer], random: Random) -> Iterator[CapabilityFinding]:
    """Parse answers to a second question and to a tool's result.

    No text of an earlier turn may count as begun.
    """
    asked = {"role": "user", "content": "Are they striped?"}
    call = ProofAnswer(calls=((TOOL_NAMES[0], {"text": "Rome"}),))
    yield _later("after another answer", candidate, [asked, _SAID.to_openai()], answers, random)
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
    return Counterexample(answer="", expected=message_json(Message()), found=message_json(message), chunking="whole")


def message_shapes(candidate: Candidate) -> CapabilityFinding:
    """Render answers in all shapes that callers use; each must give the same text."""
    answers = (ProofAnswer(calls=((TOOL_NAMES[0], {"text": "Rome", "count": 3}),)), ProofAnswer(content="It rains."))
    usual = [answer.to_openai() for answer in answers if show(candidate, answer)]
    pairs = [(candidate.render(message), shape) for message in usual for shape in _shapes(message)]
    tried = [_unlike(json.dumps(shape), text, candidate.render(shape), "whole") for text, shape in pairs if text]
    return finding("message shapes", tried)


def _shapes(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the same message with null, missing and typed content, and with arguments as objects."""
    if not message["content"]:
        yield {**message, "content": None}
        yield {key: value for key, value in message.items() if key != "content"}
    else:
        yield {**message, "content": [{"type": "text", "text": message["content"]}]}
    calls = message.get("tool_calls")
    if calls:
        objects = [{**call, "function": _with_object(call["function"])} for call in calls]
        yield {**message, "tool_calls": objects}
    else:
        yield {**message, "tool_calls": []}


def _with_object(function: Mapping[str, Any]) -> dict[str, Any]:
    return {**function, "arguments": json.loads(function["arguments"])}


def markers_in_question(candidate: Candidate, answers: Sequence[ProofAnswer], random: Random) -> CapabilityFinding:
    """Parse answers after a question that contains the format's own markers.

    They must mean the same as after any other question.
    """
    markers = _markers(candidate.format)
    reason = "the template refuses or changes such questions"
    if not markers:
        return finding("markers in a question", [], reason="the format has no markers")
    # A question such as `What do <think> and </call> mean?` must not be taken for a part of the answer.
    asked = replace(candidate, question=f"What do {' and '.join(markers)} mean?")
    shown = [found for answer in answers if (found := show(asked, answer))]
    return finding("markers in a question", [refute(asked, found, random) for found in shown], reason=reason)


def text_in_strings(candidate: Candidate, random: Random) -> CapabilityFinding:
    """Parse calls with quotes inside their strings.

    If quotes enclose strings, these also contain the format's own markers.
    """
    unquoted = candidate.format.tools.arguments.codec.strings.unquoted
    texts = [*_QUOTES, *(f"Not {marker} here" for marker in ([] if unquoted else _markers(candidate.format)))]
    answers = [ProofAnswer(calls=((TOOL_NAMES[0], {"text": text, "count": 1}),)) for text in texts]
    shown = [found for answer in answers if claims(candidate, answer) and (found := show(candidate, answer))]
    return finding("quotes and markers in strings", [refute(candidate, found, random) for found in shown])


def _markers(format: Format) -> list[str]:
    """Return the markers of all parts of an answer that are longer than one character."""
    tools, turn = format.tools, format.turn
    texts = (
        *turn.headers,
        format.reasoning.start,
        format.reasoning.end,
        format.content.start,
        tools.section_start,
        tools.call_start,
        tools.call_end,
        tools.section_end,
        turn.end,
    )
    return [text.strip() for text in dict.fromkeys(texts) if len(text.strip()) > 1]


def _unlike(answer: str, expected: str, found: str | None, chunking: str) -> Counterexample | None:
    if found == expected:
        return None
    return Counterexample(answer=answer, expected=expected, found=found or "the template refuses it", chunking=chunking)


def check_history(candidate: Candidate) -> Iterator[CapabilityFinding]:
    """Yield for each kind of turn whether the next prompt begins with the last prompt and the answer to it."""
    for capability, (answer, following) in _TURNS.items():
        shown = show(candidate, answer)
        later = candidate.prompt_after(answer.to_openai(), *following) if shown else None
        if shown is None or later is None or candidate.prompt is None:
            yield finding(capability, [])
        else:
            before = [candidate.prompt, (shown.begun + shown.text).rstrip()]
            yield finding(capability, [_cut_off(shown.text, text, later) for text in before])


def _cut_off(answer: str, before: str, later: str) -> Counterexample | None:
    if later.startswith(before):
        return None
    return Counterexample(answer=answer, expected=before, found=later[: len(before)], chunking="whole")
