"""What instructions do to the machine: spans, ways back, calls that start, die and are reported."""

from __future__ import annotations

from typing import Any

import pytest
from stepping import FAILED, HERE, TOOLS, machine_at, taken

from unrender.errors import MalformedOutput
from unrender.limits import FREE_REREADS
from unrender.machine.events import (
    ArgumentsText,
    ContentText,
    Malformed,
    ToolCallFinished,
    ToolCallStarted,
)
from unrender.machine.ids import CallIds, numbered_id
from unrender.machine.instructions import Halt, Jump, Lit
from unrender.machine.interpreter import ABANDONED, Machine
from unrender.machine.ledger import Ledger
from unrender.machine.policy import CallRelease, Policy, UnknownTools
from unrender.messages.wire import CallStatus, Request, ToolCall, ToolChoice
from unrender.nodes import Role


def at_rest(text: str = "", **fields: Any) -> Machine:
    """Return a machine without a way back."""
    machine = machine_at(text, **fields)
    machine.frames.clear()
    machine.pc = HERE
    return machine


def in_call(text: str = "", **fields: Any) -> Machine:
    """Return a machine that has committed a call of `now`, which has not been told of."""
    machine = at_rest(text, **fields)
    call = machine.begin_call()
    machine.named("now")
    call.recover = 7
    return machine


def test_a_dead_call_lacks_no_closer() -> None:
    """Saved parsers say so by the same number."""
    assert ABANDONED == 1_073_741_824


def test_a_new_machine_has_read_nothing() -> None:
    """Nothing of it is another answer's."""
    ids = CallIds(numbered_id)
    new = Machine((Jump(0),), Request(), strict=True, ids=ids, roles={})
    own = {name: getattr(new, name) for name in (*Machine.__slots__, *Ledger.__slots__)}

    assert own == {
        "answered": False,
        "call": None,
        "calls": 0,
        "carried": [],
        "carried_spans": [],
        "closed": 0,
        "failed_at": 0,
        "fenced": False,
        "has_ids": False,
        "ids": ids,
        "length_limited": False,
        "loose": False,
        "mentioned": False,
        "name": "",
        "policy": Policy(),
        "request": Request(),
        "reread": 0,
        "roles": {},
        "serial": 0,
        "stack": None,
        "tag": None,
        "wanted": "",
    }
    assert new.strict


@pytest.mark.parametrize(("failed_at", "text"), [(0, "a"), (1, "a"), (3, "abc")])
def test_what_was_tried_in_vain_is_reported(failed_at: int, text: str) -> None:
    """As far as it went, one character at least."""
    machine = at_rest("abcd")
    machine.attempt((HERE,), FAILED, holds=False, sealed=-1, reported=True)
    machine.at = failed_at
    machine.fail("'x'")

    assert machine.events == [Malformed(text, 0, "'x'")]
    assert (machine.pc, machine.at) == (FAILED, 0)


def test_an_attempt_that_fails_goes_back() -> None:
    """To the next target, then to what is left; what was found and read since is gone, the call too."""
    machine = at_rest("a<b>c", answered=True)
    machine.text(Role.CONTENT, 1)
    machine.attempt((3, 4), 5, holds=False, sealed=-1, reported=True)
    machine.begin_call()
    machine.named("now")
    machine.take(Role.MARKER, 4)
    machine.start_call()
    machine.fail("'x'")
    assert (machine.pc, machine.at, machine.calls, machine.call, taken(machine)) == (4, 1, 0, None, "content 'a'")
    machine.take(Role.MARKER, 2)
    machine.fail("'y'")

    assert (machine.pc, machine.frames) == (5, [])
    assert machine.events == [ContentText("a"), Malformed("<b>", 1, "'x'")]
    assert machine.reread == 3 + 3


def test_the_furthest_failure_is_reported() -> None:
    """Of several at one place, each once; without progress, the character that is there."""
    machine = at_rest("ab")
    machine.attempt((3, 4), 5, holds=False, sealed=-1, reported=True)
    machine.fail("'x'")
    machine.fail("'y'")

    assert machine.events == [Malformed("a", 0, "'x' or 'y'")]


def test_an_unreported_attempt_says_nothing() -> None:
    """What it tried was not marked as a call."""
    machine = at_rest("ab")
    machine.attempt((3,), 5, holds=False, sealed=-1, reported=False)
    machine.fail("'x'")

    assert (machine.events, machine.pc) == ([], 5)


def test_an_attempt_begins_anew() -> None:
    """Neither the failures nor the loose beginning of the one before count."""
    machine = at_rest("abc", at=1, failed_at=3, loose=True)
    machine.attempt((3,), 5, holds=True, sealed=9, reported=True)

    assert (machine.failed_at, machine.loose, machine.pc) == (1, False, 3)
    frame = machine.frames[0]
    assert (frame.at, frame.holds, frame.sealed, frame.reported) == (1, True, 9, True)


@pytest.mark.parametrize(("reread", "rereads"), [(0, True), (FREE_REREADS + 5, True), (FREE_REREADS + 6, False)])
def test_text_is_read_again_a_bounded_number_of_times(reread: int, rereads: bool) -> None:
    """As many characters as the output has so far, and some for nothing."""
    machine = at_rest("abcde", at=3, begun=-2, reread=reread)

    assert machine.rereads is rereads
    assert FREE_REREADS == 8192


def held(*frames: tuple[bool, bool]) -> Machine:
    """Return a machine with so many ways back: whether each holds, and holds a whole call."""
    machine = at_rest("x")
    for holds, whole in frames:
        machine.attempt((3,), 5, holds=holds, sealed=-1, reported=False)
        machine.frames[-1].whole = whole
    return machine


def test_a_commitment_closes_ways_back_that_hold_nothing() -> None:
    """Up to the first that holds a whole call."""
    found = []
    for frames in (
        [],
        [(False, False)],
        [(True, False), (False, False), (False, False)],
        [(False, False), (True, True)],
    ):
        machine = held(*frames)
        machine.commit()
        found.append(len(machine.frames))

    assert found == [0, 0, 1, 2]


def test_a_whole_call_is_sealed_by_itself() -> None:
    """Where several calls are held, the end of one seals nothing."""
    found = []
    for frames in ([], [(True, True)], [(True, False)]):
        machine = held(*frames)
        machine.seal()
        found.append(len(machine.frames))

    assert found == [0, 0, 1]


def test_what_holds_a_run_holds_its_calls() -> None:
    """A way back that holds already does not become one for a single call."""
    alone, run = held((False, False)), held((True, False))
    alone.hold()
    run.hold()

    assert [(frame.holds, frame.whole) for frame in (*alone.frames, *run.frames)] == [(True, True), (True, False)]
    run.release()
    assert run.frames == []


def test_a_run_of_calls_leads_where_its_holder_says() -> None:
    """Else to where the caller says."""
    free, sealed = at_rest("x"), at_rest("x")
    sealed.attempt((3,), 5, holds=True, sealed=9, reported=False)
    free.leave_calls(4)
    sealed.leave_calls(4)

    assert (free.pc, sealed.pc) == (4, 9)


def test_a_strict_machine_raises() -> None:
    """The error says where, what was expected, and what is around."""
    machine = at_rest("x" * 50 + "!" + "y" * 50, at=50, begun=-1)
    machine.strict = True

    with pytest.raises(MalformedOutput) as raised:
        machine.malformed("!", "'?'")
    assert (raised.value.position, raised.value.expected) == (51, "'?'")
    assert raised.value.context == "x" * 40 + "!" + "y" * 39


@pytest.mark.parametrize(("open_ways", "position"), [(0, 3), (1, 9)])
def test_a_strict_machine_raises_for_the_first_deviation(open_ways: int, position: int) -> None:
    """One that is final comes before a later one; what may be taken back does not count."""
    machine = at_rest("x" * 20, at=9)
    if open_ways:
        machine.attempt((3,), 5, holds=False, sealed=-1, reported=False)
    machine.events.append(Malformed("now", 3, "a call of 'then'"))
    machine.strict = True

    with pytest.raises(MalformedOutput) as raised:
        machine.malformed("", "'?'")
    assert raised.value.position == position


def test_a_call_begins_where_the_first_of_its_text_is() -> None:
    """At its opener, where a way back is; else here."""
    tried, committed = machine_at("<c>x", at=3, begun=1), at_rest("<c>x", at=3, begun=1)
    tried.frames[-1].at = -1

    assert (tried.begin_call().start, committed.begin_call().start) == (-1, 2)


@pytest.mark.parametrize(
    ("name", "tools", "unknown", "accepted", "known"),
    [
        ("now", True, UnknownTools.CONTENT, True, True),
        ("then", True, UnknownTools.CONTENT, False, True),
        ("then", True, UnknownTools.CALL, True, False),
        ("then", False, UnknownTools.CONTENT, True, True),
        ("", False, UnknownTools.CONTENT, False, True),
        ("", True, UnknownTools.CALL, False, True),
    ],
)
def test_which_names_are_accepted(name: str, tools: bool, unknown: UnknownTools, accepted: bool, known: bool) -> None:
    """Those of the tools; where none are known, or the policy says so, any."""
    machine = at_rest("x", request=Request(tools=TOOLS if tools else None), policy=Policy(unknown_tools=unknown))
    call = machine.begin_call()

    assert machine.named(name) is accepted
    assert (call.name, call.known) == (name if accepted else "", known)
    assert call.tool == (TOOLS[0] if name == "now" else None)


def test_a_call_starts_once() -> None:
    """With its id; the arguments that waited come in one piece."""
    machine = in_call()
    machine.arguments("{")
    machine.arguments("")
    machine.arguments('"a": 1')
    assert machine.events == []
    machine.start_call()
    machine.start_call()
    machine.arguments("}")

    assert machine.events == [
        ToolCallStarted(0, "call00000", "now", True),
        ArgumentsText(0, '{"a": 1'),
        ArgumentsText(0, "}"),
    ]
    assert machine.calls == 1
    assert machine.call is not None
    assert machine.call.arguments == []


def test_a_call_without_arguments_so_far_starts_alone() -> None:
    """There is no empty event."""
    machine = in_call()
    machine.start_call()

    assert machine.events == [ToolCallStarted(0, "call00000", "now", True)]


def test_a_call_that_was_not_asked_for_is_reported() -> None:
    """Where it begins; it is delivered all the same."""
    machine = in_call("xxx", at=2, request=Request(tools=TOOLS, tool_choice=ToolChoice.NAMED, named_tool="nowhere"))
    machine.start_call()

    assert machine.events[1:] == [Malformed("now", 2, "a call of 'nowhere'")]


@pytest.mark.parametrize(
    ("text", "final", "failed_at", "status", "met"),
    [
        ("!x", False, 0, CallStatus.INVALID, "!"),
        ("!x", True, 0, CallStatus.INVALID, "!"),
        ("", True, 0, CallStatus.TRUNCATED, ""),
        ("ab", True, 2, CallStatus.TRUNCATED, "a"),
        ("ab", True, 1, CallStatus.INVALID, "a"),
        ("", False, 0, CallStatus.INVALID, ""),
    ],
)
@pytest.mark.parametrize("given", [True, False])
def test_a_committed_call_that_breaks(
    text: str, final: bool, failed_at: int, status: CallStatus, met: str, given: bool
) -> None:
    """It is reported. A call that was given ends as it is; the text of one that waited is content."""
    policy = Policy(calls=CallRelease.WRITTEN if given else CallRelease.COMPLETE)
    machine = in_call("<c>" + text, final=final, policy=policy)
    machine.take(Role.MARKER, 3)
    machine.failed_at = 3 + failed_at
    machine.fail("'x'")

    dead = ToolCall(name="now", arguments="", id="", status=status)
    assert machine.events == (
        [ToolCallStarted(0, "call00000", "now", True), ToolCallFinished(0, status), Malformed(met, 3, "'x'")]
        if given
        else [Malformed(met, 3, "'x'", dead), ContentText("<c>")]
    )
    assert (machine.pc, machine.closed, machine.call, machine.scanner) == (7, ABANDONED, None, None)
    assert taken(machine) == ("marker '<c>'" if given else "content '<c>'")
    assert (machine.answered, machine.dead(), machine.calls) == (not given, not given, int(given))


def test_only_a_call_that_died_is_dead() -> None:
    """One more closer than there are is not that."""
    machine = at_rest("x", closed=3)

    assert not machine.dead()


def test_white_space_before_a_dead_call_is_content_with_it() -> None:
    """It was carried from the call before."""
    machine = at_rest("A\n<c>!", answered=True, policy=Policy())
    machine.text(Role.CONTENT, 1)
    machine.carry(2)
    machine.begin_call().recover = 7
    machine.named("now")
    machine.take(Role.MARKER, 5)
    machine.fail("'x'")

    assert [event.text for event in machine.events if isinstance(event, ContentText)] == ["A", "\n", "<c>"]


def test_the_text_of_a_call_that_may_die_is_kept() -> None:
    """Until the caller was told of it; then what was read is needed no more."""
    found = []
    for begun in (False, True):
        machine = in_call("abcdef", at=2)
        assert machine.call is not None
        machine.call.begun = begun
        machine.at = 5
        found.append(machine.needed_from())
    tried = machine_at("abcdef", at=1)
    tried.at = 4
    nothing = at_rest("abcdef", at=4, begun=1)

    assert found == [2, 5]
    assert (tried.needed_from(), nothing.needed_from()) == (1, 3)


def test_text_that_was_read_is_forgotten() -> None:
    """Positions stay what they were."""
    machine = at_rest("abcdef", at=4, failed_at=5)
    machine.forget()

    assert (machine.buffer, machine.at, machine.base, machine.failed_at, machine.position) == ("ef", 0, 4, 1, 4)


def test_an_answer_without_the_call_that_was_asked_for_is_reported() -> None:
    """Unless the engine cut it off, or there was one."""
    found = []
    for calls, limited in ((0, False), (1, False), (0, True)):
        machine = Machine(
            (Halt(),),
            Request(tools=TOOLS, tool_choice=ToolChoice.REQUIRED),
            strict=False,
            ids=CallIds(numbered_id),
            roles={},
        )
        machine.calls, machine.length_limited = calls, limited
        found.append(machine.finish())

    assert found == [[Malformed("", 0, "a call of one of the tools")], [], []]


def test_a_strict_machine_refuses_silence() -> None:
    """At the end."""
    request = Request(tools=TOOLS, tool_choice=ToolChoice.REQUIRED)
    machine = Machine((Halt(),), request, strict=True, ids=CallIds(numbered_id), roles={})

    with pytest.raises(MalformedOutput, match="a call of one of the tools"):
        machine.finish()


def test_a_copy_is_independent() -> None:
    """Its ways back, its call and its ids are its own."""
    machine = machine_at("abc", carried=["x"])
    machine.begin_call()
    other = machine.copy()
    other.frames[-1].holds = True
    assert other.call is not None
    other.call.name = "now"
    other.ids.give(0, "now", "id")
    other.carried.append("y")
    other.take(Role.MARKER, 2)

    assert machine.call is not None
    assert (machine.frames[-1].holds, machine.call.name, machine.ids.taken) == (False, "", {})
    assert (machine.carried, machine.at, machine.span_ends) == (["x"], 0, [])
    assert (other.frames[-1].otherwise, other.frames[-1].targets) == (FAILED, ())


def test_a_machine_runs_until_it_waits() -> None:
    """Each instruction that was executed counts."""
    machine = Machine(
        (Lit("a"), Jump(2), Lit("b"), Halt()), Request(), strict=False, ids=CallIds(numbered_id), roles={}
    )
    machine.feed("a")
    assert (machine.pc, machine.steps, machine.halted) == (2, 3, False)
    machine.feed("b")

    assert (machine.pc, machine.steps, machine.halted) == (3, 5, True)
    assert machine.feed("c") == []
    assert machine.steps == 5
