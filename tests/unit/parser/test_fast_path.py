"""When what comes next goes straight through, beside the machine, and what it is then told."""

from __future__ import annotations

from typing import Any

import pytest
from stepping import machine_at

from unrender.machine.events import ArgumentsText, ContentText, ReasoningText, ToolCallStarted
from unrender.machine.interpreter import Machine
from unrender.nodes import Role
from unrender.parser.fast_path import account, event_maker, flows, give_up_undecided, writer
from unrender.parser.message import MessageFold


def reading(role: Role, **fields: Any) -> Machine:
    """Return a machine that has read `abc` as `role`, all of it final."""
    machine = machine_at("abc", at=0, **fields)
    machine.frames.clear()
    machine.take(role, 3)
    return machine


@pytest.mark.parametrize(
    ("role", "fields", "through"),
    [
        (Role.REASONING, {}, True),
        (Role.CONTENT, {"answered": True}, True),
        (Role.CONTENT, {"answered": False}, False),
        (Role.CONTENT, {"answered": True, "carried": ["\n"]}, False),
        (Role.MARKER, {"answered": True}, False),
        (Role.ARGUMENT, {}, False),
        (Role.REASONING, {"begun": 3}, True),
        (Role.REASONING, {"begun": 4}, False),
    ],
)
def test_text_goes_through_where_more_of_it_is_all_that_can_come(
    role: Role, fields: dict[str, Any], through: bool
) -> None:
    """Final, of one kind, and the model's own."""
    assert flows(reading(role, **fields)) is through


def test_nothing_goes_through_while_it_may_be_taken_back() -> None:
    """Nor while the latest span ends elsewhere, or nothing was read."""
    tried, elsewhere = reading(Role.REASONING), reading(Role.REASONING)
    tried.attempt((3,), 4, holds=False, sealed=-1, reported=False)
    elsewhere.span_ends[-1] = 2
    nothing = machine_at("")
    nothing.frames.clear()

    assert [flows(machine) for machine in (tried, elsewhere, nothing)] == [False, False, False]


def test_arguments_go_through() -> None:
    """Those of a call that the caller was not told of wait with it, without an event."""
    machine, fold = reading(Role.ARGUMENT), MessageFold()
    call = machine.begin_call()
    assert flows(machine)
    assert event_maker(machine) is None
    writer(machine, fold)("x")
    assert call.arguments == ["x"]

    call.begun, machine.calls = True, 1
    fold.add([ToolCallStarted(0, "a", "now")])
    assert flows(machine)
    writer(machine, fold)("y")
    assert (call.arguments, fold.message.tool_calls[0].arguments) == (["x"], "y")


def test_events_of_what_goes_through() -> None:
    """Of the kind that was read last; arguments are those of the latest call."""
    arguments = reading(Role.ARGUMENT, calls=3)

    makers = [event_maker(machine) for machine in (reading(Role.REASONING), reading(Role.CONTENT), arguments)]

    assert [make and make("x") for make in makers] == [ReasoningText("x"), ContentText("x"), ArgumentsText(2, "x")]


def test_only_the_text_of_calls_is_kept() -> None:
    """They may die, and then it is content."""
    arguments, content = reading(Role.ARGUMENT), reading(Role.CONTENT)
    for machine in (arguments, content):
        account(machine, "x")

    assert (list(arguments.past), list(content.past)) == (["x"], [])


def test_undecided_text_is_handed_back() -> None:
    """It has to be fed again; what was read is forgotten."""
    machine = reading(Role.CONTENT)
    machine.buffer += "<"

    assert give_up_undecided(machine) == "<"
    assert (machine.buffer, machine.at, machine.base) == ("", 0, 3)


def test_the_machine_is_told_how_much_went_by() -> None:
    """Positions and spans are as if it had read it, in one step."""
    machine = reading(Role.CONTENT)
    machine.forget()
    machine.failed_at = 2
    account(machine, "x" * 10)

    assert (machine.base, machine.span_ends, machine.failed_at, machine.steps) == (13, [13], -8, 1)
