"""Extracts an answer from a rendering: the text after the prompt."""

from __future__ import annotations

from dataclasses import dataclass

from unrender.conversation.messages import Conversation, Said
from unrender.format import Format, ReasoningMode
from unrender.messages.wire import Request
from unrender.proof.split import common_prefix


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOut:
    """An answer extracted from a rendering, with the text before it."""

    said: Said
    name: str = ""
    """A description of the answer's parts, e.g. `content and a call`."""
    request: Request
    """The request for parsing the answer. It contains the tools and the types of their arguments."""
    before: Conversation = ()
    """Messages before the answer."""
    prompt: str
    """The rendered prompt before the answer."""
    start: str
    """The part of the rendering before the answer."""
    answer: str
    whole: str = ""
    """The complete rendering, including the answer and the messages after it."""

    @property
    def asked(self) -> bool:
        """True if the text before the answer is the complete prompt."""
        return self.start == self.prompt

    def read_after(self, format: Format) -> str:
        """Return the prompt for parsing the answer."""
        # If the prompt is `<bot><think>` and the history contains `<bot>so</think>Hi`, only the prompt opens reasoning, so the parser needs
        # the complete prompt. Reasoning may also be opened by plain words, as in `<bot>My steps:`.
        opened, begun = format.reasoning.opened_in, self.prompt.removeprefix(self.start)
        begins = begun.strip() if format.reasoning.mode is ReasoningMode.DELIMITER else opened(begun)
        unmarked = self.said.reasoning and begins and not opened(self.answer)
        return self.prompt if unmarked else self.start


def cut_out(
    said: Said, request: Request, before: Conversation, *, prompt: str, whole: str, name: str = "", begun: str = ""
) -> CutOut | None:
    """Extract an answer to the conversation `before` from a rendering. Returns None if the answer doesn't follow the question.

    `begun` is the prompt's prefill. An answer that doesn't continue the prefill starts after the header.
    """
    start = prompt if whole.startswith(prompt) else _shared(prompt.removesuffix(begun), whole)
    if str(before[-1].content) not in start:
        return None
    texts = {"prompt": prompt, "start": start, "answer": whole[len(start) :], "whole": whole}
    return CutOut(said=said, name=name, request=request, before=before, **texts)


def _shared(prompt: str, full: str) -> str:
    """Return the longest prefix of `full` that matches the start of `prompt`, apart from whitespace."""
    if full.startswith(prompt):
        return prompt
    # If the prompt is `<bot><think>` and the history contains `<bot>Hi`, the answer starts after the common text, `<bot>`.
    same = common_prefix([prompt, full])
    # If the prompt is `</u>\n\n<bot>` and the history contains `</u>\n<bot>Hi`, ignore the missing line break: the answer still starts
    # after `<bot>`.
    asked, rest = (text[len(same) :].lstrip() for text in (prompt, full))
    more = common_prefix([asked, rest])
    return full[: len(full) - len(rest) + len(more)] if more.strip() else same
