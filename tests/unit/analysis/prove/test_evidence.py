"""Records and rules in, comparisons out: which are shown, with which two texts, and which rule decided."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

import pytest

from unrender.analysis.ask.answers import Answers, Continuations, Turns, Variants
from unrender.analysis.find.turn_frame import TurnFrame
from unrender.analysis.prove.evidence import Record, collect_evidence
from unrender.analysis.result import Evidence, Shown
from unrender.format import Arguments, CallSyntax, Format, Reasoning, ReasoningMode, Slot, ToolMode, TurnTexts

ANSWERS = Answers(
    content="C.",
    reasoned="<think>R</think>C.",
    call="<call>f 1</call>.",
    reasoned_call="<think>R</think><call>f 1</call>.",
    mixed="C<call>f 1</call>.",
    two_calls="<call>f 1</call><call>g 2</call>.",
    long_call="<call>f 1 2</call>.",
    empty_call="<call>f</call>.",
)
VARIANTS = Variants(
    other_name="<call>g 1</call>.",
    other_id="<call>f 1</call>..",
    numeral="<call>f '1'</call>.",
    other_key="<call>f k 1</call>.",
    other_value="<call>f 2</call>.",
    many="<call>f true</call>.",
)
TURNS = Turns(question=Continuations(prompt="<bot>", prompt_no_thinking="<bot><think></think>"), content="<bot>C.")
RECORD = Record(turns=TURNS, frame=TurnFrame(lead="<bot>", header="<bot>"), answers=ANSWERS, variants=VARIANTS)
TOOLS = CallSyntax(
    mode=ToolMode.TAG_WITH_TAGGED,
    call_start="<call>",
    call_end="</call>",
    function=(Slot.NAME, " ", Slot.ARGUMENTS),
    arguments=Arguments(entry=(Slot.KEY, "=", Slot.VALUE), separator=" "),
)
FORMAT = Format(
    reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end="</think>"),
    tools=TOOLS,
    turn=TurnTexts(headers=("<bot>",), end=".", prefill_no_thinking="<think></think>"),
)
PAIRS = {
    ("", "turn.headers", "<bot>", "<bot>C."),
    ("R1", "reasoning", "C.", "<think>R</think>C."),
    ("R2", "turn.prefill", "<bot>", "<bot><think></think>"),
    ("R3", "reasoning.mode", "<think>R</think>C.", "<think>R</think><call>f 1</call>."),
    ("C1", "content", "C.", "<call>f 1</call>."),
    ("C1", "content", "C.", "<think>R</think>C."),
    ("C1", "content_with_calls", "C.", "C<call>f 1</call>."),
    ("T1", "tools.mode", "C.", "<call>f 1</call>."),
    ("T2", "tools.call_start", "<call>f 1</call>.", "<call>f 1</call><call>g 2</call>."),
    ("T3", "tools.function", "<call>f 1</call>.", "<call>g 1</call>."),
    ("T4", "tools.arguments.codec", "<call>f 1</call>.", "<call>f true</call>."),
    ("T5", "tools.arguments.separator", "<call>f 1</call>.", "<call>f 1 2</call>."),
    ("T6", "tools.arguments.when_empty", "<call>f 1</call>.", "<call>f</call>."),
    ("T7", "tools.call_id", "<call>f 1</call>.", "<call>f 1</call>.."),
    ("A1", "tools.arguments.entry", "<call>f 1</call>.", "<call>f k 1</call>."),
    ("A2", "tools.arguments.entry", "<call>f 1</call>.", "<call>f 2</call>."),
    ("A3", "tools.arguments.codec", "<call>f 1</call>.", "<call>f '1'</call>."),
}


def pairs(record, format):
    found = collect_evidence(record, format, {})
    return {(item.comparison, item.part, item.left.text, item.right.text) for item in found}


def test_each_comparison_has_its_two_texts():
    """Every comparison of the field is there, each with two texts that differ in one respect."""
    assert pairs(RECORD, FORMAT) == PAIRS


def test_parts_are_fields_of_the_format():
    """What a comparison tells of can be looked up."""
    values = {item.part: attrgetter(item.part)(FORMAT) for item in collect_evidence(RECORD, FORMAT, {})}

    assert values["turn.headers"] == FORMAT.turn.headers
    assert values["tools.mode"] is FORMAT.tools.mode


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"reasoning": Reasoning()}, {"R1", "R3"}),
        ({"tools": CallSyntax()}, {"R3", "T1", "T2", "T3", "T4", "T5", "T6", "T7", "A1", "A2", "A3"}),
        ({"tools": replace(TOOLS, mode=ToolMode.TAG_WITH_JSON, arguments=Arguments())}, {"A1", "A2"}),
        ({"turn": TurnTexts()}, {"R2"}),
    ],
)
def test_what_a_format_has_not_is_not_shown(changes, missing):
    """Comparisons about a part that the format does not have are left out."""
    names = {item.comparison for item in collect_evidence(RECORD, replace(FORMAT, **changes), {})}

    assert {name for name, *_ in PAIRS} - names == missing


def test_either_prefill_is_shown():
    """R2 is there when the prompt writes something with thinking on, or with thinking off."""
    for turn in (TurnTexts(prefill="<think>"), TurnTexts(prefill_no_thinking="<think></think>")):
        assert "R2" in {item.comparison for item in collect_evidence(RECORD, replace(FORMAT, turn=turn), {})}


def test_what_was_not_rendered_is_not_shown():
    """A comparison of which one side is missing is left out."""
    answers = replace(ANSWERS, two_calls=None, content=None)

    names = {item[0] for item in pairs(replace(RECORD, answers=answers), FORMAT)}

    assert {name for name, *_ in PAIRS} - names == {"R1", "C1", "T1", "T2"}


def test_content_that_is_cut_off_is_shown():
    """Where content up to a closer disappears, the first such rendering is compared."""
    answers = replace(ANSWERS, cut={"</a>": None, "</think>": "C.", "</x>": "D"})

    assert ("R1", "reasoning", "C.", "C.") in pairs(replace(RECORD, answers=answers), FORMAT)


def test_the_rule_that_decided_is_named():
    """The heuristic is told with each comparison of its name, and with no other."""
    found = collect_evidence(RECORD, FORMAT, {"T6": "nothing is written"})

    assert {item.comparison for item in found if item.rule} == {"T6"}
    assert {item.rule for item in found} == {"", "nothing is written"}


def test_texts_have_words_and_bounds():
    """Each side says what was rendered; of very long texts the beginning is kept."""
    found = collect_evidence(replace(RECORD, answers=replace(ANSWERS, call="x" * 9000)), FORMAT, {})
    shown = next(item for item in found if item.comparison == "T2")

    assert shown.left == Shown(what="a call", text="x" * 2000)
    assert shown.right.what == "two calls"


def test_each_side_says_what_it_is():
    """No side of a comparison is without words."""
    found = collect_evidence(RECORD, FORMAT, {})

    assert {side.what for item in found for side in (item.left, item.right)} >= {"content", "a call"}
    assert all(item.left.what and item.right.what for item in found)


def test_split_gives_both_texts_again():
    """What both share and what each has alone make up the texts."""
    split = Evidence(
        part="", comparison="", finding="", left=Shown(what="", text="a b c"), right=Shown(what="", text="a x c")
    ).split

    assert (split.prefix, split.left, split.right, split.suffix) == ("a ", "b", "x", " c")
