"""Texts before and between the parts of answers in, reasoning's markers out: each heuristic with a text that needs it."""

from __future__ import annotations

import pytest

from unrender.analysis.ask.answers import Answers
from unrender.analysis.ask.probes import CONTENT, NAMES, REASONING
from unrender.analysis.find.reasoning import Openings, ReasoningRecord, find_openings, find_reasoning
from unrender.analysis.find.turn_frame import TurnFrame
from unrender.format import Reasoning, ReasoningMode

NOTHING = dict.fromkeys(
    (
        "content",
        "calls",
        "reasoning",
        "reasoning_content",
        "reasoning_calls",
        "content_no_thinking",
        "calls_no_thinking",
    )
)
CUT_OFF = {"</think>": CONTENT}


def seen(*, source="", header="<bot>", prefill="", prefill_no_thinking="", cut=(), content_end="", **openings):
    frame = TurnFrame(lead=header, header=header, prefill=prefill, prefill_no_thinking=prefill_no_thinking)
    known = Openings(**(NOTHING | openings))
    return ReasoningRecord(source=source, frame=frame, openings=known, cut=dict(cut), content_end=content_end)


def found(**texts):
    """Return mode, start, end, empty form, joint and rule."""
    result = find_reasoning(seen(**texts))
    markers = result.reasoning
    return markers.mode.value, markers.start, markers.end, markers.empty, result.to_content, result.rule


def closer(**texts):
    """Return the end of reasoning that is written, its joint, and the rule that split the two from what follows."""
    _, _, end, _, joint, rule = found(**texts)
    return end, joint, rule.removeprefix("reasoning is written").removeprefix("; ")


CLOSERS = {
    "content's opener is cut off": (
        {"reasoning": "<think>", "content": "<answer>", "reasoning_content": "</think><answer>"},
        ("</think>", "", "without what content alone begins with"),
    ),
    "content's opener with thinking off is cut off": (
        {"reasoning": "[r]", "content": "", "content_no_thinking": "<answer>", "reasoning_content": "</r><answer>"},
        ("</r>", "", "without what content alone begins with"),
    ),
    "what closes the opener is not content's": (
        {"reasoning": "<think>", "content": "</think>", "reasoning_content": "x</think>"},
        ("x</think>", "", "up to the opener's closer"),
    ),
    "what the switch writes in the opener's place is not content's": (
        {
            "reasoning": "<think>",
            "content": "[off]",
            "reasoning_content": "x[off]",
            "prefill": "<think>\n",
            "prefill_no_thinking": "[off]",
        },
        ("x[off]", "", "what all parts that follow share"),
    ),
    "what the switch writes elsewhere is content's": (
        {"reasoning": "<think>", "content": "[off]", "reasoning_content": "x[off]", "prefill_no_thinking": "[off]"},
        ("x", "", "without what content alone begins with"),
    ),
    "content's opener is not all there is": (
        {"reasoning": "<think>", "content": "<answer>", "reasoning_content": "<answer>"},
        ("<answer>", "", "what all parts that follow share"),
    ),
    "content's opener is not what ends it": (
        {"reasoning": "<think>", "content": "<answer>", "reasoning_content": "x</think>so it is"},
        ("x</think>", "", "up to the opener's closer"),
    ),
    "white space is not an opener of content": (
        {"reasoning": "[r]", "content": "\n", "reasoning_content": "</r>\n"},
        ("</r>", "\n", "what all parts that follow share"),
    ),
    "as many markers as close content": (
        {"reasoning": "[r]", "reasoning_content": "</r>\n<answer>", "content_end": "\n</answer>\n"},
        ("</r>", "\n", "without as many markers as close content"),
    ),
    "as many markers, the last of which may be words": (
        {"reasoning": "[r]", "reasoning_content": "</r><answer>x", "content_end": "</answer>x"},
        ("</r>", "", "without as many markers as close content"),
    ),
    "no words as long as content's closer": (
        {"reasoning": "[r]", "reasoning_content": "</r> so", "content_end": "."},
        ("</r> so", "", "what all parts that follow share"),
    ),
    "something is left": (
        {"reasoning": "[r]", "reasoning_content": "</r><answer>", "content_end": "</a></b>"},
        ("</r><answer>", "", "what all parts that follow share"),
    ),
    "no cut where calls show the end": (
        {
            "reasoning": "[r]",
            "reasoning_content": "<x></r><answer>",
            "reasoning_calls": "<x></r><call>",
            "content_end": "</answer>",
        },
        ("<x></r>", "", "what all parts that follow share"),
    ),
    "the last opener's closer, with the white space after it": (
        {"reasoning": "<a><think> ", "reasoning_content": "x</think>\n\nso</a>"},
        ("x</think>", "\n\n", "up to the opener's closer"),
    ),
    "content and calls share nothing": (
        {"reasoning": "<think>", "reasoning_content": "</think>so", "reasoning_calls": "[end]<call>"},
        ("</think>", "", "up to the opener's closer"),
    ),
    "a word has no closer": (
        {"reasoning": "think", "reasoning_content": "</think>y"},
        ("</think>y", "", "what all parts that follow share"),
    ),
    "content and calls share closer and joint": (
        {"reasoning": "[r]", "reasoning_content": "</r>\nx", "reasoning_calls": "</r>\n<call>"},
        ("</r>", "\n", "what all parts that follow share"),
    ),
    "calls follow at once, and content on a line of its own": (
        {"reasoning": "[r]", "reasoning_content": "</r>\n\n", "reasoning_calls": "</r><call>"},
        ("</r>", "\n\n", "what all parts that follow share"),
    ),
    "content alone shows reasoning that is empty": (
        {"reasoning": "[r]", "content": "[r]</r>\nB", "reasoning_content": "</r>\nA"},
        ("</r>", "\n", "what all parts that follow share"),
    ),
    "nothing opens it, and content begins otherwise": (
        {"reasoning": "", "reasoning_content": "</r>\nx", "content": "</r>\ny"},
        ("</r>\nx", "", "what all parts that follow share"),
    ),
    "as many markers as content's end has, with layout around them": (
        {"reasoning": "[r]", "reasoning_content": "\n</r><a>\n", "content_end": "</a>"},
        ("\n</r>", "", "without as many markers as close content"),
    ),
    "a prompt that opens nothing says nothing of the end": (
        {"reasoning": "", "reasoning_calls": "</r>\n<call>", "prefill_no_thinking": "</r>"},
        ("</r>\n<call>", "", "what all parts that follow share"),
    ),
    "words are closed by nothing": (
        {"reasoning": "start ", "content": "end", "reasoning_content": "</r>end"},
        ("</r>", "", "without what content alone begins with"),
    ),
    "every part is a message": (
        {"reasoning": "[r]", "reasoning_content": "<|end|><|bot|>final:", "header": "<|bot|>"},
        ("<|end|>", "<|bot|>", "every part is a message of its own"),
    ),
    "every part is a message, and only calls are shown after reasoning": (
        {"reasoning": "[r]", "reasoning_calls": "<|end|><|bot|>call:", "header": "<|bot|>"},
        ("<|end|>", "<|bot|>", "every part is a message of its own"),
    ),
    "every part is a message, and one of them is empty": (
        {"reasoning": "[r]", "reasoning_content": "<|end|><|bot|>note:<|bot|>final:", "header": "<|bot|>"},
        ("<|end|>", "<|bot|>", "every part is a message of its own"),
    ),
    "no header at all": (
        {"reasoning": "[r]", "reasoning_content": "</r>so", "header": ""},
        ("</r>so", "", "what all parts that follow share"),
    ),
    "a header alone closes nothing": (
        {"reasoning": "[r]", "reasoning_content": "<|bot|>final:", "header": "<|bot|>"},
        ("<|bot|>final:", "", "what all parts that follow share"),
    ),
    "white space closes nothing, but the next message's header": (
        {"reasoning": "[r]", "reasoning_content": "\n\n# Bot\n\nfinal:", "header": "# Bot\n\n"},
        ("\n\n# Bot", "\n\n", "white space closes nothing: the next message's header does"),
    ),
    "white space is not a header": (
        {"reasoning": "[r]", "reasoning_content": "</r>\nso", "header": "\n"},
        ("</r>\nso", "", "what all parts that follow share"),
    ),
    "a header with other white space is the joint": (
        {"reasoning": "[r]", "reasoning_content": "</r> <|bot|>", "header": "\n<|bot|>"},
        ("</r> ", "<|bot|>", "what all parts that follow share"),
    ),
    "half a header is none": (
        {"reasoning": "[r]", "reasoning_content": "</r> <|bot|>", "header": "<x><|bot|>"},
        ("</r> <|bot|>", "", "what all parts that follow share"),
    ),
    "white space alone closes nothing": (
        {"reasoning": "[r]", "reasoning_content": "\n\n<answer>", "reasoning_calls": "\n\n<call>"},
        ("\n\n<answer>", "", "white space closes nothing: the next part's opener does"),
    ),
    "before calls, the prompt's empty block": (
        {"reasoning": "[r]", "reasoning_calls": "</r>\n<call>", "prefill_no_thinking": "[r]</r>\n"},
        ("</r>", "", "as far as the prompt's empty block"),
    ),
    "an empty block that is closed otherwise says nothing": (
        {"reasoning": "[r]", "reasoning_calls": "</s>\n<call>", "prefill_no_thinking": "[r]</r>\n"},
        ("</s>\n<call>", "", "what all parts that follow share"),
    ),
    "a block that is opened otherwise says nothing": (
        {"reasoning": "[r]", "reasoning_calls": "</r>\n<call>", "prefill_no_thinking": "[s]</r>\n"},
        ("</r>\n<call>", "", "what all parts that follow share"),
    ),
    "before calls, the opener's closer": (
        {"reasoning": "<think>", "reasoning_calls": "</think>\n<call>"},
        ("</think>", "\n", "up to the opener's closer"),
    ),
    "before calls, all but the call's opener": (
        {"reasoning": "[r]", "reasoning_calls": "</r>\n<call>", "calls": "<call>"},
        ("</r>", "\n", "without what a call alone begins with"),
    ),
    "a call's opener is not what ends it": (
        {"reasoning": "[r]", "reasoning_calls": "</r>\n<call>", "calls": "<do>"},
        ("</r>\n<call>", "", "what all parts that follow share"),
    ),
    "white space before calls alone closes nothing": (
        {"reasoning": "[r]", "reasoning_calls": "\n\n<call>", "calls": "<call>"},
        ("", "", ""),
    ),
    "calls with and without reasoning share the end": (
        {"reasoning": "[r]", "reasoning_calls": "</r>\n<call>", "calls": "[r]</r>\nx"},
        ("</r>", "\n", "what all parts that follow share"),
    ),
}


@pytest.mark.parametrize(("texts", "expected"), CLOSERS.values(), ids=CLOSERS)
def test_closer_ends_where_the_next_part_begins(texts, expected):
    """What follows reasoning is closer and joint up to the next part's own opener; the rule that says so is named."""
    assert closer(**texts) == expected


MODES = {
    "a pair of tags": (
        {"reasoning": "<think>", "reasoning_content": "</think>"},
        (ReasoningMode.TAG_BASED, "<think>", "</think>", "", ""),
    ),
    "before calls only": (
        {"reasoning": "<think>", "reasoning_calls": "</think>"},
        (ReasoningMode.TOOLS_ONLY, "<think>", "</think>", "", ""),
    ),
    "white space opens nothing": (
        {"reasoning": "\n", "reasoning_content": "</think>"},
        (ReasoningMode.DELIMITER, "\n", "</think>", "", ""),
    ),
    "nothing opens it": (
        {"reasoning_content": "</think>"},
        (ReasoningMode.DELIMITER, "", "</think>", "", ""),
    ),
    "the prompt opens it": (
        {"reasoning": "<think>\n", "reasoning_content": "</think>", "prefill": "x<think>"},
        (ReasoningMode.FORCED_OPEN, "<think>\n", "</think>", "", ""),
    ),
    "the prompt opens it, without the space before it": (
        {"reasoning": "\n<think>", "reasoning_content": "</think>", "prefill": "<think>"},
        (ReasoningMode.FORCED_OPEN, "<think>", "</think>", "", ""),
    ),
    "the prompt opens it, or closes it": (
        {
            "reasoning": "<think>\n",
            "reasoning_content": "\n</think>\n",
            "prefill": "<think>\n",
            "prefill_no_thinking": "<think>\n</think>",
        },
        (ReasoningMode.FORCED_CLOSED, "<think>\n", "\n</think>", "", "\n"),
    ),
    "the prompt alone opens it": (
        {"reasoning": "", "reasoning_content": "</think>", "prefill": "<think>\n"},
        (ReasoningMode.FORCED_OPEN, "<think>\n", "</think>", "", ""),
    ),
    "the prompt opens something else": (
        {"reasoning": "", "reasoning_content": "</r>", "prefill": "<think>\n"},
        (ReasoningMode.DELIMITER, "", "</r>", "", ""),
    ),
    "nothing ends it": (
        {"reasoning": "<think>", "reasoning_content": ""},
        (ReasoningMode.NONE, "", "", "", ""),
    ),
    "content alone shows it empty": (
        {"reasoning": "<think>", "reasoning_content": "</think>\n", "content": "<think>\n\n</think>\n\n"},
        (ReasoningMode.TAG_BASED, "<think>", "</think>", "<think>\n\n</think>", "\n"),
    ),
    "calls alone show its end": (
        {"reasoning": "<think>", "reasoning_content": "</think>", "content": "", "calls": "</think><call>"},
        (ReasoningMode.TAG_BASED, "<think>", "</think>", "</think>", ""),
    ),
    "calls alone show its end, where content is not rendered": (
        {"reasoning": "<think>", "reasoning_content": "</think>", "calls": "</think><call>"},
        (ReasoningMode.TAG_BASED, "<think>", "</think>", "</think>", ""),
    ),
    "the first end is the empty form's": (
        {"reasoning": "<think>", "reasoning_content": "</think>", "content": "<think></think>x</think>"},
        (ReasoningMode.TAG_BASED, "<think>", "</think>", "<think></think>", ""),
    ),
    "an end that the start holds is the one after it": (
        {"reasoning": "[a][r]", "reasoning_content": "[r]", "content": "[a][r]\n[r] and much more"},
        (ReasoningMode.TAG_BASED, "[a][r]", "[r]", "[a][r]\n[r]", ""),
    ),
    "an end that the start holds is the one after the first start": (
        {"reasoning": "[a][r]", "reasoning_content": "[r]", "content": "[a][r]\n[r] and [a][r] again [r]"},
        (ReasoningMode.TAG_BASED, "[a][r]", "[r]", "[a][r]\n[r]", ""),
    ),
    "an end that the start holds is all there is": (
        {"reasoning": "[a][r]", "reasoning_content": "[r]", "content": "[r] and much more"},
        (ReasoningMode.TAG_BASED, "[a][r]", "[r]", "[r]", ""),
    ),
    "the first end is the empty form's, also before a start": (
        {"reasoning": "<think>", "reasoning_content": "</think>", "content": "</think><think></think>"},
        (ReasoningMode.TAG_BASED, "<think>", "</think>", "</think>", ""),
    ),
    "its end after something else is not the empty form": (
        {"reasoning": "<think>", "reasoning_content": "</think>", "content": "<x></think>", "calls": "<think></think>"},
        (ReasoningMode.TAG_BASED, "<think>", "</think>", "<think></think>", ""),
    ),
}


@pytest.mark.parametrize(("texts", "expected"), MODES.values(), ids=MODES)
def test_reasoning_that_is_written_has_a_mode(texts, expected):
    """What opens and closes reasoning, and what the prompt does, make up the mode and the empty form."""
    assert found(**texts)[:5] == expected
    assert find_reasoning(seen(**texts)).comparison == "R1"


_PAIR = "an empty block is in the prompt or before content"
_OPEN = "the generation prompt ends in an open block"
_CUT = "content up to a closer is cut off"
UNSEEN = {
    "the switch closes what the prompt opens": (
        {"prefill": "<think>\n", "prefill_no_thinking": "<think>\n\n</think>\n\n"},
        ("forced_closed", "<think>\n", "\n</think>", "", "\n\n", _PAIR),
    ),
    "content alone begins with the empty block": (
        {"prefill": "<think>\n", "prefill_no_thinking": "<think>\n\n</think>\n", "content": "<think>\n\n</think>\n"},
        ("forced_closed", "<think>\n", "\n</think>", "<think>\n\n</think>", "\n", _PAIR),
    ),
    "the prompt always writes an empty block": (
        {"prefill": "<think>\n\n</think>\n\n"},
        ("tag_based", "<think>\n", "\n</think>", "", "\n\n", _PAIR),
    ),
    "the white space of an empty block is parted, the longer half first": (
        {"content": "<think>\n\n\n</think>"},
        ("tag_based", "<think>\n\n", "\n\n</think>", "<think>\n\n\n</think>", "\n\n\n\n", _PAIR),
    ),
    "content with thinking off begins with the empty block": (
        {"content": "<x>", "content_no_thinking": "ab<think></think>"},
        ("tag_based", "<think>", "</think>", "", "", _PAIR),
    ),
    "a block with words is not empty": ({"content": "<think>a</think>"}, ("none", "", "", "", "", "")),
    "two tags are not a block": ({"content": "<a></b>"}, ("none", "", "", "", "", "")),
    "the prompt opens a block": (
        {"prefill": "x<think>\n"},
        ("forced_open", "<think>\n", "\n</think>", "", "\n\n", _OPEN),
    ),
    "content begins with the closer alone": (
        {"prefill": "<think>\n", "content": "</think>\n"},
        ("forced_open", "<think>\n", "\n</think>", "</think>", "\n", _OPEN),
    ),
    "content begins with more than the closer": (
        {"prefill": "<think>\n", "content": "</think>\nx"},
        ("forced_open", "<think>\n", "\n</think>", "", "\n\n", _OPEN),
    ),
    "of several closers, the one that the template knows": (
        {"prefill": "<|START|>", "source": "x <|END|> y"},
        ("forced_open", "<|START|>", "<|END|>", "", "\n\n", _OPEN),
    ),
    "several closers, and none is known": ({"prefill": "<|START|>"}, ("none", "", "", "", "", "")),
    "content stands in the block that the prompt opens": (
        {
            "prefill": "<resp>",
            "prefill_no_thinking": "<resp>",
            "content": "<resp>",
            "content_tail": "</resp><end>",
        },
        ("none", "", "", "", "", ""),
    ),
    "content stands in the block that the prompt opens, with layout after it": (
        {"prefill": "<resp>", "prefill_no_thinking": "<resp>", "content": "<resp>", "content_tail": "\n</resp>"},
        ("none", "", "", "", "", ""),
    ),
    "the switch opens it": (
        {"prefill": "<resp>", "content": "<resp>", "content_tail": "</resp><end>"},
        ("forced_open", "<resp>", "</resp>", "", "\n\n", _OPEN),
    ),
    "something else closes what content stands in": (
        {
            "prefill": "<resp>",
            "prefill_no_thinking": "<resp>",
            "content": "<resp>",
            "content_tail": "<end></resp>",
        },
        ("forced_open", "<resp>", "</resp>", "", "\n\n", _OPEN),
    ),
    "nothing closes what content stands in": (
        {"prefill": "<resp>", "prefill_no_thinking": "<resp>", "content": "<resp>", "content_tail": "end"},
        ("forced_open", "<resp>", "</resp>", "", "\n\n", _OPEN),
    ),
    "content stands outside": (
        {"prefill": "<resp>", "prefill_no_thinking": "<resp>", "content": "", "content_tail": "</resp><end>"},
        ("forced_open", "<resp>", "</resp>", "", "\n\n", _OPEN),
    ),
    "the prompt always opens a block, and content is not rendered": (
        {"prefill": "<think>", "prefill_no_thinking": "<think>", "content_tail": "</think>"},
        ("forced_open", "<think>", "</think>", "", "\n\n", _OPEN),
    ),
    "words open nothing": ({"prefill": "think:"}, ("none", "", "", "", "", "")),
    "a closer opens nothing": ({"prefill": "</think>"}, ("none", "", "", "", "", "")),
    "content up to a closer disappears": (
        {"cut": CUT_OFF},
        ("tag_based", "<think>", "</think>", "", "\n\n", _CUT),
    ),
    "the opener is one that the template knows": (
        {"cut": {"<|END|>": CONTENT}, "source": "<|BEGIN|>"},
        ("tag_based", "<|BEGIN|>", "<|END|>", "", "\n\n", _CUT),
    ),
    "the prompt opens what is cut off": (
        {"cut": {"<|END|>": CONTENT}, "prefill": "x<|START|> "},
        ("forced_open", "<|START|>", "<|END|>", "", "\n\n", _CUT),
    ),
    "a closer that cannot be rendered": ({"cut": {"</think>": None}}, ("none", "", "", "", "", "")),
    "a closer that cannot be rendered, and one that can": (
        {"cut": {"</a>": None, "</think>": CONTENT}},
        ("tag_based", "<think>", "</think>", "", "\n\n", _CUT),
    ),
    "a closer that cuts nothing": ({"cut": {"</think>": f"Contjaxmer</think>{CONTENT}"}}, ("none", "", "", "", "", "")),
    "a closer with which everything goes": ({"cut": {"</think>": ""}}, ("none", "", "", "", "", "")),
    "a marker that closes nothing": (
        {"cut": {"<a>": CONTENT, "</think>": CONTENT}},
        ("tag_based", "<think>", "</think>", "", "\n\n", _CUT),
    ),
    "nothing at all": ({}, ("none", "", "", "", "", "")),
}


@pytest.mark.parametrize(("texts", "expected"), UNSEEN.values(), ids=UNSEEN)
def test_reasoning_that_is_not_written_is_found_otherwise(texts, expected):
    """The prompt, or what disappears from content, tells the markers; where nothing does, there are none."""
    assert found(**texts) == expected


def test_what_no_rendering_shows_is_unseen():
    """An open block and a cut leave open how reasoning is written; an empty block shows it."""
    markers = [
        find_reasoning(seen(**texts)).reasoning
        for texts in ({"prefill": "<think>"}, {"cut": CUT_OFF}, {"content": "<think></think>"})
    ]

    assert [reasoning.unseen for reasoning in markers] == [True, True, False]


def test_comparison_tells_what_showed_the_markers():
    """What the prompt shows is R2's, what answers show R1's."""
    shown = [
        find_reasoning(seen(**texts)) for texts in ({"prefill": "<think>"}, {"content": "<a></a>"}, {"cut": CUT_OFF})
    ]

    assert [found.comparison for found in shown] == ["R2", "R2", "R1"]
    assert find_reasoning(seen()).reasoning == Reasoning()
    written = find_reasoning(seen(reasoning="<think>", reasoning_content="</think>so"))
    assert (written.comparison, written.rule) == ("R1", "reasoning is written; up to the opener's closer")


def test_openings_are_what_stands_before_each_part():
    """Each text is cut at the first needles that follow each other."""
    name = NAMES[0]
    answers = Answers(
        content=f"a{CONTENT}{CONTENT}b",
        reasoned=f"c{REASONING}d{CONTENT}f{CONTENT}e",
        call=f"f{name}g",
        reasoned_call=f"h{REASONING}i{name}j{REASONING}k{name}",
        content_no_thinking=f"k{CONTENT}",
        call_no_thinking=f"l{name}",
    )

    assert find_openings(answers, TurnFrame(lead="", header="", appended="e")) == Openings(
        content="a",
        calls="f",
        reasoning="c",
        reasoning_content="d",
        reasoning_calls="i",
        content_no_thinking="k",
        calls_no_thinking="l",
        content_tail="b",
        reasoning_content_tail="",
    )


def test_what_is_not_rendered_has_no_opening():
    """A shape without its needles, or in another order, says nothing; reasoning is looked for in calls as well."""
    name = NAMES[0]
    answers = Answers(content="a", reasoned=f"{CONTENT}x{REASONING}", reasoned_call=f"h{name}{REASONING}", call=None)
    before_calls = Answers(reasoned="", reasoned_call=f"h{REASONING}i{name}")

    assert find_openings(answers, TurnFrame(lead="", header="")) == Openings(
        **(NOTHING | {"reasoning": f"{CONTENT}x"}), reasoning_content_tail=f"x{REASONING}"
    )
    assert find_openings(before_calls, TurnFrame(lead="", header="")).reasoning == "h"
