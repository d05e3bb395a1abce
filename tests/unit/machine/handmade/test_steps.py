"""The engine's instructions, one step at a time: what each takes, where it goes on, when it waits and when it fails."""

from __future__ import annotations

import re

import pytest
from engine_stepping import FAILED, HERE, engine_at, step

from unrender.machine.handmade.steps import (
    UNLIMITED,
    Again,
    AtMost,
    Blank,
    BreakOff,
    Chosen,
    Count,
    Counted,
    Ended,
    Enter,
    Exactly,
    Halt,
    Jump,
    Never,
    Return,
    Round,
    Span,
    Tagged,
    Try,
    Untagged,
    UpTo,
    Value,
)
from unrender.nodes import Role
from unrender.parsing.engine import MAX_DEPTH, Broken, Closed, Engine, Entry, Note, Opened, Step
from unrender.values.finder import Finder
from unrender.values.scanner import LiteralStyle

LETTERS = re.compile("[a-z]*")
A, B = re.compile("a"), re.compile("b")
MARKERS = Finder(("<a>", "<b"))


def read(engine: Engine, begin: int) -> str:
    """Return the text that was taken from `begin` on, with its roles."""
    roles = "/".join(role.value for role in engine.span_roles)
    text = engine.buffer[begin : engine.at]
    return f"{roles} {text!r}" if text else ""


@pytest.mark.parametrize(
    ("instruction", "text", "final", "outcome", "taken"),
    [
        (Exactly("ab"), "ab", False, "on", "marker 'ab'"),
        (Exactly("ab"), "abc", False, "on", "marker 'ab'"),
        (Exactly("ab"), "a", False, "waits", ""),
        (Exactly("ab"), "", False, "waits", ""),
        (Exactly("ab"), "a", True, "fails: 'ab'", ""),
        (Exactly("ab"), "ac", False, "fails: 'ab'", ""),
        (Exactly("ab"), "b", False, "fails: 'ab'", ""),
        (Exactly(""), "", False, "on", ""),
        (Blank(), " \nx", False, "on", "layout ' \\n'"),
        (Blank(), "x", False, "on", ""),
        (Blank(), "  ", False, "waits", "layout '  '"),
        (Blank(), "  ", True, "on", "layout '  '"),
        (Blank(), "", False, "waits", ""),
        (AtMost("\n "), "\n x", False, "on", "layout '\\n '"),
        (AtMost("\n "), "\nx", False, "on", "layout '\\n'"),
        (AtMost("\n "), "\n  ", False, "on", "layout '\\n '"),
        (AtMost("\n "), "\n", False, "waits", ""),
        (AtMost("\n "), "\n", True, "on", "layout '\\n'"),
        (AtMost("\n "), "\n ", False, "on", "layout '\\n '"),
        (UpTo(MARKERS), "xy<a>", False, "on", "marker 'xy'"),
        (UpTo(MARKERS), "<a>", False, "on", ""),
        (UpTo(MARKERS), "xy<", False, "waits", "marker 'xy'"),
        (UpTo(MARKERS), "xy", False, "waits", "marker 'xy'"),
        (UpTo(MARKERS), "xy<", True, "on", "marker 'xy<'"),
        (UpTo(Finder(())), "xy", True, "on", "marker 'xy'"),
        (Ended(), "", False, "waits", ""),
        (Ended(), "", True, "on", ""),
        (Ended(), "x", False, "fails: the end of the output", ""),
        (Never("what"), "x", False, "fails: what", ""),
        (Jump(20), "x", False, "to 20", ""),
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
def test_a_step(before: str, instruction: Step, text: str, final: bool, outcome: str, taken: str) -> None:
    """What is here is taken, waited for while it may still come, and refused when something else is here."""
    engine = engine_at(before + text, at=len(before), final=final)
    engine.frames.clear()
    engine.open((FAILED,))

    assert step(instruction, engine) == outcome
    assert read(engine, len(before)) == taken


def test_a_value_is_read_on_after_a_suspension() -> None:
    """Its scanner waits with it, and is gone when it is done or has failed."""
    engine = engine_at("[1, ")
    instruction = Value(LiteralStyle(), "a value")
    assert step(instruction, engine) == "waits"
    engine.buffer += "2]"
    assert step(instruction, engine) == "on"
    assert engine.scanner is None
    broken = engine_at("[1, !")
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
    engine = engine_at("~" + text, at=1, final=final)
    engine.push(count=counted)
    depth = engine.stack.depth if engine.stack else 0

    assert step(Span(LETTERS, minimum, maximum, "letters"), engine) == outcome
    assert engine.buffer[engine.at :] == left
    if outcome == "waits":
        assert engine.stack is not None
        assert (engine.stack.count, engine.stack.depth) == (counted + len(text), depth)
    else:
        assert engine.stack is None


def test_a_count_begins_at_nothing() -> None:
    """It is on the stack until the end of the loop."""
    engine = engine_at("x")

    assert step(Count(), engine) == "on"
    assert engine.stack == Entry(None, 1)
    engine.pc = HERE
    assert step(Counted(), engine) == "on"
    assert engine.stack is None


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
    engine = engine_at("~" + text, at=1, final=final)

    assert step(Try(((A, 1), (None, 2)), "a or b", guarded=True), engine) == outcome
    assert tuple(way.targets for way in engine.frames[1:]) == left
    if outcome != "waits":
        assert engine.stack is not None
        assert engine.stack.way == (engine.frames[-1].serial if left else 0)


@pytest.mark.parametrize(
    ("guarded", "text", "outcome"),
    [(True, "c", "fails: a or b"), (True, "b", "to 2"), (False, "", "to 1")],
)
def test_a_choice_of_which_nothing_is_possible_fails(guarded: bool, text: str, outcome: str) -> None:
    """One that does not depend on the next character does not wait for it."""
    options = ((A, 1), (B, 2)) if guarded else ((None, 1), (None, 2))

    assert step(Try(options, "a or b", guarded), engine_at(text)) == outcome


def test_an_option_that_was_taken_closes_the_others() -> None:
    """Ways back that were opened inside it are closed with them."""
    engine = engine_at("a")
    step(Try(((None, 1), (None, 2)), "", guarded=False), engine)
    engine.open((5,))

    assert step(Chosen(20), engine) == "to 20"
    assert (len(engine.frames), engine.stack) == (1, None)


@pytest.mark.parametrize("instruction", [Enter(20), Try(((None, 20),), "less", guarded=False)])
def test_the_stack_is_bounded(instruction: Step) -> None:
    """Rules and choices that are open at once."""
    shallow, deep = engine_at("x", stack=Entry(None, MAX_DEPTH - 1)), engine_at("x", stack=Entry(None, MAX_DEPTH))

    assert step(instruction, shallow) == "to 20"
    assert step(instruction, deep).startswith("fails: ")
    assert MAX_DEPTH == 100_000


def test_a_rule_comes_back() -> None:
    """To the instruction after its call."""
    engine = engine_at("x")
    assert step(Enter(20), engine) == "to 20"

    assert step(Return(), engine) == "on"
    assert engine.stack is None


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
    engine = engine_at("~" + text, at=1, final=final)
    engine.push(count=count)

    assert step(LOOP, engine) == outcome
    assert len(engine.frames) == 1 + ways
    assert engine.stack is not None
    assert (engine.stack.count, engine.stack.depth) == (count, 1)
    if outcome in ("to 20", "to 21"):
        assert engine.stack.start == 1
        assert engine.stack.way == (engine.frames[-1].serial if ways else 0)
    if ways:
        assert engine.frames[-1].targets == (30,)


def test_a_loop_without_a_guard_tries_always() -> None:
    """Its round decides."""
    engine = engine_at("")
    engine.push(count=0)

    assert step(Round(0, UNLIMITED, (None, B), (20, 21), 30), engine) == "to 20"


def test_the_last_optional_round_has_a_way_out_as_it_was_before() -> None:
    """The way back of a loop finds the loop's entry as it was before the round."""
    engine = engine_at("b")
    engine.push(count=1)
    step(LOOP, engine)
    engine.fail("x")

    assert engine.pc == 30
    assert engine.stack == Entry(None, 1, count=1)


@pytest.mark.parametrize(("start", "outcome"), [(0, "to 40"), (1, "to 41")])
def test_a_round_that_took_nothing_is_the_last(start: int, outcome: str) -> None:
    """Else it would go on for ever."""
    engine = engine_at("ab", at=1)
    serial = engine.open((30,))
    engine.push(count=4, start=start, way=serial)

    assert step(Again(40, 41), engine) == outcome
    assert (len(engine.frames), engine.stack) == (1, Entry(None, 1, count=5))


def test_tags() -> None:
    """What is read inside has the tag's role; the name begins anew, and a call keeps its text."""
    engine = engine_at("~now:", at=1, name="old", names=("now",))
    assert step(Tagged(Role.CALL), engine) == "on"
    engine.pc = HERE
    assert step(Tagged(Role.NAME), engine) == "on"
    engine.take(Role.MARKER, 3)
    engine.pc = HERE
    assert step(Untagged(), engine) == "on"
    engine.take(Role.MARKER, 1)
    engine.pc = HERE
    assert step(Untagged(), engine) == "on"

    assert engine.events == [
        Opened(Role.CALL, 1),
        Opened(Role.NAME, 1),
        Note(Role.NAME, "now"),
        Closed(Role.NAME, 4),
        Note(Role.CALL, ":"),
        Closed(Role.CALL, 5, "now:"),
    ]
    assert (engine.role, engine.call, engine.stack, engine.name) == (None, None, None, "now")
    assert engine.span_roles == [Role.NAME, Role.MARKER]


def test_only_names_are_looked_up() -> None:
    """Another tag may end whatever has been read of a name."""
    engine = engine_at("x", names=("now",), name="no")
    step(Tagged(Role.CONTENT), engine)
    engine.take(Role.MARKER, 1)
    engine.pc = HERE

    assert step(Untagged(), engine) == "on"


def test_a_tag_that_is_not_a_name_leaves_the_name() -> None:
    """And one that is not a call does not begin one."""
    engine = engine_at("x", name="now")
    step(Tagged(Role.ARGUMENT), engine)

    assert (engine.name, engine.call, engine.role) == ("now", None, Role.ARGUMENT)


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
    engine = engine_at(name, names=names)
    step(Tagged(Role.NAME), engine)
    engine.take(Role.MARKER, len(name))
    engine.pc = HERE

    assert step(Untagged(), engine) == outcome


def test_the_reading_breaks_off_where_there_is_text_or_an_end() -> None:
    """What was met is known then."""
    waiting, met, ended = engine_at(""), engine_at("ab", wanted="'x'"), engine_at("", final=True, wanted="'x'")

    assert [step(BreakOff(), engine) for engine in (waiting, met, ended)] == ["waits", "on", "on"]
    assert met.events == [Broken("a", 0, "'x'", False, "", "ab")]
    assert ended.events == [Broken("", 0, "'x'", True, "", "")]


def test_the_end_halts() -> None:
    """Nothing runs any more."""
    engine = engine_at("x")

    assert step(Halt(), engine) == "waits"
    assert engine.halted
