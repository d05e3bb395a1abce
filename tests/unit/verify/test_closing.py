"""Answers after a prompt that opens reasoning, if the history doesn't show it."""

from __future__ import annotations

from cases import beside, cases

from unrender import ChatTemplate
from unrender.conversation.messages import Said
from unrender.proof import CutOut
from unrender.verify.renditions import Candidate, proof_answer
from unrender.verify.response_templates import show_closing

TEMPLATE = beside(__file__, "template.jinja")


def shown(empty: str, answer: Said) -> CutOut | None:
    candidate = Candidate.of(ChatTemplate.from_string(TEMPLATE.replace("EMPTY", repr(empty))))
    return show_closing(candidate, answer)


@cases
def test_what_the_prompt_opened_is_closed(empty: str, text: str) -> None:
    """The answer closes the reasoning first, with the whitespace before the content."""
    closing = shown(empty, proof_answer(content="It rains."))

    assert closing
    assert closing.start.endswith("<|assistant|><think>\n")
    assert closing.answer == text


def test_reasoning_closes_itself() -> None:
    """An answer with reasoning continues the prompt directly."""
    assert shown("", proof_answer(content="It rains.", reasoning="Let me look.")) is None
