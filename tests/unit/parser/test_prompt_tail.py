"""The prefill at the end of a prompt: text after the last header that a generation prompt can contain."""

from __future__ import annotations

from dataclasses import replace

from cases import cases
from tables import table

from unrender.format import (
    Format,
    Reasoning,
    ReasoningMode,
    TurnTexts,
)
from unrender.parser.prompt_tail import after_header, begun_by, read_prefill

FORMAT = Format.from_dict(table("test_prompt_tail")["FORMAT"])
TURN, THINK, TOOLS = FORMAT.turn, FORMAT.reasoning, FORMAT.tools


@cases
def test_what_follows_the_last_header(prompt: str, rest: str | None) -> None:
    """The text after the last header is returned without the header's own layout; None without a header."""
    assert after_header(FORMAT, prompt) == rest


def test_the_longest_layout_of_a_header_is_taken_off() -> None:
    """The longest spelling of a header counts. Of several headers, the one that ends last counts."""
    format = Format(turn=TurnTexts(headers=("<bot>", "<bot>\n\n", "<bot>\n", "<bot> final")))

    assert [after_header(format, "<bot>" + rest) for rest in ("x", "\nx", "\n\nx", "\n\n\nx", " final", " finalx")] == [
        "x",
        "x",
        "x",
        "\nx",
        "",
        "x",
    ]


@cases
def test_what_a_generation_prompt_may_write(written: str, prefill: str) -> None:
    """A prefill is a known text, or one block of reasoning, open or closed, without text from an earlier turn."""
    assert read_prefill(FORMAT, f"<user>Hi<end><bot>\n{written}") == prefill


def test_well_known_reasoning_counts_where_the_format_has_none() -> None:
    """Well-known reasoning markers count, unless the format turns them off."""
    tolerant = Format(turn=TURN)
    strict = Format(turn=TURN, undeclared_reasoning=False)

    assert (read_prefill(tolerant, "<bot>\n<think>"), read_prefill(strict, "<bot>\n<think>")) == ("<think>", "")


def test_one_marker_may_begin_and_end_a_thought() -> None:
    """If both markers are the same, the first one starts reasoning and the second one ends it."""
    format = Format(
        turn=TURN,
        reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="~~", end="~~"),
        undeclared_reasoning=False,
    )

    assert [read_prefill(format, "<bot>\n" + text) for text in ("~~Hm.", "~~Hm.~~", "~~Hm.~~Hi")] == [
        "~~Hm.",
        "~~Hm.~~",
        "",
    ]


def test_short_ends_may_be_in_a_thought() -> None:
    """A single character inside reasoning isn't an end of turn or of a call."""
    format = Format(turn=TurnTexts(headers=("<bot>",), end="."), reasoning=THINK, undeclared_reasoning=False)

    signs = replace(TOOLS, section_start="[", section_end="]", call_start="$", call_end="")

    assert read_prefill(format, "<bot><t>\nA. B") == "<t>\nA. B"
    assert read_prefill(replace(format, tools=signs), "<bot><t>\nA [$ B") == "<t>\nA [$ B"
    two = replace(
        format, turn=replace(format.turn, end="##"), tools=replace(signs, section_start="[[", call_start="$$")
    )
    assert [read_prefill(two, f"<bot><t>\nA {mark} B") for mark in ("##", "[[", "$$")] == ["", "", ""]


@cases
def test_without_a_header_an_open_thought_at_the_end_counts(prompt: str, prefill: str) -> None:
    """Reasoning is open at the end of the prompt, including the whitespace after its marker."""
    assert read_prefill(FORMAT, prompt) == prefill
    assert read_prefill(Format(turn=TURN, undeclared_reasoning=False), prompt) == ""


@cases
def test_whatever_words_a_generation_prompt_writes(prompt: str, bare: str | None, prefill: str) -> None:
    """Comparison with a rendering without the generation prompt shows its words, without those of earlier turns."""
    assert begun_by(FORMAT, prompt, lambda: bare) == prefill


def test_a_second_rendering_is_asked_for_only_where_it_is_needed() -> None:
    """The second rendering costs as much as the first, so it's only done if needed."""
    asked = []

    def render() -> None:
        asked.append(1)

    for prompt in ("<bot>\nWell,", "<bot>\n", "no header", "<bot>\nSure<end>", "<bot>\nSure. <user>Why?"):
        begun_by(FORMAT, prompt, render, ["Why?"])
    assert asked == []
    begun_by(FORMAT, "<bot>\nSure", render)

    assert asked == [1]
