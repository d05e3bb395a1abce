"""Texts around content in, its wrapper and the end of a turn out: each rule with a text that needs it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unrender.analysis.ask.answers import Answers, Continuations, Turns
from unrender.analysis.ask.probes import CONTENT, EOS, NUMBERS, USER2
from unrender.analysis.find.content import Tails, find_content, find_tails, without_reasoning, wrapper_end
from unrender.analysis.find.reasoning import Openings, ReasoningFinding
from unrender.analysis.find.turn_frame import TurnFrame
from unrender.format import Content, ContentMode, Reasoning, ReasoningMode

NONE = dict.fromkeys(
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
THINK = ReasoningFinding(
    reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end="</think>", empty="<think></think>"),
    to_content="\n",
)
ALWAYS, REASONED, PLAIN = ContentMode.ALWAYS_WRAPPED, ContentMode.WRAPPED_WITH_REASONING, ContentMode.PLAIN
_REASONED_ONLY, _NOT_CALLS = "what follows content after reasoning only", "what follows content and no call"
_CLOSED = "the marker that closes what opens it"
_MIRRORED, _OPEN, _NOTHING = "as many markers as open it", "no marker opens it", "nothing closes it"


def found(tail="", *, calls="", common="", before_eos=False, reasoned_tail="", finding=None, **openings):
    """Return mode, start, end and whether empty content is wrapped; the end of the turn, and the rule."""
    known = Openings(**(NONE | openings), reasoning_content_tail=reasoned_tail)
    tails = Tails(content=tail, calls=calls, common=common, before_eos=before_eos)
    result = find_content(known, tails, finding or ReasoningFinding(reasoning=Reasoning()))
    wrapper = result.content
    return (wrapper.mode, wrapper.start, wrapper.end, wrapper.wraps_empty), result.turn_end, result.rule


WRAPPERS = {
    "nothing opens it": (
        {"tail": "</a><end>", "content": "", "calls": "<end>", "common": "<end>"},
        ((PLAIN, "", "", False), "</a><end>", _OPEN),
    ),
    "white space opens nothing": (
        {"tail": "<end>", "content": "\n"},
        ((PLAIN, "", "", False), "<end>", _OPEN),
    ),
    "calls do not end in it": (
        {"tail": "</a><end>", "calls": "</c><end>", "common": "<end>", "content": "<a>"},
        ((ALWAYS, "<a>", "</a>", False), "<end>", _NOT_CALLS),
    ),
    "calls share white space alone, and end without the closer": (
        {"tail": "</a>\n", "calls": "</c>\n", "common": "\n", "content": "<a>"},
        ((ALWAYS, "<a>", "</a>", False), "\n", _MIRRORED),
    ),
    "calls share white space alone, and what ends content closes nothing": (
        {"tail": "</b>\n", "calls": "</c>\n", "common": "\n", "content": "<a>"},
        ((ALWAYS, "<a>", "", False), "</b>\n", _NOTHING),
    ),
    "only reasoning shows it": (
        {
            "tail": "<end>",
            "reasoned_tail": "</a><end>",
            "content": "",
            "reasoning_content": "</think>\n<a>",
            "finding": THINK,
        },
        ((REASONED, "<a>", "</a>", False), "<end>", _REASONED_ONLY),
    ),
    "a tail that is the same after reasoning shows nothing": (
        {"tail": "</a><end>", "reasoned_tail": "</a><end>", "content": "<a>", "reasoning_content": "</think>\n<a>"},
        ((ALWAYS, "<a>", "</a>", False), "<end>", _MIRRORED),
    ),
    "a tail that is another one after reasoning shows nothing": (
        {"tail": "<end>", "reasoned_tail": "</a><stop>", "content": "<a>"},
        ((ALWAYS, "<a>", "", False), "<end>", _NOTHING),
    ),
    "as many closers as openers, and one is left": (
        {"tail": "</b></a> <end>", "content": "<a>x<b>"},
        ((ALWAYS, "<a>x<b>", "</b></a>", False), " <end>", _MIRRORED),
    ),
    "the only marker ends the turn": (
        {"tail": "</a>", "content": "<a>"},
        ((ALWAYS, "<a>", "", False), "</a>", _NOTHING),
    ),
    "EOS ends the turn after what closes": (
        {"tail": "</a>", "content": "<a>", "before_eos": True},
        ((ALWAYS, "<a>", "</a>", False), "", _MIRRORED),
    ),
    "EOS ends the turn after something else": (
        {"tail": "<end>", "content": "<a>", "before_eos": True},
        ((ALWAYS, "<a>", "", False), "<end>", _NOTHING),
    ),
    "fewer markers than openers": (
        {"tail": "</b>", "content": "<a><b>", "before_eos": True},
        ((ALWAYS, "<a><b>", "", False), "</b>", _NOTHING),
    ),
    "words open it": (
        {"tail": "</a><end>", "content": "Answer: "},
        ((ALWAYS, "Answer: ", "", False), "</a><end>", _NOTHING),
    ),
    "reasoning is the only way to content": (
        {"tail": "</a><end>", "reasoning_content": "</think>\n<a>", "finding": THINK},
        ((REASONED, "<a>", "</a>", False), "</a><end>", _MIRRORED),
    ),
    "content is written after reasoning only": (
        {"reasoned_tail": "</a>so</b>", "reasoning_content": "</think>\n<a>", "finding": THINK},
        ((REASONED, "<a>", "</a>", False), "", _CLOSED),
    ),
    "content is written after reasoning only, and a word before its closer": (
        {"reasoned_tail": "so</a></b>", "reasoning_content": "</think>\n<a>", "finding": THINK},
        ((REASONED, "<a>", "so</a>", False), "", _CLOSED),
    ),
    "content is written after reasoning only, and closed by something else": (
        {"reasoned_tail": "</b></a>", "reasoning_content": "</think>\n<a>", "finding": THINK},
        ((REASONED, "<a>", "", False), "", _NOTHING),
    ),
    "content is written after reasoning only, and nothing closes it": (
        {"reasoned_tail": "so", "reasoning_content": "</think>\n<a>", "finding": THINK},
        ((REASONED, "<a>", "", False), "", _NOTHING),
    ),
    "content is written after reasoning only, and words open it": (
        {"reasoned_tail": "</a>", "reasoning_content": "</think>\nSo: ", "finding": THINK},
        ((REASONED, "So: ", "", False), "", _NOTHING),
    ),
    "content alone ends otherwise than after reasoning": (
        {"tail": "end", "reasoned_tail": "</a>", "reasoning_content": "</think>\n<a>", "finding": THINK},
        ((REASONED, "<a>", "", False), "end", _NOTHING),
    ),
    "without an answer after reasoning it is always there": (
        {"tail": "</a><end>", "content": "<think></think>\n<a>", "finding": THINK},
        ((ALWAYS, "<a>", "</a>", False), "<end>", _MIRRORED),
    ),
    "calls are preceded by an empty one": (
        {"tail": "</a><end>", "content": "<a>", "reasoning_calls": "x<a></a><c>"},
        ((ALWAYS, "<a>", "</a>", True), "<end>", _MIRRORED),
    ),
    "an opener that nothing closes is not written empty": (
        {"tail": "end", "content": "<a>", "reasoning_calls": "x<a><c>"},
        ((ALWAYS, "<a>", "", False), "end", _NOTHING),
    ),
}


@pytest.mark.parametrize(("texts", "expected"), WRAPPERS.values(), ids=WRAPPERS)
def test_wrapper_is_what_stands_around_content_alone(texts, expected):
    """An opener, and what closes it: told by other answers, or by counting; the rule is named."""
    assert found(**texts) == expected


def test_calls_alone_show_empty_content():
    """A wrapper around nothing before a call is what content's wrapper is without content."""
    openings = Openings(**(NONE | {"content": "<a>", "calls": "<a></a><c>"}))
    tails = Tails(content="</a><end>", calls="", common="")

    assert find_content(openings, tails, ReasoningFinding(reasoning=Reasoning())).content == Content(
        mode=ALWAYS, start="<a>", end="</a>", wraps_empty=True
    )


def test_wrapper_end_needs_other_answers():
    """What ends content alone is compared, never counted."""
    openings = Openings(**NONE, reasoning_content_tail="</a><end>")

    assert wrapper_end(Tails(content="<end>", calls="", common=""), openings) == "</a>"
    assert wrapper_end(Tails(content="</a><end>", calls="", common="<end>"), Openings(**NONE)) == "</a>"
    assert wrapper_end(Tails(content="", calls="", common=""), openings) == ""
    assert wrapper_end(Tails(content="</a><end>", calls="", common=""), Openings(**NONE)) == ""


BEHIND = [
    ("<think></think>\n<a>", "<a>"),
    ("<think></think><a>", "<a>"),
    (" <think>\n", ""),
    ("<think>x</think>\n\n<a>", "\n<a>"),
    ("<a>", "<a>"),
    ("<x><think></think>", ""),
    ("", ""),
]


@pytest.mark.parametrize(("opening", "rest"), BEHIND)
def test_reasoning_is_taken_off_an_opening(opening, rest):
    """The empty form, the opener alone, or everything up to the closer is not content's."""
    assert without_reasoning(opening, THINK) == rest


def test_words_of_the_empty_form_are_reasonings():
    """Words after the end of an empty form belong to it, and not to content."""
    empty = replace(THINK, reasoning=replace(THINK.reasoning, empty="<think></think>none!"))

    assert without_reasoning("<think></think>none!<answer>", empty) == "<answer>"


def test_without_reasoning_an_opening_stays():
    """Nothing is taken off where there are no markers."""
    assert without_reasoning("\n", ReasoningFinding(reasoning=Reasoning())) == "\n"


def tails_of(content=None, call=None, *, unthought=None, followed=None, opening="", shows_calls=True, appended=""):
    turns = Turns(question=Continuations(), followed=followed, opening=opening)
    frame = TurnFrame(lead="", header="", appended=appended)
    answers = Answers(content=content, content_no_thinking=unthought, call=call)
    return find_tails(turns, frame, answers, shows_calls=shows_calls)


NUMBER = NUMBERS[0]
TAILS = {
    "both end in whole markers": (
        {"content": f"<a>{CONTENT}</a><end>", "call": f"<c>{NUMBER}</c><end>"},
        Tails(content="</a><end>", calls="</c><end>", common="<end>"),
    ),
    "content that must be thought about ends as it does without thinking": (
        {"unthought": f"{CONTENT}<end>", "call": f"<c>{NUMBER}</c><end>"},
        Tails(content="<end>", calls="</c><end>", common="<end>"),
    ),
    "half a composite marker is not shared": (
        {"content": f"{CONTENT}<|close|>say<|sep|><end>", "call": f"{NUMBER}<|close|>do<|sep|><end>"},
        Tails(content="<|close|>say<|sep|><end>", calls="<|close|>do<|sep|><end>", common="<end>"),
    ),
    "half a composite marker of one answer is not shared, whatever follows it": (
        {"content": f"{CONTENT}<|close|>say<|sep|>\n<end>", "call": f"{NUMBER}</c><|sep|>\n<end>"},
        Tails(content="<|close|>say<|sep|>\n<end>", calls="</c><|sep|>\n<end>", common="\n<end>"),
    ),
    "a marker after no word is whole": (
        {"content": f"{CONTENT}</a><|sep|>", "call": f"{NUMBER}</b><|sep|>"},
        Tails(content="</a><|sep|>", calls="</b><|sep|>", common="<|sep|>"),
    ),
    "no calls": (
        {"content": f"{CONTENT}<end>", "call": f"{NUMBER}<end>", "shows_calls": False},
        Tails(content="<end>", calls="", common=""),
    ),
    "EOS ends the turn": (
        {"content": f"{CONTENT}</a>{EOS}x", "shows_calls": False},
        Tails(content="</a>", calls="", common="", before_eos=True),
    ),
    "EOS alone ends the turn": (
        {"content": f"{EOS}{CONTENT}{EOS}", "followed": f"{CONTENT}<x>{USER2}", "shows_calls": False},
        Tails(content="", calls="", common="", before_eos=True),
    ),
    "EOS between two contents ends nothing": (
        {"content": f"{CONTENT}{EOS}{CONTENT}<end>", "shows_calls": False},
        Tails(content="<end>", calls="", common=""),
    ),
    "EOS before content ends nothing": (
        {"content": f"{EOS}{CONTENT}<end>", "shows_calls": False},
        Tails(content="<end>", calls="", common=""),
    ),
    "the last answer is not ended, earlier ones are": (
        {"content": CONTENT, "followed": f"{CONTENT}<end><user>{USER2}", "opening": "<user>", "shows_calls": False},
        Tails(content="<end>", calls="", common="", unended=True),
    ),
    "white space after its end": (
        {"content": CONTENT, "followed": f"{CONTENT}<end>\n<user>{USER2}", "opening": "<user>", "shows_calls": False},
        Tails(content="<end>\n", calls="", common="", unended=True),
    ),
    "words end no turn": (
        {
            "content": f"{CONTENT}\n",
            "followed": f"{CONTENT}\nso\n<user>{USER2}",
            "opening": "<user>",
            "shows_calls": False,
        },
        Tails(content="\n", calls="", common="", unended=True),
    ),
    "what ends the conversation is not the turn's": (
        {"content": f"{CONTENT}<end>Bye", "shows_calls": False, "appended": "Bye"},
        Tails(content="<end>", calls="", common=""),
    ),
    "content is not rendered": (
        {"call": f"{NUMBER}<end>"},
        Tails(content="", calls="<end>", common="", unended=True),
    ),
}


@pytest.mark.parametrize(("texts", "expected"), TAILS.values(), ids=TAILS)
def test_tails_are_what_is_after_the_last_needle(texts, expected):
    """What ends content, what ends calls, and which whole markers both end in."""
    assert tails_of(**texts) == expected


def test_calls_end_as_far_as_they_show_it():
    """Where the last answer is not ended, a call in the last place shows no end either."""
    ended = Tails(content="<end>", calls="</c><end>", common="<end>", unended=True)
    open_calls = Tails(content="<end>", calls="</c>", common="", unended=True)
    usual = Tails(content="<end>", calls="</c>", common="")

    assert [tails.end_of_calls("<end>") for tails in (ended, open_calls, usual)] == ["<end>", "", "<end>"]
