"""The parser's guarantees: one reading for any chunking, no errors, no loss, resumable, and streams that add up to whole answers.

They hold for every family of formats, for handwritten grammars, and for random ones. The judges use a client's added-up
deltas and the roles of characters. They don't know how a call is read.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from cases import thinned
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from properties.families import BY_HAND, CONTENT, FAMILIES, REQUEST, Family
from properties.grammars import grammars, text_for
from properties.invariants import MakeParser, check, check_copies, check_strict, read
from properties.outputs import jumbled, mutated
from splitting import fed, pieces

from unrender import ArgumentsText, GrammarError, Malformed, Policy, ToolCallFinished, ToolCallStarted
from unrender.grammar import Grammar, Role
from unrender.types import Request

each_family = pytest.mark.parametrize("family", FAMILIES, ids=repr)
each = pytest.mark.parametrize("family", [*FAMILIES, *BY_HAND], ids=repr)
RELEASES = ("complete", "streamed")
each_release = pytest.mark.parametrize("release", RELEASES)
few = settings(max_examples=12)
ANY_TOOL = Request(tools=None)
OF_CALLS = (ToolCallStarted, ArgumentsText, ToolCallFinished)
SAID = (Role.CONTENT, Role.REASONING, Role.ARGUMENT, Role.NAME, Role.MARKER)
"""Roles of text in the message. In `{"name": "f", "args": {…}}`, the key of the arguments is a marker."""
NEEDLES = ("Paris", "Rome")


def maker(family: Family, release: str, **words: str) -> MakeParser:
    fields: dict[str, object] = {"tool_calls": release, **words}
    return partial(family.parser, policy=Policy(**fields))


def check_final(make: MakeParser, chunks: list[str]) -> None:
    """Assert that a character keeps its first role, and that only complete calls are sent if the policy says so.

    The exception is the end of the answer: content before a closing marker that was reported to end reasoning becomes
    reasoning. The events of a complete call come together, with its last character.
    """
    parser, before, split = make(), list[Role](), 0
    for chunk in (*chunks, None):
        events = parser.finish() if chunk is None else parser.feed(chunk)
        told = [type(event) for event in events if isinstance(event, OF_CALLS)]
        if parser._machine.policy.tool_calls == "complete":
            assert told == [*OF_CALLS] * (len(told) // 3)
        ends = [event.position for event in events if isinstance(event, Malformed) and event.ends_reasoning]
        split = max((split, *ends))
        now = [span.role for span in parser.spans for _ in range(span.start, span.end)]
        assert len(now) == parser._settled
        if chunk is None and split:
            begun = before[:split]
            before[:split] = [Role.REASONING if role is Role.CONTENT else role for role in begun]
        assert now[: len(before)] == before
        before = now


def check_said_once(make: MakeParser, text: str) -> None:
    """Assert that no stretch of text occurs twice, such as in a call and again in the content."""
    parser = make()
    read(parser, text, pieces(text, 5))
    message, kept = parser.message, dict.fromkeys(SAID, "")
    for span in parser.spans:
        if span.role in kept:
            kept[span.role] += text[span.start : span.end]
    said = "\n".join((message.content, message.reasoning, *(call.arguments_json for call in message.tool_calls)))
    for needle in NEEDLES:
        assert said.count(needle) <= "\n".join(kept.values()).count(needle)


@each_family
def test_the_standard_output_means_the_standard_message(family: Family) -> None:
    """Text and calls in the format's own spelling are read back exactly for every chunking, even by a strict parser."""
    calls = [("get_weather", '{"city": "Paris", "days": 3}'), ("get_time", '{"city": "Rome"}')]

    for strict in (False, True):
        message = check(partial(family.parser, strict=strict), family.outputs[0])

        assert message.content == CONTENT
        assert [(call.name, call.arguments_json) for call in message.tool_calls] == calls[: 1 if family.one_call else 2]


@each
def test_every_output_is_read_alike_at_every_chunking(family: Family) -> None:
    """Events, message, deltas and spans don't depend on the chunks, with the tools known or unknown."""
    for output in family.outputs:
        plain = check(family.parser, output)
        check(partial(family.parser, request=ANY_TOOL), output)
        if family.grammar:
            assert check(family.parser, output + family.format.turn.end) == plain


@pytest.mark.few(8)
@each
@given(data=st.data())
def test_any_text_is_read_alike_at_every_chunking(family: Family, data: st.DataObject) -> None:
    """Markers in any order are read without error or gap for any chunking, even if any name is a tool.

    A strict parser reads a text or raises `ParseError` at the same place for every chunking.
    """
    text = data.draw(st.one_of(mutated(family), jumbled(family)))

    check(family.parser, text)
    check(partial(family.parser, request=ANY_TOOL), text)
    check_strict(partial(family.parser, strict=True), text)


@pytest.mark.few(8)
@each
@each_release
def test_an_answer_that_ends_anywhere_is_one_truth(family: Family, release: str) -> None:
    """Cut off after any character, the streamed parts add up to the message, and nothing occurs twice."""
    make, output = maker(family, release), family.outputs[0]
    check_final(make, [*output])
    for end in range(len(output)):
        check_said_once(make, output[:end])


@pytest.mark.few(12)
@each
@each_release
@few
@given(data=st.data())
def test_a_broken_answer_is_one_truth(family: Family, release: str, data: st.DataObject) -> None:
    """Deltas, as a client adds them up, equal the message for every chunking. Content is the text with that role.

    Spans only grow, whatever happens to the current call. A parser copied or restored inside the text continues.
    """
    text, size = data.draw(mutated(family)), data.draw(st.integers(1, 9))
    make = maker(family, release)

    check(make, text)
    check_said_once(make, text)
    check_final(make, pieces(text, size))
    check_copies(make, family.restored, text, data.draw(st.lists(st.integers(0, len(text)), max_size=3)))


@pytest.mark.few(12)
@each
@few
@given(data=st.data())
def test_both_policies_read_the_same_calls(family: Family, data: st.DataObject) -> None:
    """Both policies give the same calls and reports. Only the time of a call and the place of a failed one differ.

    A call is repaired only before any of it was sent, so repairs are turned off.
    """
    text = data.draw(mutated(family))
    found = []
    for release in RELEASES:
        events, message = read(maker(family, release, repair="none")(), text, [text])
        whole = [(call.name, call.arguments_json) for call in message.tool_calls if call not in message.failed_calls]
        reported = [(event.position, event.expected) for event in events if isinstance(event, Malformed)]
        found.append((whole, [(call.name, str(call.status)) for call in message.failed_calls], reported))

    assert found[0] == found[1]


@each
@thinned(7)
def test_a_copy_at_every_position_goes_on_like_the_original(family: Family, step: int) -> None:
    """A copy, a pickled parser and a restored one are complete at every position of a real output."""
    output = family.outputs[0]

    check_copies(family.parser, family.restored, output, range(0, len(output) + 1, step))


@pytest.mark.few(16)
@each
def test_what_is_generated_is_read(family: Family) -> None:
    """Samples are accepted by a strict parser, and every call in them is complete and fits its schema.

    If a call is required, there is one. A handwritten grammar decides by itself whether an answer calls a tool.
    """
    request = family.request if family.grammar else replace(REQUEST, tool_choice="required")
    draw = replace(family.turn, request=request)._remainder.drawer()
    for seed in range(25):
        parser = family.parser(strict=True, request=request)
        text = draw(seed).text
        events = fed(parser, [text])
        calls = parser.message.tool_calls
        assert not [event for event in events if isinstance(event, Malformed)]
        assert all(call.status == "complete" and (family.grammar or not call.problems()) for call in calls), text
        assert calls or family.grammar, text


@settings(max_examples=60, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(grammars(), st.integers(0, 1 << 30))
def test_drawn_grammars_keep_the_promises(grammar: Grammar, seed: int) -> None:
    """Any text is read the same for every chunking, without loss, and a strict parser raises at one place."""
    make = partial(BY_HAND[0].parser, grammar=grammar)
    try:
        make()
    except GrammarError:
        assume(False)  # Left recursion.
    text = text_for(grammar, seed)

    check(make, text)
    check_strict(partial(make, strict=True), text)


def test_text_that_is_final_is_forgotten() -> None:
    """A parser of a grammar with cuts stores no more after a long answer than after a short one."""
    sizes = []
    for times in (3, 300):
        parser = BY_HAND[0].parser()
        for character in "\n".join(BY_HAND[0].outputs[:1] * times):
            parser.feed(character)
        machine = parser._machine
        sizes.append(
            len(machine.buffer) + sum(map(len, machine.past.needed)) + len(machine.events) + len(machine.frames)
        )
        assert len(parser.message.tool_calls) == 2 * times
    assert sizes[1] <= sizes[0]
