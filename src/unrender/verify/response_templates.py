"""Checks a response template: transformers' parser must parse the template's answers like unrender's parser does.

Strategy: random answers for each capability are rendered, and both parsers parse them, complete and in small chunks. Prompts are rendered
with thinking on, off, and at the template's default. A difference is a counterexample. Answers that unrender's own parser doesn't recover
are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from unrender.chat_template import ChatTemplate
from unrender.conversation.messages import Said
from unrender.errors import ExportError
from unrender.export import REASONING_NAMES, Exported
from unrender.parser.prompt_tail import read_prefill
from unrender.proof import CutOut
from unrender.verify.judge import finding
from unrender.verify.renditions import AXES, PROOF_TOOLS, Candidate, show, show_after_prompt
from unrender.verify.verdicts import Counterexample, Report

_CHUNK = 3
"""Chunk size in characters, shorter than every marker."""

ExportReader = Callable[..., Any]


def verify_export(template: ChatTemplate, exported: Exported, *, samples: int = 4, seed: int = 0) -> Report:
    """Compare how unrender and transformers (with a response template) parse the template's own renderings.

    `exported` may be generated or declared. If the results differ because of a known omission in the export, the capability is skipped,
    with the omission as the reason. Raises `ExportError` if no version of transformers with a response parser is installed, or if
    transformers rejects the response template.
    """
    read = response_reader(exported)
    # The export contains no other end-of-sequence token than this one.
    candidate = Candidate.of(template, template._with_tools.eos_token)
    findings = []
    for capability, axis in AXES.items():
        random = Random(f"{seed}:{capability}")  # noqa: S311 - reproducible, not secret
        shown = [it for _ in range(samples) for it in _shown(candidate, axis(random))]
        tried = [_difference(it, read) for it in dict.fromkeys(shown)]
        omitted = next((it.what for it in exported.omissions if capability in it.concerns), "")
        if any(tried) and omitted:
            findings.append(finding(capability, [], reason=f"not exported: {omitted}"))
        else:
            findings.append(finding(capability, tried))
    return Report(findings=tuple(findings))


def response_reader(exported: Exported) -> ExportReader:
    """Return a function that parses the chunks of an answer after a prompt, with transformers' parser.

    Raises `ExportError` as `verify_export` does.
    """
    try:
        from transformers.utils.chat_parsing import ResponseParser  # noqa: PLC0415 - a slow import of an extra
        from transformers.utils.chat_parsing.response_templates import load_response_template  # noqa: PLC0415
    except ImportError as error:
        raise ExportError(f"checking a response template needs transformers 5.16 or newer: {error}") from error
    try:
        loaded = load_response_template(exported.template)
    except ValueError as error:
        raise ExportError(f"response template: transformers rejects it: {error}") from error

    def read(chunks: list[str], prompt: str) -> dict[str, Any]:
        parser = ResponseParser(loaded, prefix=prompt, tools=list(PROOF_TOOLS))
        for chunk in chunks:
            parser.feed(chunk)
        message: dict[str, Any] = parser.finalize()[0]
        return message

    return read


@dataclass(frozen=True, slots=True)
class _Read:
    """A rendered answer, its prompt, and unrender's message in comparable form."""

    prompt: str
    text: str
    ours: str


def _shown(candidate: Candidate, answer: Said) -> Iterator[_Read]:
    """Yield the rendering of an answer in each thinking mode, if unrender recovers the complete answer from it."""
    for thinking in (None, True, False):
        asked = replace(candidate, thinking=thinking)
        shown = show_after_prompt(asked, answer) or show_closing(asked, answer)
        if shown is None or candidate.format._closed_in_words(read_prefill(candidate.format, shown.prompt)):
            continue
        before = shown.read_after(candidate.format)
        message = candidate.read(before, [shown.answer]).message
        # Compare only the presence of parts and the names of tools.
        named = [call.name for call in answer.calls] == [call.name for call in message.tool_calls]
        thought = bool(message.reasoning) >= bool(answer.reasoning)
        if named and thought and bool(message.content) == bool(answer.content):
            read = _Read(before, shown.answer, comparable(message.to_openai()))
            yield replace(read, text=_generated(candidate, read))


def _generated(candidate: Candidate, read: _Read) -> str:
    """Return the rendering up to the end of the turn, unless part of the message comes after it."""
    end = candidate.format.turn.end.strip()
    at = read.text.rfind(end) if end else -1
    said = read.text[: at + len(end)] if at >= 0 else read.text
    return said if comparable(candidate.read(read.prompt, [said]).message.to_openai()) == read.ours else read.text


def show_closing(candidate: Candidate, answer: Said) -> CutOut | None:
    """Render an answer after a prompt that opens reasoning, for templates that drop reasoning from the history.

    The open reasoning is closed first. Returns None if the answer has reasoning, or if the rendering doesn't show all its parts.
    """
    shown, prompt, markers = show(candidate, answer), candidate.prompt, candidate.format.reasoning
    if shown is None or prompt is None or answer.reasoning:
        return None
    if shown.answer.lstrip().startswith(markers.end.strip()):
        return replace(shown, start=prompt)
    # Remove the history's markers for empty reasoning, which would open reasoning a second time.
    said = shown.answer.removeprefix(markers.empty)
    return replace(shown, start=prompt, answer=markers.end + candidate.format.turn.reasoning_to_content + said)


def _difference(shown: _Read, read: ExportReader) -> Counterexample | None:
    pieces = [shown.text[i : i + _CHUNK] for i in range(0, len(shown.text), _CHUNK)]
    for chunking, chunks in (("whole", [shown.text]), (f"every {_CHUNK}", pieces)):
        try:
            found = comparable(read(chunks, shown.prompt))
        except (ValueError, KeyError) as error:
            # If transformers' parser can't parse a region, it raises an error, and the complete message is lost. Compare the error as its
            # result.
            found = json.dumps(f"{type(error).__name__}: {error}")
        if found != shown.ours:
            return Counterexample(answer=shown.text, expected=shown.ours, found=found, chunking=chunking)
    return None


def comparable(message: Mapping[str, Any]) -> str:
    """Return a message of either parser as JSON for comparison.

    Field names, ids and the layout of JSON are normalized.
    """
    reasoning = next((message[name] for name in REASONING_NAMES.values() if message.get(name)), "")
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    written = [(call["name"], call["arguments"]) for call in calls]
    plain = [{"name": name, "arguments": json.loads(it) if isinstance(it, str) else it} for name, it in written]
    said = {"reasoning": reasoning, "content": message.get("content") or "", "tool_calls": plain}
    return json.dumps(said, ensure_ascii=False, sort_keys=True)
