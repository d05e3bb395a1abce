"""A stream and a whole answer agree under both policies for calls, for every chunking, for any broken text.

Rules: the judge uses a client's added-up deltas and the roles of characters. It doesn't know how a call is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.by_hand import BY_HAND, FORMAT, ByHand
from properties.families import FAMILIES, REQUEST, Family
from properties.invariants import MakeParser, check, check_copies, read
from properties.outputs import mutated
from splitting import merged, pieces

from unrender import ArgumentsText, Malformed, Parser, Policy, ToolCallFinished, ToolCallStarted
from unrender.grammar import Role
from unrender.testing import numbered_id

CallRelease = Literal["complete", "streamed"]
RELEASES: tuple[CallRelease, ...] = ("complete", "streamed")
each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
each_grammar = pytest.mark.parametrize("by_hand", BY_HAND, ids=repr)
each_release = pytest.mark.parametrize("release", RELEASES)
few = settings(max_examples=12)
OF_CALLS = (ToolCallStarted, ArgumentsText, ToolCallFinished)
SAID = (Role.CONTENT, Role.REASONING, Role.ARGUMENT, Role.NAME, Role.MARKER)
"""Roles of text in the message. In `{"name": "f", "args": {…}}`, the key of the arguments is a marker."""
NEEDLES = ("Paris", "Rome")


def maker(family: Family, release: CallRelease) -> MakeParser:
    policy = Policy(tool_calls=release)
    return lambda: Parser(family.format, REQUEST, prompt=family.prompt, ids=numbered_id, policy=policy)


def roles(parser: Parser) -> list[Role]:
    """Return the role of each final character."""
    return [span.role for span in parser.spans for _ in range(span.start, span.end)]


def check_final(make: MakeParser, chunks: list[str]) -> None:
    """Assert that a character keeps its first role.

    The exception is the end of the answer: content before a closing marker that was reported to end reasoning becomes
    reasoning.
    """
    parser, before, split = make(), list[Role](), 0
    for chunk in (*chunks, None):
        events = parser.finish() if chunk is None else parser.feed(chunk)
        ends = [event.position for event in events if isinstance(event, Malformed) and event.ends_reasoning]
        split = max((split, *ends))
        now = roles(parser)
        assert len(now) == parser._settled
        if chunk is None and split:
            begun = before[:split]
            before[:split] = [Role.REASONING if role is Role.CONTENT else role for role in begun]
        assert now[: len(before)] == before
        before = now


def check_said_once(parser: Parser, text: str) -> None:
    """Assert that no stretch of text occurs twice, such as in a call and again in the content."""
    message, kept = parser.message, dict.fromkeys(SAID, "")
    for span in parser.spans:
        if span.role in kept:
            kept[span.role] += text[span.start : span.end]
    said = "\n".join((message.content, message.reasoning, *(call.arguments_json for call in message.tool_calls)))
    for needle in NEEDLES:
        assert said.count(needle) <= "\n".join(kept.values()).count(needle)


@pytest.mark.few(8)
@each_family
@each_release
def test_an_answer_that_ends_anywhere_is_one_truth(family: Family, release: CallRelease) -> None:
    """Cut off after any character, the streamed parts add up to the message, and nothing occurs twice."""
    output = family.outputs[0]
    for end in range(len(output)):
        parser = maker(family, release)()
        read(parser, output[:end], pieces(output[:end], 5))

        check_said_once(parser, output[:end])


@pytest.mark.few(8)
@each_family
@each_release
@few
@given(data=st.data())
def test_a_broken_answer_is_one_truth(family: Family, release: CallRelease, data: st.DataObject) -> None:
    """Deltas, as a client adds them up, equal the message for every chunking. Content is the text with that role."""
    text = data.draw(mutated(family))
    make = maker(family, release)

    check(make, text)
    parser = make()
    read(parser, text, [text])
    check_said_once(parser, text)


@pytest.mark.few(12)
@each_family
@few
@given(data=st.data())
def test_only_complete_calls_are_told_of(family: Family, data: st.DataObject) -> None:
    """By default, a call's events come together with its last character, and the last event marks it as complete."""
    text, size = data.draw(mutated(family)), data.draw(st.integers(1, 9))
    parser = maker(family, "complete")()

    for chunk in (*pieces(text, size), None):
        events = parser.finish() if chunk is None else parser.feed(chunk)
        told = [event for event in events if isinstance(event, OF_CALLS)]
        assert [type(event) for event in told] == [ToolCallStarted, ArgumentsText, ToolCallFinished] * (len(told) // 3)
        assert {str(event.status) for event in told if isinstance(event, ToolCallFinished)} <= {"complete"}


@pytest.mark.few(12)
@each_family
@few
@given(data=st.data())
def test_both_policies_read_the_same_calls(family: Family, data: st.DataObject) -> None:
    """Both policies give the same calls and reports. Only the time of a call and the place of a failed one differ.

    A call is repaired only before any of it was sent, so repairs are turned off.
    """
    text = data.draw(mutated(family))
    found = []
    for release in RELEASES:
        policy = Policy(tool_calls=release, repair="none")
        parser = Parser(family.format, REQUEST, prompt=family.prompt, ids=numbered_id, policy=policy)
        events, message = read(parser, text, [text])
        whole = [(call.name, call.arguments_json) for call in message.tool_calls if call not in message.failed_calls]
        reported = [(event.position, event.expected) for event in events if isinstance(event, Malformed)]
        found.append((whole, [(call.name, str(call.status)) for call in message.failed_calls], reported))

    assert found[0] == found[1]


@pytest.mark.few(8)
@each_family
@each_release
@few
@given(data=st.data())
def test_a_role_that_was_given_stays(family: Family, release: CallRelease, data: st.DataObject) -> None:
    """Spans only grow. Final text keeps its role, whatever happens to the current call."""
    text, size = data.draw(mutated(family)), data.draw(st.integers(1, 9))

    check_final(maker(family, release), pieces(text, size))


@pytest.mark.few(8)
@each_family
@each_release
@few
@given(data=st.data())
def test_a_parser_goes_on_anywhere(family: Family, release: CallRelease, data: st.DataObject) -> None:
    """A parser copied or restored inside broken text continues like the original."""
    text = data.draw(mutated(family))
    positions = data.draw(st.lists(st.integers(0, len(text)), max_size=3))
    make = maker(family, release)

    check_copies(make, text, positions)
    check_restored(
        make, text, positions, lambda state: Parser._restored(family.format, REQUEST, state, ids=numbered_id)
    )


def check_restored(
    make: MakeParser, text: str, positions: list[int], restore: Callable[[dict[str, object]], Parser]
) -> None:
    """Assert that a parser restored at any position gives the original's result, then and at the end."""
    for at in positions:
        parser = make()
        before = parser.feed(text[:at])
        again = restore(parser.state())
        assert (again.message, again.spans) == (parser.message, parser.spans)
        ends = [[*before, *one.feed(text[at:]), *one.finish()] for one in (parser, again)]
        assert merged(ends[0]) == merged(ends[1])
        assert (again.message, again.spans) == (parser.message, parser.spans)


@pytest.mark.few(3)
@each_grammar
@each_release
def test_an_answer_in_a_grammar_made_by_hand_is_one_truth(by_hand: ByHand, release: CallRelease) -> None:
    """In a handwritten grammar, too, an answer that is cut off or lacks a character streams its message."""
    policy = Policy(tool_calls=release)

    def make() -> Parser:
        return by_hand.parser(policy=policy).copy(ids=numbered_id)

    for output in by_hand.outputs:
        for at in range(0, len(output), 3):
            for text in (output[:at], output[:at] + output[at + 1 :]):
                check(make, text)
                check_final(make, pieces(text, 3))
            check_restored(
                make,
                output,
                [at],
                lambda state: Parser._restored(FORMAT, REQUEST, state, grammar=by_hand.grammar, ids=numbered_id),
            )
