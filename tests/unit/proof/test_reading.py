"""A template's own answers, and those that a Format misreads: literal texts for each clause."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from cases import beside, cases
from rendering_rows import template_of
from rows import patched

from unrender import Message, ToolCall
from unrender.analysis import ReasoningPlace
from unrender.analysis.ask import (
    CONTENT,
    EOS,
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
from unrender.proof import CutOut, misread, misread_parts, refused

SOURCE = beside(__file__, "source.jinja")
FORMAT = Format(
    turn=TurnTexts(headers=("<assistant>",)),
    reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<r>", end="</r>"),
    tools=CallSyntax(call_start="<call>", function=(Slot.NAME, " ", Slot.ARGUMENTS), call_end="</call>"),
)
C, R = CONTENT, REASONING
OWN, REQUEST = own_answers(), request_of()
ONE, TWO = make_calls(2)
CALL, BOTH = OWN["one call"], OWN["two calls"]
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


CALLS = {"CALL1": WRITTEN, "CALL2": WRITTEN_TWO, "NAME": ONE.name}
WORDS = {**CALLS, "CONTENT": C, "REASONING": R, "QUESTION": USER, "EOS": EOS}


def spelled(text: str) -> str:
    """Return a text of a row with the words and calls of the probes."""
    for word, meant in WORDS.items():
        text = text.replace(word, meant)
    return text


@cases
def test_answers_are_judged_that_show_all_of_it(why, said, text, expected):
    """An answer is judged if it contains every needle, content once, and not the question."""
    assert is_shown(OWN[said], spelled(text), USER) is expected


def call(name=ONE.name, arguments='{"akeyvorn": 730101}', status="complete"):
    return ToolCall(name=name, arguments_json=arguments, id="0", status=status)


@cases
def test_a_message_says_just_what_was_meant(why, content, reasoning, calls, failed, wrong):
    """Content, reasoning and whole calls are compared. A misread answer lists the wrong parts."""
    made = {"tool_calls": [call(**given) for given in calls], "failed_calls": [call(**given) for given in failed]}
    message = Message(content=spelled(content), reasoning=spelled(reasoning), **{key: tuple(made[key]) for key in made})

    assert sorted(part.value for part in misread_parts(CALL, message)) == wrong


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


@cases
def test_an_answer_is_read_as_the_row_says(why, said, answer, how, gives):
    """Answers that are misread are reported with the message, but not those that could be others, or aren't known to be answers.

    `how` changes the format and the template's source, and has the start of the answer, and whether it continues the whole prompt.
    """
    source, format = SOURCE, Format.from_dict(patched(FORMAT.to_dict(), how.get("format", {})))
    for old, new in how.get("source", {}).items():
        source = source.replace(old, spelled(new))
    start = spelled(how.get("start", "<user>QUESTION<assistant>"))
    found = read(OWN[said], spelled(answer), source=source, format=format, start=start, asked=how.get("asked", True))

    assert (found and told(found)) == (gives and {key: spelled(text) for key, text in gives.items()})


def test_calls_that_are_written_alike_are_not_judged():
    """A template that writes one name for all tools shows another call as the same text."""
    swapped = SOURCE.replace("{{ c.function.name }}", ONE.name)

    assert read(replace(BOTH, calls=(TWO,)), f"{WRITTEN.replace('01}', '02}')}{EOS}", source=swapped) is None


def told(message: Message) -> dict[str, str]:
    """Return what was read: texts, and the names of calls or the statuses of failed ones."""
    calls = " ".join([*(call.name for call in message.tool_calls), *(call.status for call in message.failed_calls)])
    parts = {"content": message.content, "reasoning": message.reasoning, "calls": calls}
    return {key: text for key, text in parts.items() if text}


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
