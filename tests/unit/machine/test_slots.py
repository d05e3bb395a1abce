"""The slots of a call, one instruction at a time: names, ids, words that say nothing, arguments' names."""

from __future__ import annotations

from typing import Any

import pytest
from stepping import machine_at, step, taken

from unrender.format import Slot
from unrender.machine.events import ToolCallStarted
from unrender.machine.interpreter import Machine
from unrender.machine.slots import (
    BeginCall,
    Commit,
    EndId,
    MarkId,
    ReadKey,
    ReadName,
    ReadWord,
    RepeatKey,
    RepeatName,
    SkipWords,
)
from unrender.messages.wire import Request, Tool
from unrender.values.finder import Finder

TOOLS = (Tool(name="now"), Tool(name="now>x"), Tool(name="go on"), Tool(name="nowhere"))
STOP = Finder((">", "</c>"))


def calling(text: str, *, at: int = 0, final: bool = False, tools: bool = True, **fields: Any) -> Machine:
    request = Request(tools=TOOLS if tools else None)
    machine = machine_at(text, at=at, final=final, request=request)
    call = machine.begin_call()
    for name, value in fields.items():
        setattr(call, name, value)
    return machine


def test_a_call_begins_where_its_opener_was_tried() -> None:
    """Nothing of it is known, and none of its closers has been read."""
    machine = machine_at("<c>now", at=3, closed=2)
    machine.frames[-1].at = 1

    assert step(BeginCall(), machine) == "on"
    assert machine.call is not None
    assert (machine.call.start, machine.call.name, machine.closed) == (1, "", 0)


def test_an_id_of_several_parts_is_the_text_between_two_marks() -> None:
    """It may be read over several chunks."""
    machine = calling("~functions.now:0<", at=1)

    assert step(MarkId(), machine) == "on"
    machine.at, machine.pc = 16, 10
    assert step(EndId(), machine) == "on"
    assert machine.call is not None
    assert (machine.call.mark, machine.call.id) == (1, "functions.now:0")


@pytest.mark.parametrize(
    ("text", "final", "outcome", "name"),
    [
        ("now>", False, "on", "now"),
        ("now>{", False, "on", "now"),
        ("now>", True, "on", "now"),
        ("now>x>", False, "on", "now"),
        ("nowhere>", True, "on", "nowhere"),
        ("now ", False, "on", "now"),
        ("now\n", False, "on", "now"),
        ("now(", False, "on", "now"),
        ("now</c>", False, "on", "now"),
        ("now</", False, "on", "now"),
        ("now</c", True, "on", "now"),
        ("now", False, "waits", ""),
        ("no", False, "waits", ""),
        ("now", True, "on", "now"),
        ("", False, "waits", ""),
        ("", True, "fails: the name of one of the tools", ""),
        ("then>", True, "fails: the name of one of the tools", ""),
        ("then ", False, "fails: the name of one of the tools", ""),
        (">now", True, "fails: the name of one of the tools", ""),
    ],
)
def test_a_name_ends_at_a_stop_or_at_a_sign(text: str, final: bool, outcome: str, name: str) -> None:
    """Where it may end at several places, the nearest is taken that makes it the name of a tool."""
    machine = calling("~" + text, at=1, final=final)
    machine.span_roles, machine.span_ends, machine.frames[-1].at = [], [], 1

    assert step(ReadName(STOP), machine) == outcome
    if outcome == "on":
        assert machine.call is not None
        assert machine.call.name == name
        assert machine.at == 1 + len(name)
        assert taken(machine) == f"name {'~' + name!r}"


@pytest.mark.parametrize(
    ("size", "final", "outcome"),
    [(1199, True, "on"), (1200, True, "fails"), (1199, False, "waits"), (1200, False, "fails")],
)
def test_the_longest_name(size: int, final: bool, outcome: str) -> None:
    """A longer word is none, whatever follows it."""
    assert step(ReadName(STOP), calling("n" * size, final=final, tools=False)).partition(":")[0] == outcome


@pytest.mark.parametrize(("text", "name"), [("go on>{", ""), ("now>x {", "now"), ("a>b>now {", "")])
def test_white_space_ends_every_name(text: str, name: str) -> None:
    """A tool whose name has a space in it cannot be called by such a syntax."""
    machine = calling(text)
    found = step(ReadName(STOP), machine)

    assert (machine.call.name if machine.call else "") == name
    assert found == ("on" if name else "fails: the name of one of the tools")


def test_a_stop_inside_a_name_does_not_end_it() -> None:
    """Names that hold a stop are tried at each of them, up to sixteen."""
    tools = tuple(Tool(name=name) for name in ("a:b", ":".join("x" * 16), ":".join("y" * 17)))
    found = []
    for text in ("a:b:0", ":".join("x" * 16) + ":", ":".join("y" * 17) + ":"):
        machine = machine_at(text, final=True, request=Request(tools=tools))
        machine.begin_call()
        found.append(step(ReadName(Finder((":",))), machine))

    assert found == ["on", "on", "fails: the name of one of the tools"]


@pytest.mark.parametrize(
    ("text", "final", "outcome"),
    [
        ("now:(", False, "waits"),
        ("now:(x", False, "on"),
        ("now:(", True, "fails: the name of one of the tools"),
        ("now:(y", False, "fails: the name of one of the tools"),
        ("now:", False, "waits"),
    ],
)
def test_a_stop_that_holds_a_sign_is_waited_for(text: str, final: bool, outcome: str) -> None:
    """The sign ends the word only if what is before it does not begin such a stop."""
    assert step(ReadName(Finder((":(x",))), calling(text, final=final)) == outcome


def test_a_stop_that_may_still_come_earlier_is_waited_for() -> None:
    """A tool's name ends at the first stop, not at one that is already there."""
    stops, request = Finder(("b123", "2")), Request(tools=(Tool(name="xb1"),))
    found = []
    for text, final in (("xb12", False), ("xb12", True), ("xb12.", False)):
        machine = machine_at(text, final=final, request=request)
        machine.begin_call()
        found.append((step(ReadName(stops), machine), taken(machine)))

    assert found == [("waits", ""), ("on", "name 'xb1'"), ("on", "name 'xb1'")]


def test_any_word_is_a_name_where_no_tools_are_known() -> None:
    """The error then does not speak of tools that nobody offered."""
    known, none = calling("anything>x", tools=False), calling(">x", tools=False)

    assert step(ReadName(STOP), known) == "on"
    assert taken(known) == "name 'anything'"
    assert step(ReadName(STOP), none) == "fails: the name of a tool"


@pytest.mark.parametrize(("size", "outcome"), [(1199, "on"), (1200, "fails: the name of a tool")])
def test_a_name_has_at_most_so_many_characters(size: int, outcome: str) -> None:
    """One that goes on beyond the limit is not waited for."""
    machine = calling("x" * size + " ", tools=False)

    assert step(ReadName(STOP), machine) == outcome


def test_a_long_word_without_an_end_is_refused_at_the_limit() -> None:
    """Until then it is waited for."""
    shorter, longer = calling("x" * 1199, tools=False), calling("x" * 1200, tools=False)

    assert step(ReadName(STOP), shorter) == "waits"
    assert step(ReadName(STOP), longer) == "fails: the name of a tool"


@pytest.mark.parametrize(
    ("slot", "text", "final", "outcome", "read"),
    [
        (Slot.ID, "a1>", True, "on", "id 'a1'"),
        (Slot.ID, "a1 ", False, "on", "id 'a1'"),
        (Slot.INDEX, "0>x", False, "on", "id '0'"),
        (Slot.INDEX, "0>x", True, "on", "id '0'"),
        (Slot.TYPE, "str ", False, "on", "marker 'str'"),
        (Slot.ID, "a1", False, "waits", ""),
        (Slot.ID, "a1", True, "on", "id 'a1'"),
        (Slot.ID, ">", True, "fails: the call's id", ""),
        (Slot.INDEX, "", True, "fails: the call's index", ""),
        (Slot.TYPE, " x", False, "fails: the call's type", ""),
        (Slot.ID, "x" * 1200, False, "fails: the call's id", ""),
    ],
)
def test_a_word(slot: Slot, text: str, final: bool, outcome: str, read: str) -> None:
    """A counter, an id, or the word for a type; it has one character at least."""
    machine = calling("~" + text, at=1, final=final)
    machine.base, machine.frames[-1].at = -1, 0

    assert (step(ReadWord(slot, STOP), machine), taken(machine).replace("'~", "'")) == (outcome, read)
    if outcome == "on":
        assert machine.call is not None
        word = read.split("'")[1]
        assert machine.call.id == (word if slot is Slot.ID else "")
        assert machine.call.kind == (word if slot is Slot.TYPE else "")


@pytest.mark.parametrize(
    ("text", "final", "outcome", "read"),
    [
        ("some words>x", False, "on", "marker 'some words'"),
        (">", True, "on", ""),
        ("words", False, "waits", ""),
        ("words", True, "fails: '</c>' or '>'", ""),
        ("wo\nrds", False, "fails: '</c>' or '>'", ""),
        ("wo\nrds>", False, "fails: '</c>' or '>'", ""),
        ("x" * 128 + ">", False, "on", f"marker {'x' * 128!r}"),
        ("x" * 129 + ">", False, "fails: '</c>' or '>'", ""),
        ("x" * 128, False, "waits", ""),
        ("x" * 126 + "</", False, "waits", ""),
        ("x" * 132, False, "fails: '</c>' or '>'", ""),
    ],
)
def test_words_that_say_nothing(text: str, final: bool, outcome: str, read: str) -> None:
    """They are on one line, and of bounded length."""
    machine = calling("~" + text, at=1, final=final)
    machine.span_roles, machine.span_ends, machine.frames[-1].at = [], [], 1
    machine.base, machine.frames[-1].at = -1, 0

    assert (step(SkipWords(STOP), machine), taken(machine).replace("'~", "'")) == (outcome, read)


def test_words_end_at_the_nearest_stop() -> None:
    """While a nearer one may still come, it is waited for."""
    stops = Finder(("b>>", "a"))

    assert step(SkipWords(stops), calling("xb>a")) == "on"
    assert step(SkipWords(stops), calling("xa b>")) == "on"


@pytest.mark.parametrize("waits", [True, False])
def test_a_commitment(waits: bool) -> None:
    """It closes the ways back; the call starts unless its id is still to come."""
    machine = calling("x", name="now")

    assert step(Commit(7, waits), machine) == "on"
    assert (machine.frames, machine.call is not None and machine.call.recover) == ([], 7)
    assert bool(machine.events) is not waits
    assert all(isinstance(event, ToolCallStarted) for event in machine.events)


@pytest.mark.parametrize(
    ("text", "final", "bare", "outcome", "key"),
    [
        ("city=Oslo", False, False, "on", "city"),
        (" city =Oslo", False, False, "on", "city"),
        ("'city'=", False, False, "on", "city"),
        ('"city"=', False, False, "on", "city"),
        ("two words=", False, False, "on", "two words"),
        ("city=", False, True, "on", "city"),
        ("two words=", False, True, "fails: the name of an argument", ""),
        ("a(b=", False, True, "fails: the name of an argument", ""),
        ("city", False, False, "waits", ""),
        ("city", True, False, "fails: the name of an argument", ""),
        ("=", False, False, "fails: the name of an argument", ""),
        ("''=", False, False, "fails: the name of an argument", ""),
        ("a\nb=", False, False, "fails: the name of an argument", ""),
        ("x" * 1199, False, False, "waits", ""),
        ("x" * 1200, False, False, "fails: the name of an argument", ""),
        ("x" * 1199 + "=", False, False, "on", "x" * 1199),
        ("x" * 1200 + "=", False, False, "fails: the name of an argument", ""),
    ],
)
def test_an_arguments_name(text: str, final: bool, bare: bool, outcome: str, key: str) -> None:
    """It goes up to its stop, on one line; quotes and space around it are not in it."""
    machine = calling("~" + text, at=1, final=final)

    assert step(ReadKey(Finder(("=",)), bare), machine) == outcome
    if outcome == "on":
        assert machine.call is not None
        assert machine.call.key == key
        assert machine.at == text.index("=") + 1


def test_names_that_come_again_are_markers() -> None:
    """The tool's, and the argument's."""
    for instruction in (RepeatName(), RepeatKey()):
        machine = calling("now>", name="now", key="now")
        other = calling("then>", name="now", key="now")

        assert step(instruction, machine) == "on"
        assert taken(machine) == "marker 'now'"
        assert step(instruction, other) == "fails: 'now'"
