"""Notices of what the tags of a grammar made by hand hold, one list at a time: the events that they become."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from unrender.errors import MalformedOutput
from unrender.machine.events import (
    ArgumentsText,
    ContentText,
    Event,
    Malformed,
    ToolCallFinished,
    ToolCallStarted,
)
from unrender.machine.handmade.tagged import Closed, Note, Notice, Opened, TaggedCall
from unrender.machine.ids import CallIds, numbered_id
from unrender.machine.instructions import Halt
from unrender.machine.interpreter import Machine
from unrender.machine.policy import USUAL, CallRelease, Policy, UnknownTools
from unrender.messages.wire import CallStatus, Request, Tool, ToolCall, ToolChoice
from unrender.nodes import Role

NOW = Tool(name="now", parameters={"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}})
REQUEST = Request(tools=(NOW, Tool(name="then")))
AS_WRITTEN = Policy(calls=CallRelease.WRITTEN)
TEXT = "0123456789abcdefghij!after"
END = 20
"""Where calls end; more was read since."""


def reader(
    request: Request = REQUEST, *, has_ids: bool = False, strict: bool = False, policy: Policy = USUAL
) -> Machine:
    made = Machine((Halt(),), request, strict=strict, ids=CallIds(numbered_id), roles={})
    made.rest, made.has_ids, made.policy = 1, has_ids, policy
    made.buffer, made.at = TEXT, len(TEXT)
    made.span_roles, made.span_ends = [Role.MARKER], [len(TEXT)]
    return made


def tag(role: Role, text: str, *, value: bool = False) -> list[Notice]:
    return [Opened(role, 0), Note(text, value), Closed(role, 9)]


def call(*inside: list[Notice], at: int = 0) -> list[Notice]:
    return [Opened(Role.CALL, at), *(notice for part in inside for notice in part), Closed(Role.CALL, END)]


def events(notices: list[Notice], made: Machine | None = None) -> list[Any]:
    return list((made or reader()).deliver(list(notices)))


NAMED = tag(Role.NAME, "now")
STARTED = ToolCallStarted(0, "call00000", "now", True)
COMPLETE = ToolCallFinished(0, CallStatus.COMPLETE)


def test_events_pass() -> None:
    """What is text outside of calls is told as it is."""
    assert reader().deliver([ContentText("b"), *call(NAMED)])[:2] == [ContentText("b"), STARTED]


@pytest.mark.parametrize(
    ("inside", "arguments"),
    [
        ([], ["{}"]),
        ([tag(Role.ARGUMENT, "{", value=True)[:2], [Note("}", True), Closed(Role.ARGUMENT, 9)]], ["{", "}"]),
        ([tag(Role.ARGUMENT, "{}")], ["{}"]),
        ([tag(Role.KEY, 'a"b'), tag(Role.VALUE, "x")], ['{"a\\"b": ', '"x"', "}"]),
        ([tag(Role.KEY, "city"), tag(Role.VALUE, "7")], ['{"city": ', '"7"', "}"]),
        ([tag(Role.KEY, "days"), tag(Role.VALUE, "7")], ['{"days": ', "7", "}"]),
        ([tag(Role.KEY, "city"), tag(Role.VALUE, "7", value=True)], ['{"city": ', "7", "}"]),
        (
            [tag(Role.KEY, "é"), tag(Role.VALUE, "x"), tag(Role.KEY, "days"), tag(Role.VALUE, "7")],
            ['{"é": ', '"x"', ', "days": ', "7", "}"],
        ),
    ],
)
def test_a_call_is_put_together(inside: list[list[Notice]], arguments: list[str]) -> None:
    """Its arguments are one value, or entries that the schema types; none are an empty object."""
    written = events(call(NAMED, *inside), reader(policy=AS_WRITTEN))

    assert written == [STARTED, *(ArgumentsText(0, text) for text in arguments), COMPLETE]
    assert events(call(NAMED, *inside)) == [STARTED, ArgumentsText(0, "".join(arguments)), COMPLETE]


def test_arguments_before_the_name_wait_for_it() -> None:
    """They come with the start, in one piece."""
    found = events(call(tag(Role.KEY, "city"), tag(Role.VALUE, "x"), NAMED), reader(policy=AS_WRITTEN))

    assert found == [STARTED, ArgumentsText(0, '{"city": "x"'), ArgumentsText(0, "}"), COMPLETE]


def test_a_call_with_an_id_waits_for_it() -> None:
    """Where the grammar reads ids; at the end of a call without one, an id is made."""
    made = reader(has_ids=True, policy=AS_WRITTEN)

    assert events([Opened(Role.CALL, 0), *NAMED, *tag(Role.ARGUMENT, "{}")], made) == []
    assert events(tag(Role.ID, "a1"), made) == [ToolCallStarted(0, "a1", "now", True), ArgumentsText(0, "{}")]
    assert events([Closed(Role.CALL, 9)], made) == [COMPLETE]
    assert events(call(NAMED), reader(has_ids=True)) == [STARTED, ArgumentsText(0, "{}"), COMPLETE]
    early = reader(has_ids=True, policy=AS_WRITTEN)
    found = events([Opened(Role.CALL, 0), *tag(Role.ID, "a1"), *NAMED], early)
    assert found == [ToolCallStarted(0, "a1", "now", True)]


def test_calls_are_counted() -> None:
    """Each has its index and its id."""
    found = events([*call(NAMED), *call(tag(Role.NAME, "then"))])

    assert found[3:] == [
        ToolCallStarted(1, "call00001", "then", True),
        ArgumentsText(1, "{}"),
        ToolCallFinished(1, CallStatus.COMPLETE),
    ]


@pytest.mark.parametrize("role", [Role.NAME, Role.ID, Role.ARGUMENT])
def test_what_comes_twice_is_reported(role: Role) -> None:
    """A name, an id and the arguments come once; the first name and id count."""
    first = {Role.NAME: "now", Role.ID: "a1", Role.ARGUMENT: "{}"}[role]
    parts = [tag(role, first), [Opened(role, 7), Note("then"), Closed(role, 9)]]
    found = events(call(*([] if role is Role.NAME else [NAMED]), *parts), reader(policy=AS_WRITTEN))
    reported = [event for event in found if isinstance(event, Malformed)]

    assert reported[0] == Malformed("", 7, f"one {role.value} in a call")
    assert [event.name for event in found if isinstance(event, ToolCallStarted)] == ["now"]


def test_entries_may_come_again() -> None:
    """That is what they are for."""
    entry = [*tag(Role.KEY, "a"), *tag(Role.VALUE, "1")]

    assert not [event for event in events(call(NAMED, entry, entry)) if isinstance(event, Malformed)]


@pytest.mark.parametrize("text", ["[1]", "{", "7", "", "[" * 100_000])
def test_arguments_that_are_not_an_object_end_the_call(text: str) -> None:
    """It is invalid, reported where it ends, and its text is content, though more was read since."""
    made = reader()
    made.open((5,))
    found = events(call(NAMED, tag(Role.ARGUMENT, text), at=3), made)

    dead = ToolCall(name="now", arguments=text, id="", status=CallStatus.INVALID)
    assert found == [Malformed("", END, "arguments that are one JSON object", dead), ContentText(TEXT[3:END])]
    assert (made.span_roles, made.span_ends) == ([Role.MARKER, Role.CONTENT, Role.MARKER], [3, END, len(TEXT)])
    assert (made.calls, made.frames[0].spans) == (0, 3)


def test_numbers_of_any_length_are_arguments() -> None:
    """They are not converted."""
    assert COMPLETE in events(call(NAMED, tag(Role.ARGUMENT, '{"a": ' + "9" * 5000 + "}")))


def test_a_call_without_a_name_is_content() -> None:
    """There is no call to tell of."""
    for made in (reader(), reader(policy=AS_WRITTEN)):
        assert events(call(tag(Role.ARGUMENT, "{}")), made) == [
            Malformed("", END, "the name of a tool in the call"),
            ContentText(TEXT[:END]),
        ]


def test_a_dead_call_that_was_given_stays_a_call() -> None:
    """Its text is nowhere else."""
    found = events(call(NAMED, tag(Role.ARGUMENT, "[1]")), reader(policy=AS_WRITTEN))

    assert not [event for event in found if isinstance(event, ContentText)]
    assert ToolCallFinished(0, CallStatus.INVALID) in found


def broken(notices: list[Notice], made: Machine, *, at_end: bool) -> list[Any]:
    """Return what is told when the reading breaks off after the notices, at the end of calls."""
    made.buffer, made.at, made.final = TEXT[:END] if at_end else TEXT, END, at_end
    made.span_ends, made.wanted = [END], "'x'"
    made.events.extend(notices)
    made.report()
    return made.events


@pytest.mark.parametrize(("at_end", "status"), [(True, CallStatus.TRUNCATED), (False, CallStatus.INVALID)])
def test_a_call_that_breaks_off(at_end: bool, status: CallStatus) -> None:
    """It ends there, whether it was told of or not."""
    made, written, met = reader(), reader(policy=AS_WRITTEN), "" if at_end else "!"

    assert broken([Opened(Role.CALL, 2), *NAMED], made, at_end=at_end) == [
        Malformed(met, END, "'x'", ToolCall(name="now", arguments="", id="", status=status)),
        ContentText(TEXT[2:END]),
    ]
    assert (made.call, made.span_roles) == (None, [Role.MARKER, Role.CONTENT])
    assert broken([Opened(Role.CALL, 2), *NAMED], written, at_end=at_end) == [
        STARTED,
        ToolCallFinished(0, status),
        Malformed(met, END, "'x'"),
    ]
    assert (written.call, written.span_roles) == (None, [Role.MARKER])
    unnamed = broken([Opened(Role.CALL, 2)], reader(), at_end=at_end)
    assert unnamed == [Malformed(met, END, "'x'"), ContentText(TEXT[2:END])]
    assert broken([], reader(), at_end=at_end) == [Malformed(met, END, "'x'")]


def test_a_strict_machine_raises() -> None:
    """For what breaks off, with what is around; for anything else that is reported, with its text."""
    with pytest.raises(MalformedOutput) as raised:
        broken([], reader(strict=True), at_end=False)
    assert (raised.value.position, raised.value.expected, raised.value.context) == (END, "'x'", TEXT)
    with pytest.raises(MalformedOutput, match="arguments that are one JSON object"):
        events(call(NAMED, tag(Role.ARGUMENT, "[1]")), reader(strict=True))
    with pytest.raises(MalformedOutput, match="one name in a call"):
        broken([Opened(Role.CALL, 0), *NAMED, Opened(Role.NAME, 4)], reader(strict=True), at_end=False)


@pytest.mark.parametrize(("request_", "known"), [(REQUEST, False), (Request(tools=None), True)])
def test_a_call_of_an_unknown_tool_says_so(request_: Request, known: bool) -> None:
    """Where tools are known."""
    found = events(call(tag(Role.NAME, "else")), reader(request_, policy=Policy(unknown_tools=UnknownTools.CALL)))

    assert found[0] == ToolCallStarted(0, "call00000", "else", known)


def test_a_call_that_was_not_asked_for_is_reported() -> None:
    """Where it begins."""
    named = replace(REQUEST, tool_choice=ToolChoice.NAMED, named_tool="then")
    found = events(call(NAMED, at=4), reader(named))

    assert found[:2] == [STARTED, Malformed("now", 4, "a call of 'then'")]


@pytest.mark.parametrize(("calls", "limited", "reported"), [(0, False, True), (1, False, False), (0, True, False)])
def test_silence_is_reported_where_a_call_was_asked_for(calls: int, limited: bool, reported: bool) -> None:
    """Unless the engine has cut the answer off."""
    made = reader(replace(REQUEST, tool_choice=ToolChoice.REQUIRED))
    made.calls, made.length_limited = calls, limited
    found: list[Event] = [Malformed("", len(TEXT), "a call of one of the tools")]

    assert made.finish() == (found if reported else [])


def test_a_copy_is_independent() -> None:
    """The call that is open is its own."""
    made = reader()
    made.call = TaggedCall(3)
    made.call.name, made.call.pieces, made.call.tags = "now", ["a"], {Role.NAME}
    other = made.copy()
    assert isinstance(other.call, TaggedCall)
    assert (other.call.start, other.call.name) == (3, "now")
    other.call.pieces.append("b")
    other.call.tags.add(Role.ID)

    assert (made.call.pieces, made.call.tags) == (["a"], {Role.NAME})
