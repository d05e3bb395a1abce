"""What follows a call's arguments, one step at a time: closers, missing and doubled ones, the next call, the end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from stepping import FAILED, machine_at, step, taken

from unrender.machine.events import ContentText, Malformed, ToolCallFinished
from unrender.machine.interpreter import ABANDONED, Machine
from unrender.machine.policy import CallRelease, Policy
from unrender.machine.tail import Tail
from unrender.messages.wire import CallStatus
from unrender.nodes import Role
from unrender.values.finder import Finder

CALL, TRIED, HUB = 20, 21, 30


def tail(
    closers: tuple[str, ...] = ("</f>", "</c>"),
    section: tuple[str, ...] = ("</s>",),
    *,
    opener: str = "<c>",
    optional: tuple[str, ...] = (),
    excess: str = "",
    separator: str = "",
    after: str = "",
) -> Tail:
    """Return the tail of calls that `opener` begins; no opener where it is "-"."""
    openers = {} if opener == "-" else {opener: (CALL, TRIED)}
    marks = Finder([*closers, *section, *openers, separator, "```", *excess])
    return Tail(closers, section, openers, frozenset(optional), frozenset(excess), separator, after, marks, HUB)


def after_arguments(text: str, *, final: bool = False, **fields: Any) -> Machine:
    """Return a machine that has read all arguments of a committed call; `fields` are its own, or the call's."""
    machine = machine_at("~" + text, at=1, final=final)
    machine.commit()
    call = machine.begin_call()
    machine.named("now")
    call.begun, machine.calls, call.start, call.closed = True, 1, 0, True
    machine.answered = True
    for name, value in fields.items():
        setattr(call if hasattr(call, name) else machine, name, value)
    machine.span_roles, machine.span_ends = [Role.ARGUMENT], [1]
    return machine


def read(machine: Machine) -> str:
    """Return what was read after the arguments."""
    return taken(machine).removeprefix("argument '~'").removeprefix(", ")


def ended(machine: Machine) -> list[str]:
    """Return how the call ended, and what was missing."""
    found = []
    for event in machine.events:
        if isinstance(event, ToolCallFinished):
            found.append(str(event.status))
        elif isinstance(event, Malformed):
            found.append(f"wants {event.expected}" + (f" for {event.text!r}" if event.text else ""))
        elif isinstance(event, ContentText):
            found.append(f"says {event.text!r}")
    return found


@pytest.mark.parametrize(
    ("text", "closed", "outcome", "now_closed", "events", "taken"),
    [
        ("</f>", 0, "to 10", 1, [], "marker '</f>'"),
        ("</c>", 1, "to 10", 2, ["complete"], "marker '</c>'"),
        (" \n</c>", 1, "to 10", 2, ["complete"], "layout ' \\n', marker '</c>'"),
        ("</c>", 0, "to 10", 2, ["wants '</f>'", "complete"], "marker '</c>'"),
        ("</s>", 0, "to 10", 3, ["wants '</f>'", "complete"], "marker '</s>'"),
        ("</s>", 1, "to 10", 3, ["wants '</c>'", "complete"], "marker '</s>'"),
        ("</s>", 2, "to 10", 3, ["complete"], "marker '</s>'"),
        ("</f>", 1, "to 10", 1, [], "marker '</f>'"),
        ("</c>", 2, "to 10", 2, ["complete"], "marker '</c>'"),
        ("</f>", 2, "to 10", 2, ["complete"], "marker '</f>'"),
        ("<c>", 2, "to 21", 2, ["complete"], ""),
        (" <c>", 2, "to 21", 2, ["complete"], "layout ' '"),
        ("<c>", 0, "to 21", 0, ["wants '</f>'", "complete"], ""),
        ("<c>", 1, "to 21", 1, ["wants '</c>'", "complete"], ""),
        ("text", 3, "to 30", 3, ["complete"], ""),
        ("text", 2, "to 30", 2, ["wants '</s>'", "complete"], ""),
        ("text", 0, "to 30", 0, ["wants '</f>'", "complete"], ""),
        ("", 2, "waits", 2, [], ""),
        (" ", 2, "waits", 2, [], ""),
        ("<", 2, "waits", 2, [], ""),
        ("</", 3, "waits", 3, [], ""),
    ],
)
def test_closers_come_in_order(
    text: str, closed: int, outcome: str, now_closed: int, events: list[str], taken: str
) -> None:
    """A missing one is reported, a doubled one is taken; the last closer of a call completes it."""
    machine = after_arguments(text, closed=True)
    machine.closed = closed

    assert step(tail(), machine) == outcome
    assert (machine.closed, ended(machine), read(machine)) == (now_closed, events, taken)


@pytest.mark.parametrize(
    ("text", "closed", "events", "taken"),
    [
        ("", 3, ["complete"], ""),
        ("  ", 3, ["complete"], "layout '  '"),
        ("", 2, ["wants '</s>'", "complete"], ""),
        ("", 1, ["wants '</c>'", "complete"], ""),
        ("", 0, ["truncated", "wants '</f>'"], ""),
        ("</", 3, ["complete"], ""),
    ],
)
def test_the_end_of_the_output(text: str, closed: int, events: list[str], taken: str) -> None:
    """A call that no closer shows to be whole was cut off; what is missing is reported."""
    machine = after_arguments(text, final=True)
    machine.closed = closed

    assert step(tail(), machine) == "to 30"
    assert ended(machine) == events
    assert read(machine).replace("content '~'", "") == taken


@pytest.mark.parametrize(
    ("syntax", "fields", "complete"),
    [
        (tail(), {}, False),
        (tail(), {"ended": True}, True),
        (tail(), {"loose": True}, True),
        (tail(), {"loose": True, "length_limited": True}, False),
        (tail(), {"ended": True, "length_limited": True}, False),
        (tail(optional=("</f>",)), {}, True),
        (tail(optional=("</f>",)), {"length_limited": True}, True),
        (tail(optional=("</c>",)), {}, False),
        (tail(()), {}, True),
        (tail((), ()), {}, True),
    ],
)
def test_a_call_whose_closers_are_missing(syntax: Tail, fields: dict[str, Any], complete: bool) -> None:
    """It counts where something shows that its arguments are all there, and the engine did not cut it off."""
    machine = after_arguments("", final=True, **fields)
    step(syntax, machine)

    assert ("complete" in ended(machine)) is complete


def test_an_end_of_turn_among_the_closers_may_be_missing() -> None:
    """Engines strip it; in the middle of the output its absence is reported."""
    stripped, inside = after_arguments("", final=True), after_arguments("text")
    for machine in (stripped, inside):
        step(tail(optional=("</f>",)), machine)

    assert ended(stripped) == ["complete"]
    assert ended(inside) == ["wants '</f>'", "complete"]


def test_without_closers_a_call_is_complete_at_once() -> None:
    """Nothing else has to be read."""
    machine = after_arguments("")

    assert step(tail((), ("</s>",)), machine) == "waits"
    assert ended(machine) == ["complete"]
    assert machine.call is None


@pytest.mark.parametrize("whole", [True, False])
def test_a_call_that_must_be_whole(whole: bool) -> None:
    """It fails where a closer is missing, is final when it is closed, and counts at the end if its closing has begun."""
    outcomes = []
    for text, final, fields in (("text", False, {}), ("", True, {}), ("", True, {"ended": True})):
        machine = after_arguments(text, final=final, **fields)
        machine.attempt((10,), FAILED, holds=True, sealed=-1, reported=False)
        machine.frames[-1].whole = whole
        machine.pc = 10
        outcomes.append(step(tail(), machine))

    assert outcomes == (["fails: '</f>'", "fails: '</f>'", "to 30"] if whole else ["to -1", "to -1", "to -1"])


def test_a_whole_call_is_final_when_it_is_closed() -> None:
    """What held it is closed."""
    machine = after_arguments("</c>")
    machine.attempt((10,), FAILED, holds=True, sealed=-1, reported=False)
    machine.frames[-1].whole, machine.pc, machine.closed = True, 10, 1

    assert step(tail(), machine) == "to 10"
    assert machine.frames == []


def test_calls_that_are_held_lead_on_directly() -> None:
    """Where a way back is open already, the next call needs none of its own; at the end it leads to what holds them."""
    going_on, ending = after_arguments("<c>"), after_arguments("text")
    for machine in (going_on, ending):
        machine.attempt((10,), FAILED, holds=True, sealed=40, reported=False)
        machine.pc, machine.closed = 10, 3

    assert step(tail(), going_on) == f"to {CALL}"
    assert step(tail(), ending) == "to 40"


def test_white_space_between_calls_is_kept() -> None:
    """Without a section it is content if more content follows; in a section it is layout."""
    apart, together = after_arguments("\n<c>"), after_arguments("\n<c>")
    for machine, section in ((apart, ()), (together, ("</s>",))):
        machine.closed = 2
        assert step(tail(section=section), machine) == f"to {TRIED}"

    assert (apart.carried, together.carried) == (["\n"], [])


@pytest.mark.parametrize(
    ("text", "outcome", "taken"),
    [
        (", <c>", f"to {TRIED}", "layout ', '"),
        (" ,<c>", f"to {TRIED}", ""),
        (",", "waits", ""),
        (", ", "waits", ""),
        (", <", "waits", ""),
        (", text", f"to {HUB}", ""),
        (",</s>", f"to {HUB}", ""),
        (",,<c>", f"to {HUB}", ""),
        ("," + " " * 63 + "<c>", f"to {TRIED}", ""),
        ("," + " " * 64 + "<c>", f"to {HUB}", ""),
        ("<c>", f"to {TRIED}", ""),
    ],
)
def test_a_separator_counts_before_another_call(text: str, outcome: str, taken: str) -> None:
    """Before anything else it is text."""
    machine = after_arguments(text)
    machine.closed = 2

    assert step(tail(separator=","), machine) == outcome
    if outcome == f"to {TRIED}":
        assert machine.at == 1 + text.index("<c>")
        assert [role for role in machine.span_roles if role is Role.MARKER] == ([Role.MARKER] if "," in text else [])
    else:
        assert machine.at == 1


def test_roles_around_a_separator() -> None:
    """White space on both sides is layout."""
    machine = after_arguments(" , <c>")
    machine.closed = 2
    step(tail(separator=","), machine)

    assert read(machine) == "layout ' ', marker ',', layout ' '"


def test_a_separator_at_the_end_is_text() -> None:
    """Nothing more will come."""
    machine = after_arguments(",", final=True)
    machine.closed = 3

    assert step(tail(separator=","), machine) == f"to {HUB}"
    assert (machine.at, read(machine)) == (1, "")


@pytest.mark.parametrize(
    ("text", "final", "outcome", "events"),
    [
        ("}</f>", False, "to 10", ["wants a closer for '}'"]),
        ("} \n</f>", False, "to 10", ["wants a closer for '}'"]),
        ("}<c>", False, "to 10", ["wants a closer for '}'"]),
        ("}", False, "waits", []),
        ("} <", False, "waits", []),
        ("}text", False, f"to {HUB}", ["wants '</f>'", "complete"]),
        ("}}text", False, f"to {HUB}", ["wants '</f>'", "complete"]),
        ("}", True, f"to {HUB}", ["wants '</f>'", "complete"]),
    ],
)
def test_a_bracket_too_many(text: str, final: bool, outcome: str, events: list[str]) -> None:
    """Before a marker it is a slip of the model, and reported; elsewhere it is text."""
    machine = after_arguments(text, final=final)

    assert step(tail(excess="}]"), machine) == outcome
    assert ended(machine) == events
    assert read(machine) == ("marker '}'" if outcome == "to 10" else "")


@pytest.mark.parametrize(("closer", "outcome"), [("||", "to 10"), ("|", f"to {HUB}")])
def test_a_sign_is_not_enough_after_a_bracket_too_many(closer: str, outcome: str) -> None:
    """A marker has two characters at least."""
    assert step(tail((closer,), (), excess="}"), after_arguments("}" + closer + " ")) == outcome


@pytest.mark.parametrize(("size", "outcome"), [(63, "to 10"), (64, "to 10"), (65, f"to {HUB}")])
def test_white_space_after_a_bracket_too_many_is_bounded(size: int, outcome: str) -> None:
    """After more of it, no closer is expected."""
    assert step(tail(excess="}]"), after_arguments("}" + " " * size + "</f>")) == outcome


def test_a_fence_that_was_opened_is_closed() -> None:
    """It is a marker then, and shows that the arguments are all there; one that nobody opened is text."""
    opened, other = after_arguments(" ```", fenced=True), after_arguments("```")
    opened.buffer += "\n"
    other.buffer += "\n"

    assert step(tail(), opened) == "to 10"
    assert (read(opened), opened.fenced, opened.call is not None and opened.call.ended) == (
        "marker ' ```'",
        False,
        True,
    )
    assert step(tail(), other) == f"to {HUB}"


def test_a_fence_may_close_after_the_call() -> None:
    """The call is over by then."""
    machine = after_arguments("```\n", fenced=True)
    machine.call, machine.closed = None, 3

    assert step(tail(), machine) == "to 10"


@pytest.mark.parametrize(("closed", "outcome"), [(0, "to 10"), (1, f"to {TRIED}")])
def test_a_marker_that_opens_and_closes(closed: int, outcome: str) -> None:
    """Where a call ends with the marker that begins one, the first ends this call and the next begins another."""
    machine = after_arguments("||", closed=True)
    machine.buffer += " "
    machine.closed = closed

    assert step(tail(("||",), (), opener="||"), machine) == outcome


def test_a_fence_that_opens_calls_closes_this_one_first() -> None:
    """Where a fence is open, another one ends it."""
    opened, over = after_arguments("```\n", fenced=True), after_arguments("```\n")

    assert step(tail(("</f>",), (), opener="```"), opened) == "to 10"
    assert step(tail(("</f>",), (), opener="```"), over) == f"to {TRIED}"


def test_a_sign_that_is_not_awaited_is_text() -> None:
    """A closer of one character is not taken twice, as a longer one is."""
    doubled, longer = after_arguments("] "), after_arguments("]] ")
    doubled.closed = longer.closed = 1

    assert step(tail(("]",), ()), doubled) == f"to {HUB}"
    assert step(tail(("]]",), ()), longer) == "to 10"


@pytest.mark.parametrize(
    ("text", "final", "outcome"),
    [
        ("now(", False, f"to {TRIED}"),
        ("no", False, "waits"),
        ("no", True, f"to {HUB}"),
        ("then", False, f"to {HUB}"),
        (" \nnow(", False, f"to {TRIED}"),
    ],
)
def test_the_name_of_a_tool_may_begin_the_next_call(text: str, final: bool, outcome: str) -> None:
    """Where nothing else shows one."""
    machine = after_arguments(text, final=final)

    assert step(tail((), (), opener=""), machine) == outcome


def test_a_separator_comes_before_a_name() -> None:
    """Where calls are separated, a name alone is text; and so it is where no call begins with its name."""
    separated, marked = after_arguments("now("), after_arguments("now(")

    assert step(tail((), (), opener="", separator=";"), separated) == f"to {HUB}"
    assert step(tail((), (), opener="-"), marked) == f"to {HUB}"


@pytest.mark.parametrize(("size", "outcome"), [(63, f"to {TRIED}"), (64, f"to {HUB}")])
def test_white_space_after_a_call_is_bounded(size: int, outcome: str) -> None:
    """After so much of it, no marker is expected."""
    machine = after_arguments(" " * size + "<c>")
    machine.closed = 2

    assert step(tail(), machine) == outcome
    assert machine.at == (1 + size if outcome != f"to {HUB}" else 1)


@pytest.mark.parametrize(
    ("text", "layout"), [("\n\nHi", "layout '\\n'"), ("\nHi", "layout '\\n'"), ("Hi", ""), (" \nHi", "")]
)
def test_layout_after_the_last_call(text: str, layout: str) -> None:
    """As much of it as the format writes is layout, the rest is content."""
    machine = after_arguments(text)
    machine.closed = 3

    assert step(tail(after="\n"), machine) == f"to {HUB}"
    assert read(machine) == layout


def test_longer_layout_after_the_last_call() -> None:
    """Character by character."""
    machine = after_arguments("\n Hi")
    machine.closed = 3
    step(tail(after="\n  "), machine)

    assert read(machine) == "layout '\\n '"


@pytest.mark.parametrize("given", [True, False])
def test_closers_of_a_dead_call_are_content_like_it(given: bool) -> None:
    """Unless the call was given as it was written, and stays a call."""
    policy = Policy(calls=CallRelease.WRITTEN if given else CallRelease.COMPLETE)
    closers, fence = after_arguments(" </f>", policy=policy), after_arguments(" ```\n", policy=policy, fenced=True)
    for machine in (closers, fence):
        machine.call, machine.closed = None, ABANDONED
        step(tail(("</f>",), (), excess="}"), machine)

    assert read(closers) == ("layout ' ', marker '</f>'" if given else "content ' </f>'")
    assert read(fence) == ("marker ' ```'" if given else "content ' ```'")
    assert closers.closed == ABANDONED


def test_a_call_that_was_cut_off_says_so() -> None:
    """Its status is truncated, and the report says which closer was missing, at the end of the text."""
    machine = after_arguments("", final=True)
    step(tail(), machine)

    assert machine.events[:2] == [ToolCallFinished(0, CallStatus.TRUNCATED), Malformed("", 1, "'</f>'")]


def test_what_follows_the_arguments_is_looked_at_again_after_each_marker() -> None:
    """A whole ending, step by step."""
    machine = after_arguments("</f>\n</c></s> Hi")
    instruction = replace(tail(), after=" ")
    outcomes = [step(instruction, machine) for _ in range(4)]

    assert outcomes == ["to 10", "to 10", "to 10", f"to {HUB}"]
    assert read(machine) == "marker '</f>', layout '\\n', marker '</c></s>', layout ' '"
