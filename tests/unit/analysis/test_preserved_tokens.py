"""Preserved tokens: every marker that the parser reads and a tokenizer could drop."""

from __future__ import annotations

from unrender.analysis.analyze import preserved_tokens
from unrender.format import Format, Reasoning, ReasoningMode, Turn


def test_tokens_between_and_around_the_parts_are_preserved() -> None:
    """Joints, what the prompt begins, what is written for no reasoning, and what says nothing; not the header."""
    fmt = Format(
        turn=Turn(
            headers=("<|start|>assistant",),
            end="<|end|>",
            prefill="<|open|>",
            reasoning_to_content="<|next|>final",
            tools_to_content="<|again|>",
        ),
        reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<t>", end="</t>", empty="<none/></t>"),
        ignored=("<|noise|>",),
    )

    assert set(preserved_tokens(fmt)) == {
        *("<t>", "</t>", "<none/>", "<|end|>", "<|open|>", "<|next|>", "<|again|>", "<|noise|>"),
    }
