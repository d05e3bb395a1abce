"""Extracts an answer from a rendering: the text after its prompt."""

from __future__ import annotations

from dataclasses import dataclass

from unrender.conversation.messages import Conversation, Said
from unrender.format import Format, ReasoningMode
from unrender.messages.wire import Request
from unrender.proof.split import common_prefix


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOut:
    """An answer cut out of a rendering, and the text before it."""

    said: Said
    name: str = ""
    """The answer's parts, in words, e.g. `content and a call`."""
    request: Request
    """The request that the answer is read with: its tools, and the types of their arguments."""
    before: Conversation = ()
    """The conversation up to the answer."""
    prompt: str
    """The prompt of the answer."""
    start: str
    """The rendering up to the answer."""
    answer: str
    whole: str = ""
    """The rendering with the answer, and with the following messages."""

    @property
    def asked(self) -> bool:
        """True if the start is the whole prompt, after which the answer comes."""
        return self.start == self.prompt

    def read_after(self, format: Format) -> str:
        """Return the text after which a parser reads the answer."""
        # `<bot><think>` is the prompt, and the history has `<bot>so</think>Hi`: only the prompt begins the thought.
        # Where no marker does, as in `<bot>My steps:`, its words do.
        opened, begun = format.reasoning.opened_in, self.prompt.removeprefix(self.start)
        begins = begun.strip() if format.reasoning.mode is ReasoningMode.DELIMITER else opened(begun)
        unmarked = self.said.reasoning and begins and not opened(self.answer)
        return self.prompt if unmarked else self.start


def cut_out(
    said: Said, request: Request, before: Conversation, *, prompt: str, whole: str, name: str = "", begun: str = ""
) -> CutOut | None:
    """Cut an answer to the conversation `before` it out of a rendering; None where no question is before it.

    `begun` is what the prompt is known to begin of answers: an answer that does not go on with it comes after the header.
    """
    start = prompt if whole.startswith(prompt) else _shared(prompt.removesuffix(begun), whole)
    if str(before[-1].content) not in start:
        return None
    texts = {"prompt": prompt, "start": start, "answer": whole[len(start) :], "whole": whole}
    return CutOut(said=said, name=name, request=request, before=before, **texts)


def _shared(prompt: str, full: str) -> str:
    """Return the part of `full` that the prompt has as well: all of it, or what both begin with, white space apart."""
    if full.startswith(prompt):
        return prompt
    # `<bot><think>` is the prompt, and the history has `<bot>Hi`: the answer begins after what both have in common.
    same = common_prefix([prompt, full])
    # `</u>\n\n<bot>` is the prompt, and the history has `</u>\n<bot>Hi`: an answer does not begin with a missing line break.
    asked, rest = (text[len(same) :].lstrip() for text in (prompt, full))
    more = common_prefix([asked, rest])
    return full[: len(full) - len(rest) + len(more)] if more.strip() else same
