"""Renders an answer as a model would have written it, with the prompt before it.

Rules: what the model writes is what the rendering of the whole adds after the generation prompt, or after the header where
the prompt writes more than the history keeps. What an answer is shown to mean is only what the rendering shows of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from unrender.analysis import Capabilities, shape_context, shape_messages
from unrender.analysis.find.split import common_suffix
from unrender.format import Format, ReasoningMode
from unrender.grammar import Grammar
from unrender.parser.prompt_tail import prefill
from unrender.rendering.template import Template
from unrender.verify.axes import TOOLS, Answer

_QUESTION = "What about zebra crossings?"
_NEXT_QUESTION = "And what about unicorns?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A template under test, and what is known of it."""

    template: Template
    format: Format
    capabilities: Capabilities
    thinking: bool | None = None
    """Whether prompts switch thinking on or off; None leaves that to the template."""
    gave_up: bool = False
    """The analysis gave up claims that did not hold: what the format does not claim is then no part of what is checked."""
    question: str = _QUESTION
    """What the user asks, or a tool returns."""
    before: tuple[Mapping[str, Any], ...] = ()
    """The conversation before that; where a call ends it, the question is its result."""
    grammar: Grammar | None = None
    """A grammar made by hand that reads answers instead of the format."""

    @property
    def prompt(self) -> str | None:
        """The prompt that asks a question, or None when the template refuses."""
        return self._render([], prompts=True)

    def render(self, *answers: Mapping[str, Any]) -> str | None:
        """Return the conversation of the question, an answer in OpenAI's form, and further messages.

        None when the template refuses.
        """
        return self._render([dict(answer) for answer in answers], prompts=False)

    def prompt_after(self, *messages: Mapping[str, Any]) -> str | None:
        """Return the prompt after the question and further messages; None when the template refuses."""
        return self._render([dict(message) for message in messages], prompts=True)

    def _asked(self) -> Mapping[str, Any]:
        calls = self.before[-1].get("tool_calls") if self.before else None
        if calls:
            return {"role": "tool", "tool_call_id": calls[-1]["id"], "content": self.question}
        return {"role": "user", "content": self.question}

    def _render(self, answers: list[dict[str, Any]], *, prompts: bool) -> str | None:
        messages = [*self.before, self._asked(), *answers]
        context = shape_context(TOOLS, self.capabilities, thinking=self.thinking)
        shaped = shape_messages(messages, self.capabilities)
        rendering = self.template.render(shaped, add_generation_prompt=prompts, **context)
        return None if rendering.error else rendering.text


@dataclass(frozen=True, slots=True)
class Shown:
    """An answer as a rendering shows it: its text, the prompt before it, and its meaning."""

    prompt: str
    begun: str
    """What is before `text` in the rendering."""
    text: str
    expected: Answer
    whole: str = ""
    """All of the rendering after the question, with what follows `text` in it."""


def show(subject: Subject, answer: Answer) -> Shown | None:
    """Render an answer; None when the rendering does not show all its parts."""
    prompt, full = subject.prompt, subject.render(answer.to_openai())
    if prompt is None or full is None or subject.question not in full:
        return None
    if not _shows_arguments(subject, answer, full):
        return None
    if not answer.reasoning and _goes_on(subject.format, prompt, full):
        full = _in_history(subject, answer)
    if full is None:
        return None
    begun = _begun(subject, prompt, full)
    if begun is None:
        return None
    text = full[len(begun) :].removesuffix(_asking(subject, prompt))
    if not full.startswith(prompt.removesuffix(prefill(subject.format, prompt))):
        text = _without_epilogue(subject, text)
    expected = _visible(answer, text, subject.format)
    if expected is None:
        return None
    # Reasoning without an opening marker is reasoning because the prompt has begun it.
    unmarked = expected.reasoning and subject.format.reasoning.mode is ReasoningMode.DELIMITER
    return Shown(prompt=prompt if unmarked else begun, begun=begun, text=text, expected=expected, whole=full)


def _shows_arguments(subject: Subject, answer: Answer, full: str) -> bool:
    """Return whether the rendering `full` of an answer would be another one if the arguments of its calls were others."""
    calls = tuple((name, {key: _another(value) for key, value in given.items()}) for name, given in answer.calls)
    return calls == answer.calls or subject.render(replace(answer, calls=calls).to_openai()) != full


def _another(value: Any) -> Any:
    """Return another value of the same type, or a text instead of null."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case list():
            return [*value, "other"]
        case dict():
            return {**value, "other": True}
        case _:
            return f"{value or ''} other"


def _goes_on(format: Format, prompt: str, full: str) -> bool:
    """Return whether the last answer is written as one that goes on: after reasoning that the prompt opens and nothing closes."""
    end = format.reasoning.end.strip()
    opened = _leaves_open(format, prefill(format, prompt))
    return opened and full.startswith(prompt) and end not in full[len(prompt) :]


def _leaves_open(format: Format, begun: str) -> bool:
    """Return whether what a prompt has begun is reasoning that goes on: its marker, or words where it has none."""
    markers = format.reasoning
    opened = bool(begun.strip()) if markers.mode is ReasoningMode.DELIMITER else markers.start.strip() in begun
    return markers.mode is not ReasoningMode.NONE and opened and not markers.closed_in(begun)


def _in_history(subject: Subject, answer: Answer) -> str | None:
    """Render the answer with another question after it, up to the end of its turn; None when that does not show."""
    asked = {"role": "user", "content": _NEXT_QUESTION}
    full, end = subject.render(answer.to_openai(), asked), subject.format.turn.end
    before = (full or "").rpartition(_NEXT_QUESTION)[0]
    return before[: before.rindex(end) + len(end)] if end.strip() and end in before else None


def show_after_prompt(subject: Subject, answer: Answer) -> Shown | None:
    """Render an answer as the model would continue the real prompt.

    None when the rendering does not show how the answer goes on after that prompt.
    """
    shown, prompt = show(subject, answer), subject.prompt
    if shown is None or prompt is None:
        return None
    text = _going_on(subject.format, shown, prefill(subject.format, prompt)) if shown.begun != prompt else shown.text
    return replace(shown, prompt=prompt, text=text) if text else None


def _going_on(format: Format, shown: Shown, begun: str) -> str:
    """Cut from the answer what the prompt has written of it; empty when the answer does not follow from that."""
    markers, reasoning = format.reasoning, shown.expected.reasoning
    if not begun.strip():
        return shown.text
    if shown.text.startswith(begun):
        return shown.text[len(begun) :]
    if _begins_content(format, begun):
        return ""  # This answer begins with something else.
    if _leaves_open(format, begun):
        return shown.text[shown.text.index(reasoning) :] if reasoning else ""
    if markers.end and not markers.closed_in(begun):
        return shown.text
    if reasoning:
        return ""
    # What the prompt has closed is not in the history, and layout with which it ends is not the answer's.
    text = shown.text.lstrip().removeprefix(markers.empty).removeprefix(markers.end)
    return text.lstrip() if begun[-1:].isspace() else text


def _begins_content(format: Format, begun: str) -> bool:
    """Return whether what a prompt has begun is content: it ends with the marker that opens it, or is a part of that."""
    start, written = format.content.start.strip(), begun.strip()
    return bool(start) and (written.endswith(start) or start.startswith(written))


def _begun(subject: Subject, prompt: str, full: str) -> str | None:
    """Return the part of `full` that the model did not write."""
    if full.startswith(prompt):
        return prompt
    header = prompt.removesuffix(prefill(subject.format, prompt))
    found = header if full.startswith(header) else _up_to_header(subject, full)
    return found and _past_headers(subject.format, full, len(found))


def _past_headers(format: Format, full: str, at: int) -> str:
    """Return `full` up to `at` and any headers that follow there: the end of one part of a header may look like another part."""
    while header := next((text for text in format.turn.headers if text and full.startswith(text, at)), ""):
        at += len(header)
    return full[:at]


def _up_to_header(subject: Subject, full: str) -> str | None:
    """Find the answer by its header alone, where a prompt says more between question and answer than the history does."""
    asked = full.rfind(subject.question) + len(subject.question)
    headers = (header for header in subject.format.turn.headers if header in full[asked:])
    found = (full.index(header, asked) + len(header) for header in headers)
    at = min(found, default=-1)
    return full[:at] if at >= 0 else None


def _asking(subject: Subject, prompt: str) -> str:
    """Return what asks for an answer in the prompt: some templates ask for the next one after each that they write."""
    if subject.render() == prompt:
        return ""  # Nothing asks: what the prompt ends with ends the question.
    header = prompt.removesuffix(prefill(subject.format, prompt))
    headers = subject.format.turn.headers
    return next((prompt[len(header) - len(text) :] for text in headers if header.endswith(text)), "")


def _without_epilogue(subject: Subject, text: str) -> str:
    """Cut off what the template writes after every answer, whatever it says; whole markers only."""
    # Two others, since an answer may end as one of them does.
    others = [
        subject.render({"role": "assistant", "content": content}) or "" for content in ("Quite so.", "Not at all!")
    ]
    epilogue, closer = common_suffix(others), subject.format.content.end
    epilogue = epilogue.rpartition(closer)[2] if closer.strip() else epilogue  # What closes content is the answer's.
    return text[: len(text) - len(epilogue if text.endswith(epilogue) else common_suffix([text, epilogue]))]


def _visible(answer: Answer, text: str, format: Format) -> Answer | None:
    content, reasoning = _as_written(answer.content, text), _as_written(answer.reasoning, text)
    named = all(word in text for name, arguments in answer.calls for word in (name, *_written_keys(arguments, format)))
    if not named or (answer.content and not content) or (answer.reasoning and not reasoning):
        return None
    return Answer(content=content, reasoning=reasoning, calls=tuple(_written_calls(answer, format)))


def _as_written(text: str, rendering: str) -> str:
    """Return `text` as the rendering shows it; some templates trim it. Empty when it is not shown."""
    return next((form for form in (text, text.strip()) if form and form in rendering), "")


def _written_calls(answer: Answer, format: Format) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, arguments in answer.calls:
        yield name, {key: arguments[key] for key in _written_keys(arguments, format)}


def _written_keys(arguments: Mapping[str, Any], format: Format) -> list[str]:
    omits_null = format.tools.arguments.codec.omits_null
    return [key for key, value in arguments.items() if not (omits_null and value is None)]
