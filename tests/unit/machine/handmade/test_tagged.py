"""Notes of what combinators read, one list at a time: the events that they become."""

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
    ReasoningText,
    ToolCallFinished,
    ToolCallStarted,
)
from unrender.machine.handmade.steps import Halt
from unrender.machine.handmade.tagged import TaggedCall, TaggedReader
from unrender.machine.ids import CallIds, numbered_id
from unrender.machine.policy import CallRelease, Policy, UnknownTools
from unrender.messages.wire import CallStatus, Request, Tool, ToolCall, ToolChoice
from unrender.nodes import Role
from unrender.parsing.engine import Broken, Closed, Note, Notice, Opened, Program

NOW = Tool(name="now", parameters={"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}})
REQUEST = Request(tools=(NOW, Tool(name="then")))
AS_WRITTEN = Policy(calls=CallRelease.WRITTEN)


def reader(request: Request = REQUEST, *, has_ids: bool = False, strict: bool = False, **more: Any) -> TaggedReader:
    return TaggedReader(Program((Halt(),), 0, 0, has_ids), request, strict=strict, ids=CallIds(numbered_id), **more)


def test_a_new_call_has_no_parts() -> None:
    """Nothing of it is known but where it begins."""
    new = TaggedCall(3)

    assert {name: getattr(new, name) for name in TaggedCall.__slots__} == {
        "begun": False,
        "id": "",
        "key": "",
        "name": "",
        "pieces": [],
        "said": [],
        "start": 3,
        "streamed": False,
        "tags": set(),
        "written": "",
    }


def test_work_is_counted() -> None:
    """By the engine's instructions."""
    made = reader()
    made.finish()

    assert (made.steps, made.program) == (1, (Halt(),))


def tag(role: Role, text: str, *, value: bool = False) -> list[Notice]:
    return [Opened(role, 0), Note(role, text, value), Closed(role, 9)]


def call(*inside: list[Notice], at: int = 0, text: str = "<all>") -> list[Notice]:
    notices = [notice for part in inside for notice in part]
    return [Opened(Role.CALL, at), *notices, Closed(Role.CALL, 20, text)]


def events(notices: list[Notice], made: TaggedReader | None = None) -> list[Any]:
    return list((made or reader())._taken(notices))


NAMED = tag(Role.NAME, "now")
STARTED = ToolCallStarted(0, "call00000", "now", True)
COMPLETE = ToolCallFinished(0, CallStatus.COMPLETE)


def test_text_outside_of_calls() -> None:
    """Reasoning is reasoning; all else is content."""
    assert events([*tag(Role.REASONING, "a"), *tag(Role.CONTENT, "b")]) == [ReasoningText("a"), ContentText("b")]


@pytest.mark.parametrize(
    ("inside", "arguments"),
    [
        ([], ["{}"]),
        (
            [tag(Role.ARGUMENT, "{", value=True)[:2], [Note(Role.ARGUMENT, "}", True), Closed(Role.ARGUMENT, 9)]],
            ["{", "}"],
        ),
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
    assert events([Closed(Role.CALL, 9, "")], made) == [COMPLETE]
    assert events(call(NAMED), reader(has_ids=True)) == [STARTED, ArgumentsText(0, "{}"), COMPLETE]
    early = reader(has_ids=True, policy=AS_WRITTEN)
    assert events([Opened(Role.CALL, 0), *tag(Role.ID, "a1"), *NAMED], early)[0] == ToolCallStarted(
        0, "a1", "now", True
    )


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
    parts = [tag(role, first), [Opened(role, 7), Note(role, "then"), Closed(role, 9)]]
    found = events(call(*([] if role is Role.NAME else [NAMED]), *parts), reader(policy=AS_WRITTEN))
    reported = [event for event in found if isinstance(event, Malformed)]

    assert reported[0] == Malformed("", 7, f"one {role.value} in a call")
    assert [event.name for event in found if isinstance(event, ToolCallStarted)] == ["now"]


@pytest.mark.parametrize("role", [Role.KEY, Role.VALUE])
def test_entries_may_come_again(role: Role) -> None:
    """That is what they are for."""
    entry = [*tag(Role.KEY, "a"), *tag(Role.VALUE, "1")]

    assert not [event for event in events(call(NAMED, entry, entry)) if isinstance(event, Malformed)]
    assert role in (Role.KEY, Role.VALUE)


@pytest.mark.parametrize("text", ["[1]", "{", "7", "", "[" * 100_000])
def test_arguments_that_are_not_an_object_end_the_call(text: str) -> None:
    """It is invalid, reported where it ends, and its text is content."""
    made = reader()
    found = events(call(NAMED, tag(Role.ARGUMENT, text), at=3), made)

    dead = ToolCall(name="now", arguments=text, id="", status=CallStatus.INVALID)
    assert found == [Malformed("", 20, "arguments that are one JSON object", dead), ContentText("<all>")]
    assert (made.dead, made.calls) == ([(3, 20)], 0)


def test_numbers_of_any_length_are_arguments() -> None:
    """They are not converted."""
    assert COMPLETE in events(call(NAMED, tag(Role.ARGUMENT, '{"a": ' + "9" * 5000 + "}")))


def test_a_call_without_a_name_is_content() -> None:
    """There is no call to tell of."""
    assert events(call(tag(Role.ARGUMENT, "{}"))) == [
        Malformed("", 20, "the name of a tool in the call"),
        ContentText("<all>"),
    ]


@pytest.mark.parametrize("named", [True, False])
def test_a_dead_call_that_was_given_stays_a_call(named: bool) -> None:
    """Its text is nowhere else; that of a call without a name is not a call's."""
    made = reader(policy=AS_WRITTEN)
    found = events(call(*([NAMED] if named else []), tag(Role.ARGUMENT, "[1]")), made)

    assert (ContentText("<all>") in found) is not named
    assert (ToolCallFinished(0, CallStatus.INVALID) in found) is named


def test_a_dead_call_without_text_is_no_content() -> None:
    """No event is empty."""
    assert ContentText("") not in events(call(NAMED, tag(Role.ARGUMENT, "[1]"), text=""))


def broken(*, at_end: bool, text: str = "<c>") -> Broken:
    return Broken("!", 5, "'x'", at_end, text, "around")


@pytest.mark.parametrize(("at_end", "status"), [(True, CallStatus.TRUNCATED), (False, CallStatus.INVALID)])
def test_a_call_that_breaks_off(at_end: bool, status: CallStatus) -> None:
    """It ends there, whether it was told of or not."""
    made, written = reader(), reader(policy=AS_WRITTEN)

    assert events([Opened(Role.CALL, 2), *NAMED, broken(at_end=at_end)], made) == [
        Malformed("!", 5, "'x'", ToolCall(name="now", arguments="", id="", status=status)),
        ContentText("<c>"),
    ]
    assert (made.call, made.dead) == (None, [(2, 5)])
    assert events([Opened(Role.CALL, 2), *NAMED, broken(at_end=at_end)], written) == [
        STARTED,
        ToolCallFinished(0, status),
        Malformed("!", 5, "'x'"),
    ]
    assert (written.call, written.dead) == (None, [])
    assert events([Opened(Role.CALL, 2), broken(at_end=at_end)]) == [Malformed("!", 5, "'x'"), ContentText("<c>")]
    assert events([broken(at_end=at_end, text="")]) == [Malformed("!", 5, "'x'")]


def test_a_strict_reader_raises() -> None:
    """For what breaks off, with what is around; for anything else that is reported, with its text."""
    with pytest.raises(MalformedOutput) as raised:
        events([broken(at_end=False)], reader(strict=True))
    assert (raised.value.position, raised.value.expected, raised.value.context) == (5, "'x'", "around")
    with pytest.raises(MalformedOutput, match="arguments that are one JSON object"):
        events(call(NAMED, tag(Role.ARGUMENT, "[1]")), reader(strict=True))
    twice = [Opened(Role.CALL, 0), *NAMED, Opened(Role.NAME, 4), broken(at_end=False)]
    with pytest.raises(MalformedOutput, match="one name in a call"):
        events(twice, reader(strict=True))


@pytest.mark.parametrize(
    ("request_", "policy", "names"),
    [
        (REQUEST, Policy(), {"now", "then"}),
        (REQUEST, Policy(unknown_tools=UnknownTools.CALL), None),
        (Request(tools=None), Policy(), None),
        (Request(), Policy(), set()),
        (replace(REQUEST, tool_choice=ToolChoice.NONE), Policy(unknown_tools=UnknownTools.CALL), set()),
    ],
)
def test_the_names_that_calls_may_have(request_: Request, policy: Policy, names: set[str] | None) -> None:
    """Those of the tools, or any; none where no call may be made."""
    found = reader(request_, policy=policy).engine.names

    assert (None if found is None else set(found)) == names


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
    found: list[Event] = [Malformed("", 0, "a call of one of the tools")]

    assert made.finish() == (found if reported else [])


SPANS = [(Role.MARKER, 3), (Role.NAME, 6), (Role.CONTENT, 9)]


@pytest.mark.parametrize(
    ("dead", "spans"),
    [
        ([], SPANS),
        ([(0, 3)], [(Role.CONTENT, 3), (Role.NAME, 6), (Role.CONTENT, 9)]),
        ([(1, 6)], [(Role.MARKER, 1), (Role.CONTENT, 9)]),
        ([(0, 9)], [(Role.CONTENT, 9)]),
        ([(1, 2)], [(Role.MARKER, 1), (Role.CONTENT, 2), (Role.MARKER, 3), (Role.NAME, 6), (Role.CONTENT, 9)]),
        ([(0, 1), (2, 4)], [(Role.CONTENT, 1), (Role.MARKER, 2), (Role.CONTENT, 4), (Role.NAME, 6), (Role.CONTENT, 9)]),
        ([(4, 5)], [(Role.MARKER, 3), (Role.NAME, 4), (Role.CONTENT, 5), (Role.NAME, 6), (Role.CONTENT, 9)]),
        ([(7, 12)], SPANS),
        ([(-2, 2)], [(Role.CONTENT, 2), (Role.MARKER, 3), (Role.NAME, 6), (Role.CONTENT, 9)]),
    ],
)
def test_the_text_of_dead_calls_is_content(dead: list[tuple[int, int]], spans: list[tuple[Role, int]]) -> None:
    """Neighbours of one role are one span."""
    made = reader()
    made.engine.span_roles = [role for role, _ in SPANS]
    made.engine.span_ends = [end for _, end in SPANS]
    made.dead = dead

    assert [(role, end) for role, end in made.final_spans() if end > 0] == spans
    assert made.final_end == 9


def test_a_copy_is_independent() -> None:
    """The call that is open, what was found and the ids are its own."""
    made = reader()
    made.call = TaggedCall(3)
    made.call.name, made.call.pieces, made.call.tags = "now", ["a"], {Role.NAME}
    other = made.copy()
    assert other.call is not None
    assert [getattr(other.call, name) for name in TaggedCall.__slots__] == [
        getattr(made.call, name) for name in TaggedCall.__slots__
    ]
    other.call.pieces.append("b")
    other.call.tags.add(Role.ID)
    other.events.append(ContentText("x"))
    other.dead.append((0, 1))
    other.ids.give(0, "now", "a")
    other.engine.at = 5

    assert (made.call.pieces, made.call.tags) == (["a"], {Role.NAME})
    assert (made.events, made.dead, made.ids.taken, made.engine.at) == ([], [], {}, 0)
