"""A response template against the template it is for: transformers' own parser reads what the template writes, as ours does.

Strategy: answers are made along the axes of `verify` and rendered; each is read by both parsers, whole and in small chunks,
with thinking on, off, and as the template has it. What differs is a counterexample, what our own parser does not read back is
not observable.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from unrender.analysis import Analysis, analyze, shape_context, shape_messages
from unrender.emit.response_template import REASONING_NAMES, Exported
from unrender.errors import ExportError
from unrender.format import Format, ReasoningMode
from unrender.messages import CallStatus, Message, Request, read_tools
from unrender.parsing.parser import Parser, prefill
from unrender.template.rendering import Template
from unrender.verify.axes import AXES, TOOLS, Answer
from unrender.verify.report import Counterexample, Finding, Report, Verdict

_CHUNK = 3
"""Characters: shorter than every marker."""
_QUESTION = {"role": "user", "content": "What about zebra crossings?"}
_REQUEST = Request(tools=read_tools(TOOLS))

Reader = Callable[..., Any]


def check_export(
    template: Template,
    exported: Exported,
    *,
    analysis: Analysis | None = None,
    samples: int = 4,
    seed: int = 0,
) -> Report:
    """Let transformers read the template's own renderings by a response template, and compare with our message.

    `exported` may be our own export or a declared one that was read. A capability that it is known to omit, and that does
    differ, is not observable, with the omission as the reason. Raises `ExportError` when transformers with its response
    parser is not installed, or when it refuses the response template.
    """
    read = _reader(exported)
    known = analysis or analyze(template)
    subject = _Subject(template=template, format=_ended(known.format, template.eos_token), analysis=known)
    findings = []
    for capability, axis in AXES.items():
        random = Random(f"{seed}:{capability}")  # noqa: S311 - reproducible, not secret
        shown = [it for _ in range(samples) for it in subject.shown(axis(random))]
        findings.append(_find(capability, list(dict.fromkeys(shown)), read, exported))
    return Report(findings=tuple(findings))


def _reader(exported: Exported) -> Reader:
    """Return transformers' parser for the response template."""
    try:
        from transformers.utils.chat_parsing import ResponseParser  # noqa: PLC0415 - an extra, and slow to import
        from transformers.utils.chat_parsing.response_templates import load_response_template  # noqa: PLC0415
    except ImportError as error:
        raise ExportError(f"checking a response template needs transformers 5.20 or newer: {error}") from error
    try:
        loaded = load_response_template(exported.template)
    except ValueError as error:
        raise ExportError(f"response template: transformers refuses it: {error}") from error

    def read(chunks: list[str], prompt: str) -> dict[str, Any]:
        parser = ResponseParser(loaded, prefix=prompt, tools=list(TOOLS))
        for chunk in chunks:
            parser.feed(chunk)
        message: dict[str, Any] = parser.finalize()[0]
        return message

    return read


@dataclass(frozen=True, slots=True)
class _Shown:
    """An answer as the template writes it behind a prompt."""

    prompt: str
    text: str
    meant: str
    """Our message, in the form that is compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    template: Template
    format: Format
    analysis: Analysis

    def shown(self, answer: Answer) -> Iterator[_Shown]:
        """Yield what the template writes for an answer, once per mode of thinking in which it shows all of it."""
        for thinking in (None, True, False):
            prompt = self._render([_QUESTION], thinking, prompts=True)
            full = self._render([_QUESTION, answer.to_openai()], thinking, prompts=False)
            begun = _begun(self.format, prompt, full)
            if begun is None:
                continue
            unmarked = answer.reasoning and self.format.reasoning.mode is ReasoningMode.DELIMITER
            shown = prompt if unmarked else begun
            text = full[len(begun) :].removesuffix(_asking(self.format, prompt))
            message = _parse(self.format, shown, text)
            if _says_all(message, answer):
                yield _Shown(shown, text, _comparable(message.to_openai()))

    def _render(self, messages: list[dict[str, Any]], thinking: bool | None, *, prompts: bool) -> str:
        """Return the rendering, "" when the template refuses."""
        capabilities = self.analysis.capabilities
        context = shape_context(TOOLS, capabilities, thinking=thinking)
        shaped = shape_messages(messages, capabilities)
        return self.template.render(shaped, add_generation_prompt=prompts, **context).text


def _ended(format: Format, eos_token: str) -> Format:
    ends = (*format.turn.ends, eos_token) if eos_token.strip() else format.turn.ends
    return replace(format, turn=replace(format.turn, ends=ends))


def _begun(format: Format, prompt: str, full: str) -> str | None:
    """Return the part of `full` that the model did not write."""
    if not prompt or not full:
        return None
    header = prompt.removesuffix(prefill(format, prompt))
    return next((begun for begun in (prompt, header) if full.startswith(begun)), None)


def _asking(format: Format, prompt: str) -> str:
    """Return what asks for an answer in the prompt: some templates ask for the next one behind each that they write."""
    header = prompt.removesuffix(prefill(format, prompt))
    asked = [header.rindex(text) for text in format.turn.headers if header.endswith(text)]
    return prompt[min(asked) :] if asked else ""


def _parse(format: Format, prompt: str, text: str) -> Message:
    parser = Parser(format, _REQUEST, prompt=prompt)
    parser.feed(text)
    parser.finish()
    return parser.message


def _says_all(message: Message, answer: Answer) -> bool:
    complete = [call.name for call in message.tool_calls if call.status is CallStatus.COMPLETE]
    return (
        [name for name, _ in answer.calls] == complete
        and bool(message.reasoning) >= bool(answer.reasoning)
        and bool(message.content) == bool(answer.content)
    )


def _find(capability: str, shown: list[_Shown], read: Reader, exported: Exported) -> Finding:
    if not shown:
        return Finding(capability=capability, verdict=Verdict.NOT_OBSERVABLE, reason="the template does not render it")
    failures = [failure for it in shown if (failure := _difference(it, read))]
    omitted = next((it.what for it in exported.omissions if capability in it.concerns), "")
    if failures and omitted:
        return Finding(capability=capability, verdict=Verdict.NOT_OBSERVABLE, reason=f"not exported: {omitted}")
    return Finding(
        capability=capability,
        verdict=Verdict.REFUTED if failures else Verdict.PROVED,
        held=len(shown) - len(failures),
        total=len(shown),
        counterexample=min(failures, key=lambda failure: len(failure.answer), default=None),
    )


def _difference(shown: _Shown, read: Reader) -> Counterexample | None:
    pieces = [shown.text[i : i + _CHUNK] for i in range(0, len(shown.text), _CHUNK)]
    for chunking, chunks in (("whole", [shown.text]), (f"every {_CHUNK}", pieces)):
        try:
            found = _comparable(read(chunks, shown.prompt))
        except (ValueError, KeyError) as error:
            # Their parser raises where a region cannot be read, and the whole message is lost.
            found = json.dumps(f"{type(error).__name__}: {error}")
        if found != shown.meant:
            return Counterexample(answer=shown.text, expected=shown.meant, found=found, chunking=chunking)
    return None


def _comparable(message: Mapping[str, Any]) -> str:
    """Return a message, ours or theirs, as JSON without what may differ: names of fields, ids, and how JSON is written."""
    reasoning = next((message[name] for name in REASONING_NAMES.values() if message.get(name)), "")
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    plain = [{"name": call["name"], "arguments": _loaded(call["arguments"])} for call in calls]
    said = {"reasoning": reasoning, "content": message.get("content") or "", "tool_calls": plain}
    return json.dumps(said, ensure_ascii=False, sort_keys=True)


def _loaded(arguments: Any) -> Any:
    return json.loads(arguments) if isinstance(arguments, str) else arguments
