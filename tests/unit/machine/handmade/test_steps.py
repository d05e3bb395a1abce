"""The instructions of grammars made by hand, one step at a time: what each takes, where it goes on, when it waits and when it fails."""

from __future__ import annotations

import re

import pytest
from stepping import FAILED, HERE, REST, grammar_machine_at, step

from unrender.limits import MAX_STACK
from unrender.machine.events import Malformed
from unrender.machine.frames import Entry
from unrender.machine.handmade.steps import (
    UNLIMITED,
    Again,
    Begin,
    BreakOff,
    Chosen,
    Count,
    Counted,
    Ended,
    Enter,
    Final,
    Guarded,
    Never,
    Refused,
    Return,
    Round,
    Seen,
    Span,
    Tagged,
    Try,
    Untagged,
    UpTo,
    Value,
)
from unrender.machine.handmade.tagged import Closed, Note, Opened
from unrender.machine.interpreter import Instruction, Machine
from unrender.nodes import Role
from unrender.values.scanner import LiteralStyle

LETTERS = re.compile("[a-z]*")
A, B = re.compile("a"), re.compile("b")
MARKERS = ("<a>", "<b")


def read(machine: Machine, begin: int) -> str:
    """Return the text that was taken from `begin` on, with its roles."""
    roles = "/".join(role.value for role in machine.span_roles)
    text = machine.buffer[begin : machine.at]
    return f"{roles} {text!r}" if text else ""


@pytest.mark.parametrize(
    ("instruction", "text", "final", "outcome", "taken"),
    [
        (UpTo.first_of(MARKERS), "xy<a>", False, "on", "marker 'xy'"),
        (UpTo.first_of(MARKERS), "<a>", False, "on", ""),
        (UpTo.first_of(MARKERS), "xy<", False, "waits", "marker 'xy'"),
        (UpTo.first_of(MARKERS), "xy", False, "waits", "marker 'xy'"),
        (UpTo.first_of(MARKERS), "xy<", True, "on", "marker 'xy<'"),
        (UpTo.first_of(()), "xy", True, "on", "marker 'xy'"),
        (Ended(), "", False, "waits", ""),
        (Ended(), "", True, "on", ""),
        (Ended(), "x", False, "fails: the end of the output", ""),
        (Never("what"), "x", False, "fails: what", ""),
        (Value(LiteralStyle(), "a value"), '"a"x', False, "on", "marker '\"a\"'"),
        (Value(LiteralStyle(), "a value"), '"a', False, "waits", "marker '\"a'"),
        (Value(LiteralStyle(), "a value"), '"a', True, "fails: a value", ""),
        (Value(LiteralStyle(), "a value"), "!", False, "fails: a value", ""),
        (Value(LiteralStyle(), "a value"), "", False, "waits", ""),
        (Value(LiteralStyle(), "a value"), "", True, "fails: a value", ""),
        (Value(LiteralStyle(), "a string", "'"), "'a'", False, "on", "marker \"'a'\""),
        (Value(LiteralStyle(), "a string", "'"), '"a"', False, "fails: a string", ""),
        (Value(LiteralStyle(), "a string", "'"), "", False, "waits", ""),
        (Value(LiteralStyle(), "a string", "'"), "", True, "fails: a string", ""),
    ],
)
@pytest.mark.parametrize("before", ["", "~~"])
def test_a_step(before: str, instruction: Instruction, text: str, final: bool, outcome: str, taken: str) -> None:
    """What is here is taken, waited for while it may still come, and refused when something else is here."""
    machine = grammar_machine_at(before + text, at=len(before), final=final)
    machine.frames.clear()
    machine.open((FAILED,))

    assert step(instruction, machine) == outcome
    assert read(machine, len(before)) == taken


def test_a_value_is_read_on_after_a_suspension() -> None:
    """Its scanner waits with it, and is gone when it is done or has failed."""
    machine = grammar_machine_at("[1, ")
    instruction = Value(LiteralStyle(), "a value")
    assert step(instruction, machine) == "waits"
    machine.buffer += "2]"
    assert step(instruction, machine) == "on"
    assert machine.scanner is None
    broken = grammar_machine_at("[1, !")
    step(instruction, broken)

    assert broken.scanner is None


@pytest.mark.parametrize(
    ("minimum", "maximum", "counted", "text", "final", "outcome", "left"),
    [
        (0, UNLIMITED, 0, "ab1", False, "on", "1"),
        (0, UNLIMITED, 0, "1", False, "on", "1"),
        (0, UNLIMITED, 0, "ab", False, "waits", ""),
        (0, UNLIMITED, 0, "ab", True, "on", ""),
        (0, 2, 0, "abc", False, "on", "c"),
        (0, 2, 0, "ab", False, "on", ""),
        (0, 2, 1, "abc", False, "on", "bc"),
        (0, 2, 0, "a", False, "waits", ""),
        (3, UNLIMITED, 0, "ab1", False, "fails: letters", "ab1"),
        (2, UNLIMITED, 0, "ab1", False, "on", "1"),
        (3, UNLIMITED, 1, "ab1", False, "on", "1"),
        (3, UNLIMITED, 0, "ab", True, "fails: letters", "ab"),
        (3, UNLIMITED, 0, "ab", False, "waits", ""),
    ],
)
def test_a_span_counts_its_characters(
    minimum: int, maximum: int, counted: int, text: str, final: bool, outcome: str, left: str
) -> None:
    """Over chunks; it takes as many as there are, up to its maximum, and fails below its minimum."""
    machine = grammar_machine_at("~" + text, at=1, final=final)
    machine.push(count=counted)
    depth = machine.stack.depth if machine.stack else 0

    assert step(Span(LETTERS, minimum, maximum, "letters"), machine) == outcome
    assert machine.buffer[machine.at :] == left
    if outcome == "waits":
        assert machine.stack is not None
        assert (machine.stack.count, machine.stack.depth) == (counted + len(text), depth)
    else:
        assert machine.stack is None


def test_a_count_begins_at_nothing() -> None:
    """It is on the stack until the end of the loop."""
    machine = grammar_machine_at("x")

    assert step(Count(), machine) == "on"
    assert machine.stack == Entry(None, 1)
    machine.pc = HERE
    assert step(Counted(), machine) == "on"
    assert machine.stack is None


@pytest.mark.parametrize(
    ("text", "final", "outcome", "left"),
    [
        ("a", False, "to 1", ((2,),)),
        ("b", False, "to 2", ()),
        ("x", False, "to 2", ()),
        ("", False, "waits", ()),
        ("", True, "to 2", ()),
    ],
)
def test_a_choice_tries_what_the_next_character_allows(
    text: str, final: bool, outcome: str, left: tuple[tuple[int, ...], ...]
) -> None:
    """Where only one option is left, there is no way back."""
    machine = grammar_machine_at("~" + text, at=1, final=final)

    assert step(Try(((A, 1), (None, 2)), "a or b", guarded=True), machine) == outcome
    assert tuple((*way.targets, way.otherwise) for way in machine.frames[1:]) == left
    if outcome != "waits":
        assert machine.stack is not None
        assert machine.stack.way == (machine.frames[-1].serial if left else 0)


@pytest.mark.parametrize(
    ("guarded", "text", "outcome"),
    [(True, "c", "fails: a or b"), (True, "b", "to 2"), (False, "", "to 1")],
)
def test_a_choice_of_which_nothing_is_possible_fails(guarded: bool, text: str, outcome: str) -> None:
    """One that does not depend on the next character does not wait for it."""
    options = ((A, 1), (B, 2)) if guarded else ((None, 1), (None, 2))

    assert step(Try(options, "a or b", guarded), grammar_machine_at(text)) == outcome


def test_an_option_that_was_taken_closes_the_others() -> None:
    """Ways back that were opened inside it are closed with them."""
    machine = grammar_machine_at("a")
    step(Try(((None, 1), (None, 2)), "", guarded=False), machine)
    machine.open((5,))

    assert step(Chosen(20), machine) == "to 20"
    assert (len(machine.frames), machine.stack) == (1, None)


@pytest.mark.parametrize("instruction", [Enter(20), Try(((None, 20),), "less", guarded=False)])
def test_the_stack_is_bounded(instruction: Instruction) -> None:
    """Rules and choices that are open at once."""
    shallow, deep = (
        grammar_machine_at("x", stack=Entry(None, MAX_STACK - 1)),
        grammar_machine_at("x", stack=Entry(None, MAX_STACK)),
    )

    assert step(instruction, shallow) == "to 20"
    assert step(instruction, deep).startswith("fails: ")
    assert MAX_STACK == 100_000


def test_a_rule_comes_back() -> None:
    """To the instruction after its call."""
    machine = grammar_machine_at("x")
    assert step(Enter(20), machine) == "to 20"

    assert step(Return(), machine) == "on"
    assert machine.stack is None


LOOP = Round(1, 3, (A, B), (20, 21), 30)


@pytest.mark.parametrize(
    ("count", "text", "final", "outcome", "ways"),
    [
        (0, "a", False, "to 20", 0),
        (0, "x", False, "to 20", 0),
        (0, "", False, "to 20", 0),
        (1, "b", False, "to 21", 1),
        (1, "a", False, "to 30", 0),
        (1, "", False, "waits", 0),
        (1, "", True, "to 30", 0),
        (2, "b", False, "to 21", 1),
        (3, "b", False, "to 30", 0),
    ],
)
def test_a_loop_makes_another_round(count: int, text: str, final: bool, outcome: str, ways: int) -> None:
    """Below its minimum always, up to its maximum where the next character allows it; with a way out."""
    machine = grammar_machine_at("~" + text, at=1, final=final)
    machine.push(count=count)

    assert step(LOOP, machine) == outcome
    assert len(machine.frames) == 1 + ways
    assert machine.stack is not None
    assert (machine.stack.count, machine.stack.depth) == (count, 1)
    if outcome in ("to 20", "to 21"):
        assert machine.stack.start == 1
        assert machine.stack.way == (machine.frames[-1].serial if ways else 0)
    if ways:
        assert machine.frames[-1].otherwise == 30


def test_a_loop_without_a_guard_tries_always() -> None:
    """Its round decides."""
    machine = grammar_machine_at("")
    machine.push(count=0)

    assert step(Round(0, UNLIMITED, (None, B), (20, 21), 30), machine) == "to 20"


def test_the_last_optional_round_has_a_way_out_as_it_was_before() -> None:
    """The way back of a loop finds the loop's entry as it was before the round."""
    machine = grammar_machine_at("b")
    machine.push(count=1)
    step(LOOP, machine)
    machine.fail("x")

    assert machine.pc == 30
    assert machine.stack == Entry(None, 1, count=1)


@pytest.mark.parametrize(("start", "outcome"), [(0, "to 40"), (1, "to 41")])
def test_a_round_that_took_nothing_is_the_last(start: int, outcome: str) -> None:
    """Else it would go on for ever."""
    machine = grammar_machine_at("ab", at=1)
    serial = machine.open((30,))
    machine.push(count=4, start=start, way=serial)

    assert step(Again(40, 41), machine) == outcome
    assert (len(machine.frames), machine.stack) == (1, Entry(None, 1, count=5))


def test_tags() -> None:
    """What is read inside has the tag's role, and what is read of a call is noted; the name begins anew."""
    machine = grammar_machine_at("~now:", at=1, name="old", names=("now",))
    assert step(Tagged(Role.CALL), machine) == "on"
    machine.pc = HERE
    assert step(Tagged(Role.NAME), machine) == "on"
    machine.take(Role.MARKER, 4)
    machine.pc = HERE
    assert step(Untagged(Role.NAME), machine) == "on"
    machine.take(Role.MARKER, 5)
    machine.pc = HERE
    assert step(Untagged(Role.CALL), machine) == "on"

    assert machine.events == [
        Opened(Role.CALL, 1),
        Opened(Role.NAME, 1),
        Note("now"),
        Closed(Role.NAME, 4),
        Closed(Role.CALL, 5),
    ]
    assert (machine.tag, machine.stack, machine.name) == (None, None, "now")
    assert machine.span_roles == [Role.NAME, Role.MARKER]


def test_only_names_are_looked_up() -> None:
    """Another tag may end whatever has been read of a name."""
    machine = grammar_machine_at("x", names=("now",), name="no")
    step(Tagged(Role.CONTENT), machine)
    machine.take(Role.MARKER, 1)
    machine.pc = HERE

    assert step(Untagged(Role.CONTENT), machine) == "on"


@pytest.mark.parametrize(
    ("name", "names", "outcome"),
    [
        ("now", ("now",), "on"),
        ("then", ("now",), "fails: the name of a tool"),
        ("then", None, "on"),
        ("", None, "fails: the name of a tool"),
        ("x" * 1200, None, "on"),
        ("x" * 1201, None, "fails: the name of a tool"),
        ("now", (), "fails: the name of a tool"),
    ],
)
def test_a_name_is_one_that_is_offered(name: str, names: tuple[str, ...] | None, outcome: str) -> None:
    """Where none are known, any of bounded length."""
    machine = grammar_machine_at(name, names=names)
    step(Tagged(Role.NAME), machine)
    machine.take(Role.MARKER, len(name))
    machine.pc = HERE

    assert step(Untagged(Role.NAME), machine) == outcome


def test_the_reading_breaks_off_where_there_is_text_or_an_end() -> None:
    """What was met is known then."""
    waiting, met, ended = (
        grammar_machine_at(text, final=final, wanted="'x'", frames=[])
        for text, final in (("", False), ("ab", False), ("", True))
    )

    assert [step(BreakOff(), machine) for machine in (waiting, met, ended)] == ["waits", "on", "on"]
    assert met.events == [Malformed("a", 0, "'x'")]
    assert ended.events == [Malformed("", 0, "'x'")]


def test_the_beginning_says_where_the_rest_is_read() -> None:
    """And whether calls have ids."""
    machine = grammar_machine_at("x", rest=0)

    assert step(Begin(20, 30, True), machine) == "to 20"
    assert (machine.rest, machine.has_ids) == (30, True)


# What is tried as a whole.


def guarded(text: str) -> Machine:
    """Return a machine in a lookahead or an atom that has read one character, with a way back of its own."""
    machine = grammar_machine_at(text)
    assert step(Guarded(30), machine) == "on"
    assert (machine.frames[-1].holds, machine.frames[-1].otherwise) == (True, 30)
    machine.take(Role.MARKER, 1)
    machine.open((5,))
    machine.pc = HERE
    return machine


def test_an_atom_is_final_as_a_whole() -> None:
    """What it read stays; the ways back inside it are closed."""
    machine = guarded("ab")

    assert step(Chosen(20), machine) == "to 20"
    assert (machine.at, len(machine.frames), machine.stack) == (1, 1, None)


def test_a_lookahead_goes_back() -> None:
    """One that was seen goes on where it began; one that must not be seen fails there."""
    seen, refused = guarded("ab"), guarded("ab")

    assert step(Seen(20), seen) == "to 20"
    assert (seen.at, len(seen.frames), seen.stack, seen.base + seen.failed_at) == (0, 1, None, 1)
    assert step(Refused("anything but 'a'"), refused).startswith("fails: ")
    assert refused.at == 0


def test_a_lookahead_that_gives_back_too_much_ends_the_reading() -> None:
    """It goes on nowhere."""
    for instruction in (Seen(20), Refused("x")):
        machine = guarded("ab")
        machine.reread = 1 << 40
        instruction.step(machine)
        assert (machine.pc, machine.frames) == (REST, [])
        assert machine.wanted == "text that the grammar reads in fewer attempts"


def test_a_cut_closes_ways_back_up_to_an_atom() -> None:
    """What is outside the atom stays open."""
    machine = guarded("ab")
    machine.open((6,))

    assert step(Final(), machine) == "on"
    assert [way.holds for way in machine.frames] == [False, True]
    free = grammar_machine_at("ab")
    step(Final(), free)
    assert free.frames == []


def test_text_that_streams_takes_the_fast_path() -> None:
    """Where it is content or reasoning, and some of it was read already."""
    content, marker = grammar_machine_at("ab", tag=Role.CONTENT), grammar_machine_at("ab")
    instruction = UpTo.first_of(MARKERS)

    assert [step(instruction, machine) for machine in (content, marker)] == ["waits", "waits"]
    assert (content.flow, marker.flow) == (instruction.flow, None)
