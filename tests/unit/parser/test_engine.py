"""What instructions do to the engine: text and its notes, the stack, ways back, and what ends a reading."""

from __future__ import annotations

from typing import Any

import pytest

from unrender.machine.handmade.steps import BreakOff, Exactly, Halt, UpTo
from unrender.nodes import Role
from unrender.parsing.engine import FREE, MAX_DEPTH, MAX_NAME, MAX_SPENT, Broken, Engine, Entry, Note, Program
from unrender.values.finder import Finder

TEXT = 50


def engine_at(text: str, *, at: int = 0, begun: int = 0, **fields: Any) -> Engine:
    engine = Engine(Program((), 0, TEXT, False), None, begun=begun, given=bool(fields.pop("given", False)))
    engine.buffer, engine.at = text, at
    for name, value in fields.items():
        setattr(engine, name, value)
    return engine


def test_text_outside_of_tags_has_no_note() -> None:
    """It has a role all the same."""
    engine = engine_at("abc")
    engine.take(Role.LAYOUT, 2)
    engine.take(Role.MARKER, 0)

    assert (engine.at, engine.events, engine.span_roles, engine.span_ends) == (2, [], [Role.LAYOUT], [2])


@pytest.mark.parametrize(
    ("role", "value", "note"),
    [
        (Role.CONTENT, None, Note(Role.CONTENT, "ab")),
        (Role.CONTENT, "[1]", Note(Role.CONTENT, "ab")),
        (Role.REASONING, None, Note(Role.REASONING, "ab")),
        (Role.ARGUMENT, "[1]", Note(Role.ARGUMENT, "[1]", True)),
        (Role.VALUE, "[1]", Note(Role.VALUE, "[1]", True)),
        (Role.VALUE, "", Note(Role.VALUE, "", True)),
        (Role.VALUE, None, Note(Role.VALUE, "ab")),
        (Role.KEY, "[1]", Note(Role.KEY, "ab")),
    ],
)
def test_text_in_a_tag_is_noted(role: Role, value: str | None, note: Note) -> None:
    """As it was written; arguments that are read as values are noted as their JSON."""
    engine = engine_at("abc", role=role)
    engine.take(Role.MARKER, 2, value)

    assert engine.events == [note]


def test_a_value_may_have_no_text() -> None:
    """What waited in its scanner comes with nothing."""
    engine = engine_at("abc", role=Role.VALUE)
    engine.take(Role.MARKER, 0, "}")
    engine.take(Role.MARKER, 0, "")

    assert (engine.events, engine.span_ends, engine.at) == ([Note(Role.VALUE, "}", True)], [], 0)


@pytest.mark.parametrize(
    ("role", "span"),
    [(Role.KEY, Role.ARGUMENT), (Role.VALUE, Role.ARGUMENT), (Role.CALL, Role.MARKER), (Role.ID, Role.ID)],
)
def test_roles_of_spans(role: Role, span: Role) -> None:
    """Those that are of use inside a call alone are spoken of as arguments and markers."""
    engine = engine_at("abc", role=role)
    engine.take(Role.CONTENT, 2)

    assert engine.span_roles == [span]


@pytest.mark.parametrize(
    ("given", "role", "text"),
    [(True, Role.CONTENT, "cd"), (False, Role.CONTENT, "abcd"), (True, Role.REASONING, "abcd")],
)
def test_content_that_the_prompt_has_given_is_not_noted(given: bool, role: Role, text: str) -> None:
    """What a generation prompt writes is before position 0."""
    engine = engine_at("abcd", begun=2, given=given, role=role)
    engine.take(Role.MARKER, 4)

    assert engine.events == [Note(role, text)]


def test_content_after_the_prompt_is_noted_whole() -> None:
    """From position 0 on it is the model's."""
    engine = engine_at("abcd", at=2, begun=2, given=True, role=Role.CONTENT)
    engine.take(Role.MARKER, 2)

    assert engine.events == [Note(Role.CONTENT, "cd")]
    engine.buffer += "efgh"
    engine.take(Role.MARKER, 4)
    assert engine.events[-1] == Note(Role.CONTENT, "efgh")


def test_a_new_engine_stands_at_the_beginning() -> None:
    """Or before it, by as much as the prompt has begun."""
    new, begun = Engine(Program((), 3, TEXT, False), None), engine_at("", begun=2)

    assert (new.pc, new.position, new.furthest, new.wanted_at, new.given) == (3, 0, 0, 0, False)
    assert (begun.position, begun.furthest, begun.wanted_at) == (-2, -2, -2)
    assert (new.role, new.name, new.call, new.stack, new.serial, new.spent, new.wanted) == (
        None,
        "",
        None,
        None,
        0,
        0,
        "",
    )


def test_a_name_is_remembered_as_far_as_it_may_be_one() -> None:
    """Longer ones are not kept whole."""
    engine = engine_at("x" * 5000, role=Role.NAME)
    engine.take(Role.MARKER, 1200)
    engine.take(Role.MARKER, 1)
    engine.take(Role.MARKER, 1000)

    assert len(engine.name) == 1201


def test_the_stack() -> None:
    """Entries lie on each other, and know how deep they are."""
    engine = engine_at("x")
    engine.push(address=3)
    engine.push(count=2)
    assert engine.stack == Entry(Entry(None, 1, address=3), 2, count=2)
    assert engine.pop().count == 2
    assert engine.pop() == Entry(None, 1, address=3)

    assert engine.stack is None


def test_an_entry_holds_what_it_is_told() -> None:
    """And nothing else."""
    assert Entry(None, 1) == Entry(None, 1, address=0, count=0, start=0, way=0, role=None)


def test_ways_back_are_closed_by_their_number() -> None:
    """With all that were opened later; 0 is none, and one that a cut has closed is no matter."""
    engine = engine_at("x")
    first, second, third = (engine.open((i,)) for i in (1, 2, 3))
    engine.close(0)
    assert [way.serial for way in engine.frames] == [first, second, third] == [1, 2, 3]
    engine.close(second)
    assert [way.serial for way in engine.frames] == [first]
    engine.close(third)
    assert len(engine.frames) == 1
    engine.close(first)

    assert engine.frames == []


def test_a_failure_goes_to_the_next_option() -> None:
    """With everything as it was; after the last there is no way back."""
    engine = engine_at("abcd", at=1, role=Role.CONTENT, name="n", call=0)
    engine.push(count=7)
    engine.open((20, 21))
    engine.take(Role.MARKER, 2)
    engine.push(count=8)
    for name, other in (("role", None), ("name", "m"), ("call", None)):
        setattr(engine, name, other)
    engine.fail("'x'")
    assert (engine.pc, engine.at, engine.events, engine.span_ends) == (20, 1, [], [])
    assert (engine.role, engine.name, engine.call, engine.stack) == (Role.CONTENT, "n", 0, Entry(None, 1, count=7))
    assert [way.targets for way in engine.frames] == [(21,)]
    engine.fail("'y'")
    assert (engine.pc, engine.frames) == (21, [])

    assert (engine.furthest, engine.spent) == (3, 3 + 1)


def test_the_furthest_failure_says_what_was_wanted() -> None:
    """Of two at one place, the later."""
    engine = engine_at("abcd", at=2)
    engine.open((20, 21, 22))
    engine.at = 3
    engine.fail("'far'")
    assert (engine.wanted, engine.wanted_at) == ("'far'", 3)
    engine.fail("'near'")
    assert engine.wanted == "'far'"
    engine.at = 3
    engine.fail("'later'")

    assert engine.wanted == "'later'"


def test_without_a_way_back_the_reading_ends() -> None:
    """The rest is content, and nothing of the stack is left."""
    engine = engine_at("ab", scanner=None)
    engine.push(count=1)
    engine.fail("'x'")

    assert (engine.pc, engine.stack, engine.wanted, engine.scanner) == (TEXT, None, "'x'", None)


@pytest.mark.parametrize(("spent", "ended"), [(0, False), (64 * 3 + 10_000 - 3, False), (64 * 3 + 10_000 - 2, True)])
def test_only_so_much_is_given_back(spent: int, ended: bool) -> None:
    """In proportion to what was read; then the reading ends where the first way back begins."""
    engine = engine_at("abcdef", at=1, spent=spent)
    engine.open((20,))
    engine.open((21,))
    engine.at = 3
    engine.fail("'x'")

    assert (engine.pc, engine.at) == ((TEXT, 1) if ended else (21, 1))
    assert len(engine.frames) == (0 if ended else 1)
    assert (MAX_SPENT, FREE, MAX_NAME, MAX_DEPTH) == (64, 10_000, 1200, 100_000)


@pytest.mark.parametrize(("spent", "ended"), [(10_000 - 3, False), (10_000 - 2, True)])
def test_what_the_prompt_has_begun_gives_no_room(spent: int, ended: bool) -> None:
    """Only what the model has written counts."""
    engine = engine_at("abcdef", at=1, begun=5, spent=spent)
    engine.open((20,))
    engine.at = 3
    engine.fail("'x'")

    assert engine.pc == (TEXT if ended else 20)


def test_a_rewind_undoes_what_was_read() -> None:
    """Ways back that were opened since are closed; how far it went is remembered."""
    engine = engine_at("abcdef", at=1)
    engine.open((20,))
    serial = engine.open((21,))
    engine.open((22,))
    engine.at = 4

    assert engine.rewind(serial) is True
    assert (engine.at, len(engine.frames), engine.furthest, engine.spent) == (1, 1, 4, 4)


def test_a_rewind_that_is_too_much() -> None:
    """The caller must not go on."""
    engine = engine_at("abcdef", spent=1 << 40)

    assert engine.rewind(engine.open((21,))) is False
    assert engine.pc == TEXT


@pytest.mark.parametrize(("given", "text"), [(False, "abcd"), (True, "cd")])
def test_the_text_of_a_call(given: bool, text: str) -> None:
    """Markers included, without what the prompt has given of it; then it is kept no more."""
    engine = engine_at("abcdef", at=4, begun=2, given=given, call=-2)
    assert engine.needed_from() == -2

    assert engine.end_call() == text
    assert engine.needed_from() == 2


def test_text_that_a_way_back_needs_is_kept() -> None:
    """Or the call, whichever begins earlier."""
    engine = engine_at("abcdef", at=3)
    engine.open((20,))
    engine.at = 5
    assert engine.needed_from() == 3
    engine.call = 1
    assert engine.needed_from() == 1
    engine.call = 4

    assert engine.needed_from() == 3


def test_a_report_ends_the_call() -> None:
    """With what was met and what is around; its text is content."""
    engine = engine_at("x" * 50 + "<c>!" + "y" * 50, at=53, wanted="'x'", call=50, role=Role.NAME)
    engine.report()

    around = "x" * 37 + "<c>!" + "y" * 39
    assert engine.events == [Broken("!", 53, "'x'", False, "<c>", around)]
    assert [event.around for event in engine.events if isinstance(event, Broken)] == [around]
    assert (engine.role, engine.call) == (None, None)


def test_a_program_runs_over_chunks() -> None:
    """It starts where the program says, and reads the rest as content when it breaks."""
    steps = (Halt(), Exactly("ab"), Halt(), BreakOff(), UpTo(Finder(())), Halt())
    engine = Engine(Program(steps, 1, 3, False), None, begun=1)
    assert engine.feed("a") == []
    assert engine.steps == 1
    [broken] = engine.feed("c")

    assert broken == Broken("a", -1, "'ab'", False, "", "")
    assert (engine.base, engine.furthest, engine.wanted_at) == (-1, -1, -1)
    engine.finish()
    assert engine.halted
