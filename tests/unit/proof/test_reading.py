"""A template's own answers, and those that a Format misreads: literal texts for each clause."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from cases import beside, cases
from rendering_rows import template_of

from unrender import Message, ToolCall
from unrender.analysis import ReasoningPlace
from unrender.analysis.ask import (
    CONTENT,
    EOS,
    NAMES,
    REASONING,
    RESULT,
    USER,
    USER2,
    Prober,
    assistant,
    make_calls,
    own_answers,
    request_of,
    user,
)
from unrender.analysis.ask.answers import cut_outs, is_shown
from unrender.analysis.derivation import witness_of
from unrender.conversation.messages import Said
from unrender.format import CallSyntax, Format, Reasoning, ReasoningMode, Slot, TurnTexts
from unrender.grammar import Role
from unrender.proof import CutOut, misread, misread_parts, refused

SOURCE = beside(__file__, "source.jinja")
FORMAT = Format(
    turn=TurnTexts(headers=("<assistant>",)),
    reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<r>", end="</r>"),
    tools=CallSyntax(
        call_start="<call>",
        function=(Slot.NAME, " ", Slot.ARGUMENTS),
        call_end="</call>",
    ),
)
C, R = CONTENT, REASONING
OWN, REQUEST = own_answers(), request_of()
ONE, TWO = make_calls(2)
CALL, BARE, BOTH = (
    assistant(calls=(ONE,)),
    assistant(calls=make_calls(1, 0)),
    assistant(calls=(ONE, TWO)),
)
WRITTEN = f'<call>{ONE.name} {{"akeyvorn": 730101}}</call>'
WRITTEN_TWO = f'<call>{TWO.name} {{"akeyvorn": 730102}}</call>'
ASKED = f"<user>{USER}<assistant>"


def prober(source: str = SOURCE, **known: object) -> Prober:
    capabilities = {
        "supports_tool_calls": True,
        "supports_tool_role": True,
        "supports_content_with_reasoning_and_calls": True,
        "reasoning_place": ReasoningPlace.FIELD,
        "reasoning_field": "reasoning_content",
    }
    return Prober(template=template_of(source)).with_capabilities(**(capabilities | known))


def read(
    said: Said,
    answer: str,
    *,
    source: str = SOURCE,
    format: Format = FORMAT,
    start: str = ASKED,
    asked: bool = True,
):
    """Return the message of a misread answer; None if it's read correctly or not judged."""
    prompt = start if asked else f"{start}?"
    shown = CutOut(
        said=said, request=REQUEST, before=(user(),), prompt=prompt, start=start, answer=answer, whole=start + answer
    )
    found = misread(replace(witness_of(prober(source)), shown=(shown,)), format)
    return found[0].message if found else None


SHOWN = {
    "content": (assistant(C), f"<a>{C}", True),
    "content twice": (assistant(C), f"{C}{C}", False),
    "content and the question": (assistant(C), f"{C}{USER}", False),
    "other content": (assistant(C), R, False),
    "reasoning is missing": (assistant(C, R), C, False),
    "reasoning twice": (assistant(C, R), f"{R}{C}{R}", True),
    "a call": (CALL, WRITTEN, True),
    "a call twice": (CALL, WRITTEN * 2, True),
    "just the name": (CALL, ONE.name, False),
    "another value": (CALL, WRITTEN.replace("730101", "5"), False),
    "another key": (CALL, WRITTEN.replace("akeyvorn", "key"), False),
    "one call of two": (BOTH, WRITTEN, False),
}


@pytest.mark.parametrize(("said", "text", "expected"), SHOWN.values(), ids=SHOWN)
def test_answers_are_judged_that_show_all_of_it(said, text, expected):
    """An answer is judged if it contains every needle, content once, and not the question."""
    assert is_shown(said, text, USER) is expected


def call(name=ONE.name, arguments='{"akeyvorn": 730101}', status="complete"):
    return ToolCall(name=name, arguments_json=arguments, id="0", status=status)


MEANT = {
    "the call": (Message(tool_calls=(call(),)), True, False, False),
    "with content": (Message(content=C, tool_calls=(call(),)), False, False, False),
    "with reasoning": (Message(reasoning=R, tool_calls=(call(),)), False, False, True),
    "other arguments": (Message(tool_calls=(call(arguments="{}"),)), False, True, False),
    "another name": (Message(tool_calls=(call(NAMES[1]),)), False, True, False),
    "twice": (Message(tool_calls=(call(), call())), False, True, False),
    "never": (Message(content=WRITTEN), False, True, False),
    "cut off": (Message(failed_calls=(call(status="truncated"),)), False, True, False),
    "with another that is cut off": (
        Message(tool_calls=(call(),), failed_calls=(call(status="truncated"),)),
        False,
        True,
        False,
    ),
}


@pytest.mark.parametrize(("message", "same", "calls_are_wrong", "reasoning_is_wrong"), MEANT.values(), ids=MEANT)
def test_a_message_says_just_what_was_meant(message, same, calls_are_wrong, reasoning_is_wrong):
    """Content, reasoning and whole calls are compared. A misread answer lists the wrong parts."""
    found = misread_parts(CALL, message)

    assert (not found) is same
    assert (Role.CALL in found, Role.REASONING in found) == (calls_are_wrong, reasoning_is_wrong)


def test_calls_are_compared_when_all_are_complete():
    """A call that is cut off differs from the complete one, even with the same text."""
    second = '{"akeyvorn": 730102}'

    assert not misread_parts(BOTH, Message(tool_calls=(call(), call(TWO.name, second))))
    assert misread_parts(BOTH, Message(tool_calls=(call(),), failed_calls=(call(TWO.name, second, "truncated"),)))


def test_every_answer_is_cut_out():
    """After a question there are all answers, after another question only content, after a result the usual four."""
    shown = cut_outs(prober(), REQUEST)

    assert [(found.name, found.before[-1].content) for found in shown] == [
        *((name, USER) for name in OWN),
        ("content", USER2),
        *((name, RESULT) for name in ("content", "reasoning and content", "one call", "content and a call")),
    ]
    assert (shown[0].said, shown[0].before) == (OWN["content"], (user(),))
    assert (shown[0].prompt, shown[0].start, shown[0].answer) == (ASKED, ASKED, f"{C}{EOS}")
    assert shown[3].answer == f"{WRITTEN}{WRITTEN_TWO}{EOS}"
    assert shown[10].before == (user(), assistant(C, R), user(USER2))
    assert all(found.asked and found.start.endswith("<assistant>") for found in shown)


def test_answers_go_on_with_what_the_prompt_begins_alike():
    """An answer that doesn't continue the whole prompt starts after the text that both have in common."""
    shown = cut_outs(prober(SOURCE.replace("'<assistant>'", "'<assistant><r>'")), REQUEST)

    assert (shown[0].start, shown[0].answer, shown[0].asked) == (ASKED, f"{C}{EOS}", False)
    assert (shown[1].start, shown[1].answer, shown[1].asked) == (f"{ASKED}<r>", f"{R}</r>{C}{EOS}", True)


def test_answers_begin_where_the_prompt_ends():
    """An answer may start in the middle of a word."""
    glued = SOURCE.replace("<{{ m.role }}>", "{{ m.role }}").replace("'<assistant>'", "'assistant'")

    found = cut_outs(prober(glued), REQUEST)[0]
    assert (found.start, found.answer, found.asked) == (f"user{USER}assistant", f"{C}{EOS}", True)


@cases
def test_what_is_not_shown_is_not_cut_out(why, known, template, first, replaced, count):
    """Refusals are skipped, and answers that don't show all parts and the question."""
    source = first + (template or SOURCE).replace("m.content or ''", replaced)

    assert len(cut_outs(prober(source, **known), REQUEST)) == count, why


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (OWN["content"], f"{C}{EOS}"),
        (OWN["reasoning and content"], f"<r>{R}</r>{C}{EOS}"),
        (CALL, WRITTEN),
        (BARE, f"<call>{ONE.name} {{}}</call>{EOS}"),
        (BOTH, WRITTEN + WRITTEN_TWO),
    ],
)
def test_what_is_read_right_is_not_reported(said, answer):
    """Answers in the format's own syntax aren't reported, with or without the end of sequence."""
    assert read(said, answer) is None


def test_what_is_read_otherwise_is_reported():
    """The report contains the message that was read instead."""
    assert read(OWN["reasoning and content"], f"[{R}]{C}") == Message(content=f"[{R}]{C}")
    assert read(CALL, f"{C}{WRITTEN}").content == C
    assert [found.name for found in read(BOTH, WRITTEN).tool_calls] == [ONE.name]
    assert read(CALL, WRITTEN.removesuffix("}</call>")).failed_calls[0].status == "truncated"


def test_other_call_syntaxes_prove_nothing():
    """An answer that only a tolerated syntax reads is misread."""
    other = replace(FORMAT.tools, call_start="<f>", call_end="</f>")
    written = WRITTEN.replace("<call>", "<f>").replace("</call>", "</f>")

    assert read(CALL, written, format=replace(FORMAT, tolerated=(other,))) == Message(content=written)
    assert read(CALL, WRITTEN, format=replace(FORMAT, tolerated=(other,))) is None


def test_answers_that_are_written_alike_are_not_judged():
    """Answers that the template writes as the same text aren't judged. Calls read as text don't count."""
    unmarked = SOURCE.replace("<r>", "").replace("</r>", "")
    swapped = SOURCE.replace("{{ c.function.name }}", f"{NAMES[0]}")
    as_text = SOURCE.replace("<call>", "").replace("</call>", "")

    assert read(OWN["reasoning and content"], f"{R}{C}{EOS}", source=unmarked) is None
    assert read(OWN["reasoning and content"], f"{R}{C}", source=unmarked) == Message(content=f"{R}{C}")
    assert read(replace(BOTH, calls=(TWO,)), f"{WRITTEN.replace('01}', '02}')}{EOS}", source=swapped) is None
    assert read(CALL, f'{ONE.name} {{"akeyvorn": 730101}}{EOS}', source=as_text) is not None


HEADERS = {
    "after the header": (FORMAT, ASKED, True),
    "after half of it": (FORMAT, f"<user>{USER}<assi", False),
    "with whitespace": (replace(FORMAT, turn=TurnTexts(headers=("<assistant>\n",))), ASKED, True),
    "one header of two": (replace(FORMAT, turn=TurnTexts(headers=("<x>", "<assistant>"))), ASKED, True),
    "no header": (replace(FORMAT, turn=TurnTexts()), ASKED, False),
    "a header before the question came again": (FORMAT, f"{ASKED}<user>{USER}", False),
    "a header before the question": (FORMAT, f"<assistant><user>{USER}", False),
    "the prompt begins reasoning": (
        replace(FORMAT, reasoning=Reasoning(mode=ReasoningMode.DELIMITER, end="</r>")),
        ASKED,
        False,
    ),
}


@pytest.mark.parametrize(("format", "start", "judged"), HEADERS.values(), ids=HEADERS)
def test_answers_that_leave_the_prompt_are_judged_after_a_header(format, start, judged):
    """Without a header between question and answer, the text may not be an answer, and isn't judged."""
    assert (
        read(OWN["reasoning and content"], f"[{R}]{C}", format=format, start=start, asked=False) is not None
    ) is judged
    assert read(OWN["reasoning and content"], f"[{R}]{C}", format=format, start=start) is not None


TAGGED = Format(
    turn=TurnTexts(headers=("<bot>",), end="<end>"),
    tools=CallSyntax(
        call_start="<call>\n",
        call_end="\n</call>",
        function=('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"),
    ),
)


@pytest.mark.parametrize(("line", "count"), [("\n", 0), (" ", 1)], ids=["as the format says", "as a reader takes it"])
def test_what_is_read_and_cannot_be_generated_is_found(line, count):
    """The parser reads `<call> {` for `<call>` and a line break, but the grammar doesn't allow it."""
    said = OWN["one call"]
    (call,) = said.calls
    answer = f'<call>{line}{{"name": "{call.name}", "arguments": {json.dumps(call.arguments)}}}\n</call><end>'
    shown = CutOut(
        said=said, request=REQUEST, before=(user(),), prompt="<user>Hi<bot>", start="<user>Hi<bot>", answer=answer
    )

    assert len(list(refused(replace(witness_of(prober()), shown=(shown,), request=REQUEST), TAGGED))) == count
