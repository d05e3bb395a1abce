"""Preserved tokens: every marker that the parser reads and a tokenizer could drop."""

from __future__ import annotations

from unrender.format import (
    CallSyntax,
    Format,
    Reasoning,
    ReasoningMode,
    Slot,
    TurnTexts,
    preserved_tokens,
    special_tokens,
)


def test_tokens_between_and_around_the_parts_are_preserved() -> None:
    """Joints, the prefill, the empty form of reasoning and ignored markers are preserved, but the header isn't."""
    fmt = Format(
        turn=TurnTexts(
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


def test_tolerated_markers_count_where_the_template_knows_them() -> None:
    """Markers of a tolerated syntax are preserved if they are in the template's source."""
    other = CallSyntax(call_start="<c>", call_end="</c>", function=(Slot.NAME, ":", Slot.ARGUMENTS))

    assert preserved_tokens(Format(tolerated=(other,)), "{{ '<c>' }}") == ("<c>",)


def test_markers_with_quotes_or_braces_are_no_tokens() -> None:
    """Text around a value isn't a token, but a marker without quotes or braces may be one."""
    assert list(special_tokens(['<a="b"><c>', "<d={x}>[E]", "<f>"])) == ["<c>", "[E]", "<f>"]
