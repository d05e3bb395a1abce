"""Rules about prompts: how they end, and whether one extends the one before."""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Sequence
from typing import Any

from unrender.analysis.find.split import common_prefix
from unrender.lint.conversations import (
    ANSWER,
    ASSISTANT,
    FIRST,
    NEXT_USER,
    THOUGHT,
    TOOLS,
    USER,
    Messages,
    Subject,
    Symptom,
    around,
    calling,
    tool_result,
)


def generation_prompt_missing(subject: Subject) -> Iterator[Symptom]:
    """Yield a question if no prompt asks for the answer to it.

    Only templates whose history has a header before all answers are judged.
    """
    asked = subject.history([USER]).text
    if subject.prompt([USER]).text != asked or not asked:
        return
    kinds = [ASSISTANT]
    kinds += [calling(FIRST)] if subject.writes_calls else []
    kinds += [{**ASSISTANT, "reasoning_content": THOUGHT}] if subject.writes_reasoning else []
    answers = [subject.history([USER, kind]).text.removeprefix(asked) for kind in kinds]
    # `<bot>It rains.`, `<bot><call>…`, `<bot><think>…`: what all answers begin with is the header that nothing asks for.
    header = common_prefix([*answers, answers[0].partition(ANSWER)[0]])
    if ANSWER in answers[0] and header.strip():
        yield Symptom(f"`add_generation_prompt` does nothing; {header.strip()!r} is never asked for", [USER])


def generation_prompt_always(subject: Subject) -> Iterator[Symptom]:
    """Yield a finished conversation if the prompt asks for another answer all the same."""
    messages = [USER, ASSISTANT]
    text = subject.history(messages).text
    tail = text[text.rfind(ANSWER) + len(ANSWER) :]
    header = next((header for header in subject.format.turn.headers if len(header.strip()) > 1 and header in tail), "")
    if ANSWER in text and header and tail.endswith(header):
        sentence = "the prompt for the next answer is written although `add_generation_prompt` is false"
        yield Symptom(sentence, messages, around(text, len(text) - len(header), len(text)))


def not_prefix_stable(subject: Subject) -> Iterator[Symptom]:
    """Yield conversations whose next prompt does not begin with the text that the model has seen.

    That text is the last prompt, or the last prompt with the answer as it was written.
    """
    yield from _unstable(subject, [USER, ASSISTANT], NEXT_USER, (), "the next question")
    if subject.takes_tools:
        yield from _unstable(subject, [USER, ASSISTANT], NEXT_USER, TOOLS, "the next question, with tools")
    if subject.writes_calls:
        yield from _unstable(subject, [USER, calling(FIRST)], tool_result(), TOOLS, "a tool's result")


def _unstable(
    subject: Subject, answered: Messages, following: Any, tools: Sequence[Any], what: str
) -> Iterator[Symptom]:
    messages = [*answered, following]
    asked, written, later = (
        subject.prompt(answered[:-1], tools),
        subject.history(answered, tools),
        subject.prompt(messages, tools),
    )
    if any(rendering.error for rendering in (asked, written, later)):
        return
    # The prompt may be kept while the answer is not, e.g. because its reasoning is gone in the next prompt.
    for before, whose in ((asked.text, "prompt"), (written.text.rstrip(), "answer")):
        if not later.text.startswith(before):
            same = len(os.path.commonprefix([before, later.text]))
            sentence = f"{what} changes the {whose} before it: {before[same : same + 40]!r} is not kept"
            yield Symptom(sentence, messages, around(later.text, same, same))
            return
