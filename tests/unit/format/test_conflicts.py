"""Markers that could not be told apart: each pair that meets at one place, by the paths of the fields."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from unrender.format import (
    CallSyntax,
    Content,
    ContentMode,
    Envelope,
    Reasoning,
    ReasoningMode,
    Slot,
    ToolMode,
    TurnTexts,
)
from unrender.format.checks import check_answer, check_fences, check_syntax

THINK = Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end="</think>")
SAY = Content(mode=ContentMode.ALWAYS_WRAPPED, start="<say>", end="</say>")
CALLS = CallSyntax(
    mode=ToolMode.TAG_WITH_JSON,
    section_start="<calls>",
    section_end="</calls>",
    call_start="<call>",
    call_end="</call>",
    separator=",",
    function=("<fn=", Slot.NAME, ">", Slot.ARGUMENTS, "</fn>"),
)
OBJECT = CallSyntax(
    mode=ToolMode.JSON_NATIVE,
    function=('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"),
    envelope=Envelope(name_field=("name",), args_field=("arguments",)),
)


def answer(
    *,
    turn: TurnTexts | None = None,
    reasoning: Reasoning = THINK,
    content: Content = SAY,
    tools: CallSyntax = CALLS,
    ignored: tuple[str, ...] = (),
) -> list[str]:
    """Return the paths of what is refused, without `format.`."""
    found = check_answer(turn or TurnTexts(), reasoning, content, tools, ignored)
    return [where.removeprefix("format.") for where, _ in found]


def test_parts_of_their_own_markers_are_told_apart() -> None:
    """So are those that end with the marker that begins them, and brackets beside words."""
    assert answer() == []
    assert answer(reasoning=replace(THINK, start="~~", end="~~"), content=replace(SAY, start="||", end="||")) == []
    assert answer(turn=TurnTexts(headers=("<bot>",), end="<end>", ends=("<stop>",)), ignored=("<x>",)) == []
    assert answer(content=Content(), reasoning=Reasoning(), tools=CallSyntax()) == []


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"content": replace(SAY, start="<think>")}, ["content.start"]),
        ({"content": replace(SAY, start=" <think>\n")}, ["content.start"]),
        ({"content": replace(SAY, end="</think>")}, ["content.end"]),
        ({"content": replace(SAY, start="</think>")}, ["content.start"]),
        ({"reasoning": replace(THINK, end="<say>")}, ["content.start"]),
        ({"tools": replace(CALLS, section_start="<think>")}, ["tools.section_start"]),
        ({"tools": replace(CALLS, call_start="</say>")}, ["tools.call_start"]),
        ({"tools": replace(CALLS, function=("<say>[", *CALLS.function[1:]))}, ["tools.function[0]"]),
        ({"tools": replace(CALLS, call_start="<calls>")}, ["tools.call_start"]),
        ({"content": replace(SAY, start="<think><say>")}, ["content.start"]),
        ({"tools": replace(CALLS, call_start="<say><call>")}, ["tools.call_start"]),
        ({"tools": replace(CALLS, call_start="<calls><call>")}, []),
        ({"content": replace(SAY, end="<think></say>")}, []),
        ({"turn": TurnTexts(end="<think>")}, ["turn.end"]),
        ({"turn": TurnTexts(headers=("<bot>", "<say>\n"))}, ["turn.headers[1]"]),
        ({"turn": TurnTexts(ends=("<stop>", "<call>"))}, ["turn.ends[1]"]),
        ({"turn": TurnTexts(end="</think>")}, []),
        ({"ignored": ("<x>", "<fn=")}, ["ignored[1]"]),
    ],
)
def test_two_parts_may_not_begin_alike(fields: dict[str, Any], refused: list[str]) -> None:
    """What opens one part opens, ends or is dropped nowhere else, and is not hidden in another opener."""
    assert answer(**fields) == refused


@pytest.mark.parametrize(
    ("turn", "refused"),
    [
        (TurnTexts(prefill="Steps"), []),
        (TurnTexts(prefill="Steps <go>"), ["turn.prefill"]),
        (TurnTexts(prefill="Steps <end>", end="<end>"), ["turn.prefill"]),
        (TurnTexts(prefill="Steps|", content_to_tools="|"), ["turn.prefill"]),
        (TurnTexts(prefill="Steps <call>"), ["turn.prefill", "turn.prefill"]),
        (TurnTexts(), []),
    ],
)
def test_words_that_begin_reasoning_hold_no_marker(turn: TurnTexts, refused: list[str]) -> None:
    """The parser finds their end by the markers."""
    worded = Reasoning(mode=ReasoningMode.DELIMITER, end="<go>")

    assert answer(turn=turn, reasoning=worded) == refused
    if "call" not in turn.prefill:
        assert answer(turn=turn, reasoning=THINK) == []


@pytest.mark.parametrize("name", ["prefill", "prefill_no_thinking"])
def test_a_prompt_begins_no_call_and_no_other_answer(name: str) -> None:
    """Save where content begins with the same words."""
    texts = ["Well", "Well <call>", "Well <calls>\n", "Well <fn=", "<call> well", "<bot>Well"]
    turns = [TurnTexts(headers=("<bot>\n",), **{name: text}) for text in texts]

    assert [answer(turn=turn) for turn in turns] == [
        [],
        [f"turn.{name}"],
        [f"turn.{name}"],
        [f"turn.{name}"],
        [],
        [f"turn.{name}"],
    ]
    alike = replace(CALLS, section_start="", call_start="", function=(">>>", *CALLS.function[1:]))
    assert answer(turn=TurnTexts(**{name: ">>>"}), tools=alike, content=replace(SAY, start=">>>all")) == []
    assert answer(turn=TurnTexts(**{name: ">>>"}), tools=alike) == [f"turn.{name}"]


@pytest.mark.parametrize(
    ("mode", "prefill", "refused"),
    [
        (ReasoningMode.FORCED_OPEN, "<think>\n", []),
        (ReasoningMode.FORCED_OPEN, "<plan>", ["turn.prefill"]),
        (ReasoningMode.FORCED_CLOSED, "<plan>", ["turn.prefill"]),
        (ReasoningMode.FORCED_OPEN, "\n", []),
        (ReasoningMode.TAG_BASED, "<plan>", []),
    ],
)
def test_a_prompt_opens_the_reasoning_that_it_always_opens(
    mode: ReasoningMode, prefill: str, refused: list[str]
) -> None:
    """Where it writes anything but layout."""
    assert answer(turn=TurnTexts(prefill=prefill), reasoning=replace(THINK, mode=mode)) == refused


@pytest.mark.parametrize(
    ("fields", "empty", "refused"),
    [
        ({"end": "|"}, "|", ["reasoning.empty", "turn.prefill_no_thinking"]),
        ({"end": "|"}, "<think>|", []),
        ({"end": "||"}, "||", []),
        ({"end": "|", "mode": ReasoningMode.DELIMITER, "start": ""}, "|", []),
        ({"end": "|"}, "", []),
    ],
)
def test_one_character_alone_ends_no_reasoning(fields: dict[str, Any], empty: str, refused: list[str]) -> None:
    """Prose has such characters as well."""
    reasoning = replace(THINK, **fields, empty=empty)

    assert answer(turn=TurnTexts(prefill_no_thinking=empty), reasoning=reasoning) == refused


@pytest.mark.parametrize(
    ("end", "joints", "refused"),
    [
        ("</think>", {"reasoning_to_content": "\n"}, []),
        ("done", {}, []),
        ("done", {"reasoning_to_content": "\n"}, ["turn.reasoning_to_tools"]),
        ("done", {"reasoning_to_tools": "\n"}, ["turn.reasoning_to_content"]),
        ("done", {"reasoning_to_content": "\n", "reasoning_to_tools": " "}, []),
        ("done\n", {}, []),
    ],
)
def test_an_end_that_looks_like_a_word_has_white_space_after_it(
    end: str, joints: dict[str, str], refused: list[str]
) -> None:
    """Everywhere or nowhere, or the next word would go on with it."""
    assert answer(turn=TurnTexts(**joints), reasoning=replace(THINK, end=end)) == refused


def test_the_empty_form_of_reasoning_ends_in_a_word_as_well() -> None:
    """What comes after it is looked at in the same way."""
    joints = {"reasoning_to_content": "\n", "reasoning_to_tools": "\n"}
    worded = replace(THINK, end="done", empty="<think>done")

    assert answer(turn=TurnTexts(**joints), reasoning=worded) == []
    assert answer(turn=TurnTexts(**joints, prefill_no_thinking="<think>done"), reasoning=worded) == [
        "turn.prefill_no_thinking"
    ]
    assert answer(turn=TurnTexts(**joints, prefill_no_thinking="<think>done\n"), reasoning=worded) == []
    assert answer(turn=TurnTexts(**joints), reasoning=replace(worded, unseen=True)) == ["reasoning.unseen"]


def syntax(tools: CallSyntax = CALLS, **changes: Any) -> list[str]:
    return [where for where, _ in check_syntax(replace(tools, **changes), "tools")]


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({}, []),
        ({"separator": "</call>"}, ["tools.separator"]),
        ({"separator": "<call>\n"}, ["tools.separator"]),
        ({"separator": "</calls> "}, ["tools.separator"]),
        ({"call_end": "</calls>"}, ["tools.section_end"]),
        ({"call_end": "</fn>"}, ["tools.call_end"]),
        ({"section_end": "<call>"}, ["tools.section_end"]),
        ({"section_end": "<calls>"}, []),
        ({"call_end": "<call>", "function": CALLS.function[:4]}, []),
        ({"call_end": "<call>"}, []),
        ({"call_start": "", "function": (*CALLS.function[:4], "<fn="), "call_end": ""}, []),
        ({"call_start": "<calls>[", "section_end": ""}, ["tools.call_start"]),
    ],
)
def test_one_marker_does_not_open_and_close_a_call(changes: dict[str, Any], refused: list[str]) -> None:
    """Save where the second one ends what the first began."""
    assert syntax(**changes) == refused


def test_an_object_begins_with_its_bracket_where_no_marker_does() -> None:
    """So a bracket cannot end the calls, nor separate them."""
    assert syntax(OBJECT) == []
    assert syntax(OBJECT, section_start="<calls>", section_end="{") == ["tools.section_end"]
    assert syntax(OBJECT, separator="{") == ["tools.separator"]
    assert syntax(OBJECT, call_start="<call>", separator="{") == []


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({}, False),
        ({"call_end": "```</call>"}, True),
        ({"call_start": "<call>```json\n"}, True),
        ({"call_start": "<call>```json\n", "call_end": "\n```</call>"}, False),
        ({"call_start": "<call>```json\n", "call_end": "\n```end"}, True),
        ({"section_start": "```\n", "section_end": "\n```"}, False),
        ({"section_start": "```\n", "section_end": "\n```", "separator": "```"}, True),
        ({"function": ("<fn=", Slot.NAME, ">```", Slot.ARGUMENTS, "```</fn>")}, False),
        ({"function": ("<fn=", Slot.NAME, ">", Slot.ARGUMENTS, "```</fn>")}, True),
        ({"function": ("<fn=", Slot.NAME, ">```", Slot.ARGUMENTS, "</fn>")}, True),
        ({"function": ("<fn=", Slot.NAME, ">")}, False),
    ],
)
def test_each_fence_that_opens_is_closed(changes: dict[str, Any], refused: bool) -> None:
    """Without a word after it, and no other one is."""
    found = [where for where, _ in check_fences(replace(CALLS, **changes), "tools")]

    assert found == (["tools.call_end"] if refused else [])
