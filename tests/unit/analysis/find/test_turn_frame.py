"""Prompts and answers in, the frame of a turn out: each clause with the texts that need it."""

from __future__ import annotations

from dataclasses import fields

import pytest

from unrender.analysis.ask.answers import Continuations, Turns
from unrender.analysis.ask.probes import BOS, CONTENT, EOS, NAMES, REASONING, RESULT, USER2
from unrender.analysis.find.turn_frame import (
    TurnFrame,
    end_in_history,
    find_frame,
    next_openers,
    openings_after_tool,
    tail_of,
    text_after_lead,
    unlike_history,
    until_sentinel,
)

C, R, N = CONTENT, REASONING, NAMES[0]


def framed(*, part_opener="", result=None, content=None, followed=None, opening="", **asked):
    """Return the fields of a frame that are not empty."""
    turns = Turns(question=Continuations(**asked), result=result, content=content, followed=followed, opening=opening)
    frame = find_frame(turns, part_opener=part_opener)
    return {item.name: getattr(frame, item.name) for item in fields(frame) if getattr(frame, item.name)}


def both(lead):
    """Return an answer of content and one of a call after this lead."""
    return lead + C, lead + N


FRAMES = {
    "what all answers begin with": (
        {"prompt": "</u>\n<bot>", "bare": "</u>\n", "answers": both("</u>\n<bot>")},
        {"lead": "</u>\n<bot>", "header": "<bot>"},
    ),
    "a template that always asks": (
        {"prompt": "</u><bot>", "bare": "</u><bot>", "answers": both("</u><bot>")},
        {"lead": "</u><bot>", "header": "</u><bot>"},
    ),
    "no text after a bare question": (
        {"prompt": "</u><bot>", "answers": both("</u><bot>")},
        {"lead": "</u><bot>", "header": "</u><bot>"},
    ),
    "prompts alone": (
        {"prompt": "</u><bot><x>", "prompt_no_thinking": "</u><bot><y>", "bare": "</u>"},
        {"lead": "</u><bot>", "header": "<bot>", "prefill": "<x>", "prefill_no_thinking": "<y>"},
    ),
    "an empty block that all answers write is theirs": ({"bare": "", "answers": both("<think></think>")}, {}),
    "prompts that share nothing but the question": (
        {"prompt": "</u>[on]", "prompt_no_thinking": "</u>[off]", "bare": "</u>", "answers": both("</u><bot>")},
        {"lead": "</u><bot>", "header": "<bot>"},
    ),
    "prompts that do not begin as the question alone does": (
        {
            "prompt": "</u><bot>[on]",
            "prompt_no_thinking": "</u><bot>[off]",
            "bare": "</u>?",
            "answers": both("</u><bot>[on]"),
        },
        {"lead": "</u><bot>[on]", "header": "</u><bot>[on]"},
    ),
    "white space alone agrees with no prompt": (
        {"prompt": "<bot>", "answers": both("\n")},
        {"lead": "\n", "header": "\n"},
    ),
    "answers that share nothing": ({"answers": (f"a{C}", f"b{N}")}, {}),
    "a marker that words complete, and nothing before it": (
        {"answers": (f"<|open|>think<|x|>{C}", f"<|open|>tool<|x|>{N}")},
        {},
    ),
    "an answer that adds nothing to the prompt": (
        {"prompt": "</u><bot>", "bare": "</u>", "answers": ("</u><bot>", "</u><bot>")},
        {"lead": "</u><bot>", "header": "<bot>"},
    ),
    "a marker before an empty block that every answer closes": (
        {
            "bare": "</u>",
            "answers": (f"</u><bot><x>\n<think></think>{C}", f"</u><bot><x>\n<think></think>so</x>{N}"),
        },
        {"lead": "</u><bot>", "header": "<bot>"},
    ),
    "a marker before a name is complete": (
        {"bare": "</u>", "answers": (f"</u><|open|>think<|x|>{C}", f"</u><|open|>{N}")},
        {"lead": "</u><|open|>", "header": "<|open|>"},
    ),
    "white space is all that answers begin with": (
        {"prompt": "\n[on]", "bare": "", "answers": both("\n")},
        {"lead": "\n", "header": "\n", "prefill": "[on]"},
    ),
    "white space of the header says nothing of a prompt": (
        {"prompt": "Be brief.\n[on]", "bare": "</u>", "answers": both("</u><bot>\n")},
        {"lead": "</u><bot>\n", "header": "<bot>\n"},
    ),
    "words are closed by nothing": (
        {"bare": "</u>", "answers": (f"</u>start end {C}", f"</u>start {N}")},
        {"lead": "</u>start ", "header": "start "},
    ),
    "a question alone is refused with thinking off": (
        {"bare": "</u>", "answers": both("</u><bot>"), "no_thinking": f"</u><bot>{C}"},
        {"lead": "</u><bot>", "header": "<bot>"},
    ),
    "answers alone": (
        {"bare": "</u>", "answers": both("</u><bot>")},
        {"lead": "</u><bot>", "header": "<bot>"},
    ),
    "a prompt that opens and closes a block": (
        {
            "prompt": "</u><bot><think>",
            "prompt_no_thinking": "</u><bot><think></think>",
            "bare": "</u>",
            "answers": both("</u><bot>"),
        },
        {"lead": "</u><bot>", "header": "<bot>", "prefill": "<think>", "prefill_no_thinking": "<think></think>"},
    ),
    "a prefill ends at EOS": (
        {
            "prompt": f"</u><bot>x{EOS}y",
            "prompt_no_thinking": f"</u><bot>{BOS}",
            "bare": "</u>",
            "answers": both("</u><bot>"),
        },
        {"lead": "</u><bot>", "header": "<bot>", "prefill": "x"},
    ),
    "white space differs between prompt and answers": (
        {"prompt": "</u>\n\n<bot>", "bare": "</u>", "answers": (f"</u>\n<bot>{C}", f"</u><bot>{N}")},
        {"lead": "</u>\n\n<bot>", "header": "\n\n<bot>"},
    ),
    "an instruction in the prompt": (
        {
            "prompt": "</u>Be brief.<bot><t>",
            "prompt_no_thinking": "</u>Be brief.<bot>",
            "bare": "</u>",
            "answers": both("</u><bot>"),
        },
        {"lead": "</u><bot>", "header": "<bot>", "prefill": "<t>"},
    ),
    "an instruction that names the header": (
        {
            "prompt": "</u>After <bot> be brief.<bot><t>",
            "prompt_no_thinking": "</u>After <bot> be brief.<bot>",
            "bare": "</u>",
            "answers": both("</u><bot>"),
        },
        {"lead": "</u><bot>", "header": "<bot>", "prefill": "<t>"},
    ),
    "history always writes what the switch changes": (
        {
            "prompt": "</u><bot>[on]",
            "prompt_no_thinking": "</u><bot>[off]",
            "bare": "</u>",
            "answers": both("</u><bot>[on]"),
        },
        {"lead": "</u><bot>", "header": "<bot>", "prefill": "[on]", "prefill_no_thinking": "[off]"},
    ),
    "prompts that say one thing are not cut": (
        {
            "prompt": "</u><bot>[on]",
            "prompt_no_thinking": "</u><bot>[on]",
            "bare": "</u>",
            "answers": both("</u><bot>[on]"),
        },
        {"lead": "</u><bot>[on]", "header": "<bot>[on]"},
    ),
    "a marker that words complete belongs to the answer": (
        {"bare": "</u>", "answers": (f"</u><b><|open|>think<|x|>{C}", f"</u><b><|open|>tool<|x|>{N}")},
        {"lead": "</u><b>", "header": "<b>"},
    ),
    "so do the marker and word before it": (
        {"bare": "</u>", "answers": (f"</u>\n<|a|>b<|open|>think<|x|>{C}", f"</u>\n<|a|>b<|open|>tool<|x|>{N}")},
        {"lead": "</u>\n<|a|>b", "header": "\n<|a|>b"},
    ),
    "a marker before needles is complete": (
        {"bare": "</u>", "answers": (f"</u><|open|>{R}", f"</u><|open|>{C}", f"</u><|open|>{N}")},
        {"lead": "</u><|open|>", "header": "<|open|>"},
    ),
    "a prompt ends where it ends": (
        {
            "prompt": "</u><|open|>",
            "bare": "</u>",
            "answers": (f"</u><|open|>think<|x|>{C}", f"</u><|open|>tool<|x|>{N}"),
        },
        {"lead": "</u><|open|>", "header": "<|open|>"},
    ),
    "a marker that every answer closes is the answer's": (
        {"bare": "</u>", "answers": (f"</u><bot><think>{R}</think>{C}", f"</u><bot><think></think>{C}")},
        {"lead": "</u><bot>", "header": "<bot>"},
    ),
    "an empty block is the answer's": (
        {"bare": "</u>", "answers": both("</u><bot><think>\n\n</think>\n")},
        {"lead": "</u><bot>", "header": "<bot>"},
    ),
    "a block with words in it is the header's": (
        {"bare": "</u>", "answers": both("</u><bot><name>x</name>")},
        {"lead": "</u><bot><name>x</name>", "header": "<bot><name>x</name>"},
    ),
    "what is closed after content is the header's": (
        {"bare": "</u>", "answers": (f"</u><bot><say>{C}</say>", f"</u><bot><say>{N}</say>")},
        {"lead": "</u><bot><say>", "header": "<bot><say>"},
    ),
    "a marker before each part is not the header's": (
        {
            "part_opener": "<part>",
            "prompt": "</u><bot>",
            "prompt_no_thinking": "</u><bot><part>x",
            "bare": "</u>",
            "answers": both("</u><bot><part>"),
        },
        {"lead": "</u><bot>", "header": "<bot>", "prefill_no_thinking": "<part>x"},
    ),
    "the switch changes the end of the question": (
        {
            "bare": "</u>/think",
            "bare_no_thinking": "</u>/no",
            "answers": (f"</u>/think<bot><t>{C}",),
            "no_thinking": f"</u>/no<bot>{C}",
        },
        {"lead": "</u>/think<bot>", "lead_no_thinking": "</u>/no<bot>", "header": "<bot>"},
    ),
    "prompts differ in the question alone": (
        {
            "prompt": "</u>/think<bot>",
            "prompt_no_thinking": "</u>/no<bot>",
            "bare": "</u>/think",
            "bare_no_thinking": "</u>/no",
            "answers": both("</u>/think<bot>"),
        },
        {"lead": "</u>/think<bot>", "lead_no_thinking": "</u>/no<bot>", "header": "<bot>"},
    ),
    "the prompt writes other white space before the header": (
        {
            "prompt": "</u>\n\n<bot><t>",
            "prompt_no_thinking": "</u>\n\n<bot><t></t>",
            "bare": "</u>\n\n",
            "answers": both("</u>\n<bot>"),
        },
        {"lead": "</u>\n\n<bot>", "header": "<bot>", "prefill": "<t>", "prefill_no_thinking": "<t></t>"},
    ),
    "results that answers end before their turn does": (
        {
            "bare": "</u>",
            "answers": both("</u><bot>"),
            "result": Continuations(prompt="</r></rs><bot>", bare="</r></rs>", answers=both("</r><bot>")),
        },
        {"lead": "</u><bot>", "header": "<bot>", "tool_lead": "</r></rs><bot>"},
    ),
    "an answer with thinking off is refused": (
        {"bare": "</u>/think", "bare_no_thinking": "</u>/no", "answers": both("</u>/think<bot>")},
        {"lead": "</u>/think<bot>", "lead_no_thinking": "</u>/no<bot>", "header": "<bot>"},
    ),
    "a prompt that does not ask": (
        {"prompt": "</u>", "bare": "</u>", "answers": both("</u><bot>")},
        {"lead": "</u><bot>", "header": "<bot>", "unasked": "<bot>"},
    ),
    "words after a prompt that does not ask": (
        {"prompt": "</u>", "bare": "</u>", "answers": both("</u>so ")},
        {"lead": "</u>", "header": "</u>"},
    ),
    "white space before every answer may be theirs": (
        {"prompt": "</u><bot>[on]", "bare": "</u>", "answers": both("</u><bot>\n")},
        {"lead": "</u><bot>", "header": "<bot>", "prefill": "[on]"},
    ),
    "a marker that is closed before it is the header's": (
        {"bare": "</msg>", "answers": both("</msg><msg>")},
        {"lead": "</msg><msg>", "header": "<msg>"},
    ),
    "a question alone is refused with thinking on": (
        {"bare_no_thinking": "</u>", "answers": both("</u><bot>"), "no_thinking": f"</u><bot>{C}"},
        {"lead": "</u><bot>", "header": "</u><bot>"},
    ),
    "an answer in another place agrees": (
        {"bare": "</u>", "answers": both("</u><bot><t>"), "in_history": f"</u><bot>{C}"},
        {"lead": "</u><bot>", "header": "<bot>"},
    ),
    "an answer in another place that shares nothing is left out": (
        {"bare": "</u>", "answers": both("</u><bot>"), "in_history": "quite other"},
        {"lead": "</u><bot>", "header": "<bot>"},
    ),
    "EOS is not in a header": (
        {"prompt": f"</u>{EOS}<bot>", "bare": "</u>", "answers": both(f"</u>{EOS}<bot>")},
        {"lead": f"</u>{EOS}<bot>", "header": "<bot>"},
    ),
    "BOS is not in a header": (
        {"bare": "</u>", "answers": both(f"</u>x{BOS}<bot>")},
        {"lead": f"</u>x{BOS}<bot>", "header": "<bot>"},
    ),
    "an answer to a result has the same header": (
        {"bare": "</u>", "answers": both("</u><bot>"), "result": Continuations(bare="</r>", answers=both("</r><bot>"))},
        {"lead": "</u><bot>", "header": "<bot>", "tool_lead": "</r><bot>"},
    ),
    "an answer to a result has a header of its own": (
        {
            "bare": "</u>",
            "answers": both("</u><bot>\n"),
            "result": Continuations(bare="</r>", answers=both("</r><next>\n")),
        },
        {"lead": "</u><bot>\n", "header": "<bot>\n", "tool_lead": "</r><next>\n", "tool_header": "<next>\n"},
    ),
    "a header of words": (
        {"bare": "</u>", "answers": both("</u><bot>"), "result": Continuations(bare="so", answers=both("so then: "))},
        {"lead": "</u><bot>", "header": "<bot>", "tool_lead": "so then: ", "tool_header": "so then: "},
    ),
    "a marker before each part is not in the other header": (
        {
            "part_opener": "<p>",
            "bare": "</u>",
            "answers": both("</u><bot><p>"),
            "result": Continuations(bare="</r>", answers=both("</r><n><p>")),
        },
        {"lead": "</u><bot>", "header": "<bot>", "tool_lead": "</r><n>", "tool_header": "<n>"},
    ),
}


@pytest.mark.parametrize(("texts", "expected"), FRAMES.values(), ids=FRAMES)
def test_header_and_prefill_are_what_answers_and_prompts_share(texts, expected):
    """Each clause of the frame, with a text that needs it."""
    assert framed(**texts) == expected


def test_only_the_end_of_a_long_lead_is_looked_at():
    """A marker far before the end of the lead is not a question of the header; what is near is found in a prompt."""
    far = "<a>" + " x" * 600
    frame = framed(prompt="Be brief. x<bot>T", bare="", answers=both(f"{far}<bot>"))

    assert frame["lead"] == f"{far}<bot>"
    assert frame["prefill"] == "T"


APPENDED = {
    "something after the last turn": (f"{C}<end>\nBye", f"{C}<end>\n<user>{USER2}", "<user>", "Bye"),
    "the next turn's opener in its place": (f"{C}<end><user>!", f"{C}<end><user>{USER2}", f"{BOS} <user>", "<user>!"),
    "white space before the next turn": (f"{C}<end>", f"{C}<end>\n<user>{USER2}", "<user>", ""),
    "no end at all": (f"{C}Bye", f"{C}<user>{USER2}", "<user>", ""),
    "what ends the conversation ends other texts too": (f"{C}<end>", f"{C}<end>\n<user><end>{USER2}", "<user>", ""),
    "nothing after the last answer": (C, f"{C}<end><user>{USER2}", "<user>", ""),
    "no question after the answer": (f"{C}<end>Bye", None, "<user>", ""),
    "the next turn's opener is not an end": (f"{C}<end><s>", f"{C}<end><s>user{USER2}", "<s>user", ""),
    "the next turn's opener of a marker and a word": (
        f"{C}<end><s>user!",
        f"{C}<end><s>user\n{USER2}",
        "<s>user",
        "<s>user!",
    ),
    "nothing after EOS counts": (f"{C}<end>Bye{EOS}x", f"{C}<end>{EOS}<user>{USER2}", "<user>", "Bye"),
}


@pytest.mark.parametrize(("content", "followed", "opening", "appended"), APPENDED.values(), ids=APPENDED)
def test_appended_is_what_only_the_last_answer_has(content, followed, opening, appended):
    """What ends a conversation is told from what ends a turn by an answer that a question follows."""
    lead = {"bare": "", "answers": both("<bot>")}

    assert framed(content=content, followed=followed, opening=opening, **lead).get("appended", "") == appended


OPENERS = {
    "a question's": ({"followed": f"{C}</c>\n<user>{USER2}"}, ["<user>"]),
    "words are not a marker": ({"followed": f"{C}</c>\nuser:{USER2}"}, []),
    "nothing after EOS": ({"followed": f"{C}</c>{EOS}<user>{USER2}"}, []),
    "a result's": ({"call": "<c>f</c>", "call_answered": f"<c>f</c>\n<tool>{RESULT}</tool>"}, ["<tool>"]),
    "both": ({"followed": f"{C}<u>{USER2}", "call": "f", "call_answered": f"f<tool>{RESULT}"}, ["<u>", "<tool>"]),
    "a call that EOS ends": ({"call": f"f{EOS}", "call_answered": f"f{EOS}<tool>{RESULT}"}, []),
    "a call that a result changes": ({"call": "f", "call_answered": f"g<tool>{RESULT}"}, []),
    "a question that is not written": ({"followed": f"{C}</c><user></user>"}, ["<user>"]),
    "a result that is not written": ({"call": "f", "call_answered": "f<tool></tool>"}, ["<tool>"]),
    "content that is written twice": ({"followed": f"{C}<b>{C}</c><user>{USER2}"}, ["<user>"]),
    "no result": ({"call": "f"}, []),
    "no call": ({"call_answered": f"<c>f</c><tool>{RESULT}"}, []),
    "content that is not shown": ({"followed": f"<c>f</c><user>{USER2}"}, []),
    "nothing": ({}, []),
}


@pytest.mark.parametrize(("texts", "expected"), OPENERS.values(), ids=OPENERS)
def test_next_turns_open_with_markers(texts, expected):
    """Where nothing ends an answer, the markers with which other turns open do."""
    assert list(next_openers(Turns(question=Continuations(), **texts), "</c>")) == expected


ENDS = {
    "up to the next question's opener": (f"<bot>{C}<end>\n<user>{USER2}", "<s><user>", "<end>\n"),
    "all, where no opener is known": (f"<bot>{C}<end><user>{USER2}", "", "<end><user>"),
    "the question is written twice": (f"{C}<end><user>{USER2}<user>{USER2}", "<user>", "<end>"),
    "content is written twice": (f"{C}<b>{C}<end><user>{USER2}", "<user>", "<end>"),
    "up to EOS": (f"{C}<end>{EOS}<user>{USER2}", "<user>", ""),
    "no question follows": (f"{C}<end>", "<user>", ""),
    "the question comes first": (f"{USER2}{C}<end>", "<user>", ""),
    "not rendered": (None, "<user>", ""),
    "the answer is not shown": (f"<bot><user>{USER2}", "<user>", ""),
}


@pytest.mark.parametrize(("followed", "opening", "end"), ENDS.values(), ids=ENDS)
def test_end_in_history_stands_before_the_next_question(followed, opening, end):
    """What ends an answer in the middle of a conversation."""
    assert end_in_history(Turns(question=Continuations(), followed=followed, opening=opening)) == end


def test_openings_after_a_tool_stand_before_content():
    """Answers to a result count that have their lead and content."""
    texts = (f"</r><bot>\n{C}", f"</r><bot>x{C}y{C}", "</r><bot>z", f"other{C}")
    turns = Turns(question=Continuations(), after_result=texts)

    assert list(openings_after_tool(turns, TurnFrame(lead="", header="", tool_lead="</r><bot>"))) == ["\n", "x"]
    assert list(openings_after_tool(turns, TurnFrame(lead="", header=""))) == []


def test_tail_is_after_the_last_needle():
    """Up to EOS or BOS, without what ends the conversation."""
    frame = TurnFrame(lead="", header="", appended="Bye")

    assert tail_of(f"a{C}b{C}<end>Bye", C, frame) == "<end>"
    assert tail_of(f"a{C}<end>{EOS}x", C, frame) == "<end>"
    assert tail_of(f"a{C}<end>{BOS}x", C, frame) == "<end>"
    assert tail_of("ab", C, frame) == tail_of(None, C, frame) == ""
    assert until_sentinel(f"a{BOS}b{EOS}") == until_sentinel(f"a{EOS}b{BOS}") == "a"


LEADS = [
    ("<end>\n<bot>Hi", "<end><bot>", "Hi"),
    ("<end><bot>Hi", "<end><bot>", "Hi"),
    ("<end> <bot>\nHi", "<end><bot>\n", "Hi"),
    ("<end> <bot>Hi", "<end><bot>\n", "Hi"),
    ("\n<end> x y<bot>Hi", "<end>x  y<bot>", "Hi"),
    ("<end><b>Hi", "<end><bot>", None),
    ("so <end><bot>Hi", "<end><bot>", None),
    ("Hi", " ", None),
    (" Hi", " ", "Hi"),
]


@pytest.mark.parametrize(("text", "lead", "rest"), LEADS)
def test_white_space_in_a_lead_may_differ(text, lead, rest):
    """A lead is found again whatever white space is in it, between words and beside tags."""
    assert text_after_lead(text, lead) == rest


def test_body_is_after_the_lead():
    """An answer without the lead; nothing where it has another."""
    frame = TurnFrame(lead="</u><bot>", header="<bot>")

    assert (frame.body("</u>\n<bot>x"), frame.body("y"), frame.body(None)) == ("x", None, None)


BOT = TurnFrame(lead="</u><bot>", header="<bot>")
SAYING = TurnFrame(lead="</u>", header="", prefill="<bot><say>\n")
UNLIKE = {
    "prompts end in another header": ({"prompt": "</u><ai>"}, {}, BOT, "", ["the prompt asks with"]),
    "no prompt asks": ({"prompt": "</u>", "bare": "</u>"}, {}, BOT, "", []),
    "prompts end in the header": ({"prompt": "</u><bot>"}, {}, BOT, "", []),
    "there are no prompts": ({"bare": "</u>"}, {}, BOT, "", []),
    "calls do not begin with what prompts begin": (
        {},
        {"call": f"</u><call>{N}"},
        SAYING,
        "\n<bot><say>\n",
        ["the prompt begins content"],
    ),
    "calls begin with it as well": ({}, {"call": f"</u>\n<bot><say>{N}"}, SAYING, "<bot><say>", []),
    "content does not begin with it": ({}, {"call": f"</u><call>{N}"}, SAYING, "<say>", []),
    "calls are not rendered": ({}, {}, SAYING, "<bot><say>", []),
}


@pytest.mark.parametrize(("asked", "calls", "frame", "content_start", "said"), UNLIKE.values(), ids=UNLIKE)
def test_prompts_unlike_the_history_are_said(asked, calls, frame, content_start, said):
    """Another header than the one before answers, and an opener of content that no call has before it."""
    answers = {"answers": both("</u><bot>")}
    turns = Turns(question=Continuations(**(asked | answers)), **calls)

    assert [
        text[: len(start)] for text, start in zip(unlike_history(turns, frame, content_start), said, strict=True)
    ] == said


def test_what_is_said_of_prompts_is_short():
    """Long prompts and headers are quoted as far as a reader looks at them."""
    asked = Continuations(prompt="<ai>" * 999, answers=both("</u><bot>"))
    headed = unlike_history(Turns(question=asked), TurnFrame(lead="", header="<bot>" * 999), "")
    begun = unlike_history(
        Turns(question=Continuations(), call=N), TurnFrame(lead="", header="", prefill="<say>" * 999), "<say>" * 999
    )

    assert [len(text) < 600 for text in (*headed, *begun)] == [True, True]
