"""What could not be read as a call, one step at a time: how much of it is text, and what has the shape of a call."""

from __future__ import annotations

from typing import Any

import pytest
from stepping import machine_at, step, taken

from unrender.limits import FREE_REREADS
from unrender.machine.dead_calls import BrokenRun, TextRun
from unrender.machine.events import ContentText, ReasoningText
from unrender.machine.interpreter import Machine
from unrender.machine.leftovers import BrokenText
from unrender.nodes import Role
from unrender.values.finder import Finder

HUB = 30
MARKERS = Finder(("<c>", "\n<c>", "</t>"))
NOTHING = Finder(())


def text_run(markers: Finder = MARKERS, role: Role = Role.CONTENT, closers: Finder = NOTHING) -> TextRun:
    return TextRun(role, HUB, markers, closers)


def failed(text: str, at_failure: int, *, at: int = 0, final: bool = False, **fields: Any) -> Machine:
    """Return a machine at a marker; what was tried there failed at `at_failure`."""
    machine = machine_at(text, at=at, final=final, **fields)
    machine.frames.clear()
    machine.failed_at = at_failure
    return machine


@pytest.mark.parametrize(
    ("text", "at_failure", "final", "outcome", "said"),
    [
        ("<c>nothing", 6, False, "to 30", "<c>not"),
        ("<c>nothing", 0, False, "to 30", "<"),
        ("<c>", 9, True, "to 30", "<c>"),
        ("<c>no", 5, False, "to 30", "<c>no"),
        ("<c>no <c>x", 9, False, "to 30", "<c>no "),
        ("<c>no\n<c>x", 9, False, "to 30", "<c>no"),
        ("<c><c>x", 6, False, "to 30", "<c>"),
        ("<c>no <c>x", 6, False, "to 30", "<c>no "),
        ("<c>no <c>x", 5, False, "to 30", "<c>no"),
        ("<c>no </t>x", 10, False, "to 30", "<c>no </t>"),
        ("<c>no <", 7, False, "waits", ""),
        ("<c>no <", 7, True, "to 30", "<c>no <"),
        ("<c>no <", 6, False, "to 30", "<c>no "),
    ],
)
def test_text_that_broke_off(text: str, at_failure: int, final: bool, outcome: str, said: str) -> None:
    """One character at least, up to where it failed, or to where the same marker begins again."""
    machine = failed(text, at_failure, final=final)

    assert step(text_run(), machine) == outcome
    assert taken(machine) == (f"content {said!r}" if said else "")
    assert machine.answered is bool(said)


def test_a_marker_that_outlasts_the_first_begins_in_it() -> None:
    """As in `>>>>`: the second of two that overlap may be the one that was meant."""
    arrows = Finder((">>>",))

    for text, said in ((">>>>now", ">"), (">>> now", ">>>"), (">>>now>>>x", ">>>now")):
        machine = failed(text, len(text) - 1 if "x" in text else 3)
        step(text_run(arrows), machine)
        assert taken(machine) == f"content {said!r}"


def test_another_marker_before_it_hides_no_beginning() -> None:
    """Each place is looked at."""
    machine = failed("<c>no b<c>x", 10)
    step(text_run(Finder(("<c>", "b"))), machine)

    assert taken(machine) == "content '<c>no b'"


def test_a_brace_may_be_the_marker() -> None:
    """Then it is the one that has opened."""
    run = BrokenRun(text_run(Finder(("{",))), Finder(("}", "{")), NOTHING)
    machine = failed("{x}Hi", 2)
    step(run, machine)

    assert machine.events == [BrokenText("{x}")]


def test_text_is_searched_for_another_beginning_a_bounded_number_of_times() -> None:
    """After that, all that was tried is text."""
    machine = failed("<c>no <c>x", 9, reread=FREE_REREADS + 1)
    step(text_run(), machine)

    assert taken(machine) == "content '<c>no <c>'"


def test_what_closes_reasoning_ends_its_text() -> None:
    """Also where a call was looked for; in content it does not."""
    reasoning = failed("<c>no </t>x", 10)
    step(text_run(role=Role.REASONING, closers=Finder(("</t>",))), reasoning)
    beyond = failed("<c>no </t>x", 5)
    step(text_run(role=Role.REASONING, closers=Finder(("</t>",))), beyond)

    assert reasoning.events == [ReasoningText("<c>no ")]
    assert beyond.events == [ReasoningText("<c>no")]
    assert not reasoning.answered


def test_a_closer_at_the_failure_is_left() -> None:
    """It is read as what it is, next."""
    machine = failed("<c></t>x", 3)
    step(text_run(role=Role.REASONING, closers=Finder(("</t>",))), machine)

    assert machine.events == [ReasoningText("<c>")]


RUN = BrokenRun(text_run(), Finder(("}", "<c>", "\n<c>")), Finder(("</c>", "</s>")))


@pytest.mark.parametrize(
    ("text", "at_failure", "final", "outcome", "broken"),
    [
        ("<c>{x}Hi", 4, False, "to 30", "<c>{x}"),
        ("<c>{x}</c>Hi", 4, False, "to 30", "<c>{x}</c>"),
        ("<c>{x} \n</c> </s> Hi", 4, False, "to 30", "<c>{x} \n</c> </s>"),
        ("<c>{x}", 4, False, "waits", ""),
        ("<c>{x} ", 4, False, "waits", ""),
        ("<c>{x}</", 4, False, "waits", ""),
        ("<c>{x}", 4, True, "to 30", "<c>{x}"),
        ("<c>{x}</c>", 4, True, "to 30", "<c>{x}</c>"),
        ("<c>{x}</", 4, True, "to 30", "<c>{x}"),
        ("<c>word{x}Hi", 3, False, "to 30", "<c>word{x}"),
        ("<c>word", 3, False, "waits", ""),
        ("<c>{wo", 4, False, "waits", ""),
        ("<c>{x", 4, True, "to 30", ""),
        ("<c>two words{x}Hi", 3, False, "to 30", ""),
        ("<c>{x <c>{y}", 4, False, "to 30", ""),
        ("<c>{" + "x" * 255 + "}Hi", 4, False, "to 30", "<c>{" + "x" * 255 + "}"),
        ("<c>{" + "x" * 256 + "}Hi", 4, False, "to 30", ""),
        ("<c>{" + "x" * 300, 4, False, "to 30", ""),
        ("<c>w{}Hi", 3, False, "to 30", "<c>w{}"),
        ("<c>w{" + "x" * 255 + "}Hi", 3, False, "to 30", "<c>w{" + "x" * 255 + "}"),
        ("<c>w{" + "x" * 256 + "}Hi", 3, False, "to 30", ""),
        ("<c>w{" + "x" * 255, 3, False, "waits", ""),
        ("<c>w{" + "x" * 256, 3, False, "to 30", ""),
        ("<c>" + "w" * 255, 3, False, "waits", ""),
        ("<c>" + "w" * 256, 3, False, "to 30", ""),
        ("<c>" + "w" * 256 + "{x}Hi", 3, False, "to 30", "<c>" + "w" * 256 + "{x}"),
        ("<c>{x}" + " " * 64 + "</c>Hi", 4, False, "to 30", "<c>{x}" + " " * 64 + "</c>"),
        ("<c>{x}" + " " * 65 + "</c>Hi", 4, False, "to 30", "<c>{x}"),
    ],
)
def test_the_shape_of_a_call(text: str, at_failure: int, final: bool, outcome: str, broken: str) -> None:
    """A marker, a word at most, braces, and closers: kept apart. Anything else is text."""
    machine = failed(text, at_failure, final=final)

    assert step(RUN, machine) == outcome
    assert [event.text for event in machine.events if isinstance(event, BrokenText)] == ([broken] if broken else [])
    assert bool([event for event in machine.events if isinstance(event, ContentText)]) is (
        outcome == "to 30" and not broken
    )
    if broken:
        assert taken(machine) == f"malformed {broken!r}"


def test_the_brace_that_closes_is_one_after_the_failure() -> None:
    """Braces that were read before belong to what is broken."""
    machine = failed('<c>{"a": {}, !}Hi', 13)
    step(RUN, machine)

    assert machine.events == [BrokenText('<c>{"a": {}, !}')]


def test_the_shape_of_a_call_begins_where_the_reading_is() -> None:
    """Not at the beginning of the buffer."""
    machine = failed("{}<c>{x}Hi", 6, at=2)
    step(RUN, machine)

    assert machine.events == [BrokenText("<c>{x}")]
